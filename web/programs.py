"""What other programs are answered under `/v1`: who asks, errors in the shape that OpenAI's clients read, streams.

Contract: https://platform.openai.com/docs/api-reference/chat-streaming and .../guides/error-codes (read 2026-11-24).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from cortex.base.errors import CortexError, NotAllowed, NotFound, ProviderError, Throttled, UserError
from cortex.base.messages import ToolCall, Usage
from cortex.services.api.answers import Anew, BrokenOff, Finished, Piece, Said, Tell, Thought, Working
from cortex.services.api.tokens import Caller
from web.bodies import asked_by
from web.connections import prove
from web.deps import services

ONCE = {"x-should-retry": "false"}  # clients try a failed request again by themselves; this one ran, and was paid for
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
BEARER = "bearer "
UNNAMED = "Send a token of Cortex: Authorization: Bearer cx-…"
STATUS = {"quota": 429, "model": 502, "stopped": 503, "request": 400, "busy": 429}
BROKEN = "The answer broke off."
NOT_ONLY_JSON = "The model wrote more than the JSON that response_format asks for. Ask again, or without `stream`."
Answering = Callable[[Tell], Awaitable[Finished]]


async def caller_of(request: Request) -> Caller:
    """The program whose token the request carries; NotAllowed without one that is known."""
    header = request.headers.get("authorization", "")
    if not header.lower().startswith(BEARER):
        raise NotAllowed(UNNAMED)
    caller = await services(request).api_tokens.who(header[len(BEARER) :].strip())
    prove(request)
    asked_by(request, caller.user.id)
    return caller


def refused(error: CortexError, *, is_caller: bool = True) -> Response:
    """The error as a program reads it. `is_caller`: whoever asks is known, so that it is not the token."""
    headers = {}
    if isinstance(error, NotAllowed) and not is_caller:
        return JSONResponse(_error(error.message, 401, "invalid_api_key"), 401, {"WWW-Authenticate": "Bearer"})
    if isinstance(error, Throttled):
        headers["Retry-After"] = str(int(error.wait_s) + 1)
    if isinstance(error, UserError):
        code = getattr(error, "code", None)
        return JSONResponse(_error(error.message, 400, code, error.field or None), 400)
    code = "model_not_found" if isinstance(error, NotFound) else None
    return JSONResponse(_error(error.message, error.status, code), error.status, headers)


def failure(finished: Finished) -> dict[str, Any]:
    """The error of an answer that did not come to its end."""
    code = "insufficient_quota" if finished.failure == "quota" else finished.code or None
    return _error(finished.text, STATUS[finished.failure], code, finished.param or None)


def _error(message: str, status: int, code: str | None, param: str | None = None) -> dict[str, Any]:
    kind = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}.get(status)
    kind = kind or ("server_error" if status >= 500 else "invalid_request_error")
    if code == "insufficient_quota":
        kind = code
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """An answer on its way to a program. `place`: where its person can read it, "" for nowhere."""

    id: str
    created: int
    model: str
    wants_usage: bool
    place: str = ""

    def whole(self, text: str, thought: str, finished: Finished) -> dict[str, Any]:
        """The answer in one piece."""
        text = finished.answer or text
        content = None if finished.calls and not text else text
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if thought:
            message["reasoning_content"] = thought
        if finished.calls:
            message["tool_calls"] = [_call(call) for call in finished.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finished.finish}
        return {**self._head("chat.completion"), "choices": [choice], "usage": _usage(finished.usage)}

    def piece(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """One message of a stream."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        used = {"usage": None} if self.wants_usage else {}
        return {**self._head("chat.completion.chunk"), "choices": [choice], **used}

    def end(self, finished: Finished) -> list[dict[str, Any]]:
        """The last messages of a stream."""
        if finished.failure:
            return [failure(finished)]
        calls = [{"index": index, **_call(call)} for index, call in enumerate(finished.calls)]
        last = [self.piece({"tool_calls": calls})] if calls else []
        last.append(self.piece({}, finished.finish))
        if self.wants_usage:
            used = {"choices": [], "usage": _usage(finished.usage)}
            last.append({**self._head("chat.completion.chunk"), **used})
        return last

    @property
    def headers(self) -> dict[str, str]:
        """What goes ahead of it."""
        return {**HEADERS, **({"X-Cortex-Conversation": self.place} if self.place else {})}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


class ProgramStream(Response):
    """An answer as a stream of events. It ends with the answer; a program that goes away ends both."""

    def __init__(self, completion: Completion, answering: Answering) -> None:
        super().__init__(media_type="text/event-stream", headers=completion.headers)
        del self.headers["content-length"]
        self._completion = completion
        self._answering = answering

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. An answer that fails ahead of its first sign is an error with its status, as clients expect it."""
        stream = _Stream(self._completion, self.raw_headers, send)
        finished = await _until_gone(receive, self._answering(stream.tell))
        if finished is None:
            return
        if finished.failure and not stream.has_begun:
            await _failed(finished, self._completion)(scope, receive, send)
            return
        if finished.answer and finished.answer != stream.said.strip():
            finished = Finished(failure="model", text=NOT_ONLY_JSON, param="response_format")
        events = [_event(one) for one in self._completion.end(finished)]
        await stream.write("".join([*events, "data: [DONE]\n\n"]), is_last=True)


@dataclass(slots=True)
class _Stream:
    """A stream of events that is being sent. `said`: its words so far."""

    completion: Completion
    headers: list[tuple[bytes, bytes]]
    send: Send
    has_begun: bool = False
    said: str = ""

    async def write(self, text: str, *, is_last: bool = False) -> None:
        """Send this, behind its head where that was not sent yet."""
        if not self.has_begun:
            self.has_begun = True
            await self.send({"type": "http.response.start", "status": 200, "headers": self.headers})
            text = _event(self.completion.piece({"role": "assistant", "content": ""})) + text
        await self.send({"type": "http.response.body", "body": text.encode(), "more_body": not is_last})

    async def tell(self, piece: Piece) -> None:
        """Send a piece of the answer; BrokenOff where what was sent is void."""
        match piece:
            case Working():
                await self.write(f": {_sign(piece, self.completion)}\n\n")
            case Said(text=text) if text:
                self.said += text
                await self.write(_event(self.completion.piece({"content": text})))
            case Thought(text=text) if text:
                await self.write(_event(self.completion.piece({"reasoning_content": text})))
            case Anew():
                raise BrokenOff(BROKEN)


@dataclass(slots=True)
class _Whole:
    said: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)

    async def tell(self, piece: Piece) -> None:
        match piece:
            case Said(text=text):
                self.said.append(text)
            case Thought(text=text):
                self.thought.append(text)
            case Anew():
                self.said.clear()
                self.thought.clear()


class ProgramAnswer(Response):
    """An answer in one piece, which is waited for as long as the program does."""

    def __init__(self, completion: Completion, answering: Answering) -> None:
        super().__init__()
        self._completion = completion
        self._answering = answering

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for it and send it."""
        heard = _Whole()
        finished = await _until_gone(receive, self._answering(heard.tell))
        if finished is None:
            return
        if finished.failure:
            answer = _failed(finished, self._completion)
        else:
            whole = self._completion.whole("".join(heard.said), "".join(heard.thought), finished)
            answer = JSONResponse(whole, 200, self._completion.headers)
        await answer(scope, receive, send)


def _failed(finished: Finished, completion: Completion) -> Response:
    return JSONResponse(failure(finished), STATUS[finished.failure], {**completion.headers, **ONCE})


async def _until_gone(receive: Receive, answering: Awaitable[Finished]) -> Finished | None:
    """The end of the answer; None, with the answer cancelled, when the program went away first."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        asking.cancel()

    async def asked() -> Finished:
        try:
            return await answering
        except CortexError as error:
            is_model = isinstance(error, ProviderError)
            return Finished(failure="model" if is_model else "stopped", text=error.message)

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(asked())
        leaving = group.create_task(gone())
        asking.add_done_callback(lambda _: leaving.cancel())
    return None if asking.cancelled() else asking.result()


def _sign(piece: Working, completion: Completion) -> str:
    if piece.waits:
        return f"{piece.waits} needs approval on {completion.place}"
    return "working"


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
