"""An answer as Ollama gives it: one object, or a line of JSON for each piece. Its errors are a text under `error`.

Contract: https://github.com/ollama/ollama/blob/main/docs/api.md (read 2026-11-27). Times are in nanoseconds.
"""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from fastapi.responses import JSONResponse, Response
from msgspec import Struct

from cortex.base.errors import CortexError, NotAllowed, Throttled, UserError
from cortex.base.json_text import parsed
from cortex.base.messages import ToolCall
from cortex.services.api.answers import Finished, Said, Thought, Working
from web.programs import headers_of


def refused_as_ollama(error: CortexError, *, is_caller: bool = True) -> Response:
    """The error as Ollama's clients read it. `is_caller`: whoever asks is known, so that it is not the token."""
    if isinstance(error, NotAllowed) and not is_caller:
        return JSONResponse({"error": error.message}, 401, {"WWW-Authenticate": "Bearer"})
    status = 400 if isinstance(error, UserError) else error.status
    headers = {"Retry-After": str(int(error.wait_s) + 1)} if isinstance(error, Throttled) else {}
    return JSONResponse({"error": error.message}, status, headers)


class OllamaForm(Struct, frozen=True, kw_only=True):
    """One answer. `is_chat`: with messages, else bare text; `now`, `ticks_s`: clocks; `began_s`: of the latter."""

    model: str
    is_chat: bool
    now: Callable[[], datetime]
    ticks_s: Callable[[], float]
    began_s: float
    place: str = ""
    media_type: str = "application/x-ndjson"

    @property
    def headers(self) -> dict[str, str]:
        """Return what goes ahead of it."""
        return headers_of(self.place)

    def opening(self) -> str:
        """Nothing: each piece says who speaks."""
        return ""

    def more(self, piece: Said | Thought | Working) -> str:
        """A piece; an empty one as a sign of life."""
        if isinstance(piece, Thought):
            return _line(self._piece("", thought=piece.text))
        return _line(self._piece(piece.text if isinstance(piece, Said) else ""))

    def ending(self, finished: Finished) -> str:
        """Calls, then how it ended and what it took; or why it failed."""
        if finished.failure:
            return _line(self.failure(finished))
        calls = _line(self._piece("", calls=finished.calls)) if finished.calls else ""
        return calls + _line(self._end(self._piece(""), finished))

    def whole(self, text: str, thought: str, finished: Finished) -> dict[str, Any]:
        """The answer in one piece."""
        piece = self._piece(finished.answer or text, thought=thought, calls=finished.calls)
        return self._end(piece, finished)

    def failure(self, finished: Finished) -> dict[str, Any]:
        """Why it failed."""
        return {"error": finished.text}

    def loaded(self) -> dict[str, Any]:
        """The answer to a request that asks for nothing."""
        return {**self._piece(""), "done": True, "done_reason": "load"}

    def _piece(self, text: str, *, thought: str = "", calls: tuple[ToolCall, ...] = ()) -> dict[str, Any]:
        made = self.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        thinking = {"thinking": thought} if thought else {}
        said: dict[str, Any] = {"response": text, **thinking}
        if self.is_chat:
            tools = {"tool_calls": [_call(n, call) for n, call in enumerate(calls)]} if calls else {}
            said = {"message": {"role": "assistant", "content": text, **thinking, **tools}}
        return {"model": self.model, "created_at": made, **said, "done": False}

    def _end(self, piece: dict[str, Any], finished: Finished) -> dict[str, Any]:
        took_ns = round((self.ticks_s() - self.began_s) * 1e9)
        return {
            **piece,
            "done": True,
            "done_reason": "length" if finished.finish == "length" else "stop",
            "total_duration": took_ns,
            "load_duration": 0,
            "prompt_eval_count": finished.usage.input_tokens,
            "prompt_eval_duration": 0,
            "eval_count": finished.usage.output_tokens,
            "eval_duration": took_ns,
        }


def _call(index: int, call: ToolCall) -> dict[str, Any]:
    """A call; its arguments are an object there."""
    try:
        arguments = parsed(call.arguments)
    except ValueError:
        arguments = None
    given = arguments if isinstance(arguments, dict) else {}
    return {"id": call.id, "function": {"index": index, "name": call.name, "arguments": given}}


def _line(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"
