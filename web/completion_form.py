"""An answer as a chat completion: the object, and the pieces of its stream.

Contract: https://platform.openai.com/docs/api-reference/chat-streaming (read 2026-11-24).
"""

from typing import Any

from msgspec import Struct

from cortex.base.messages import ToolCall, Usage
from cortex.services.api.answers import Finished, Said, Thought, Working
from web.programs import event, failure_of, headers_of, sign


class Completion(Struct, frozen=True, kw_only=True):
    """An answer on its way to a program. `place`: where its person can read it, "" for nowhere."""

    id: str
    created: int
    model: str
    wants_usage: bool
    place: str = ""
    media_type: str = "text/event-stream"

    def opening(self) -> str:
        """The piece that says who speaks."""
        return event(self.piece({"role": "assistant", "content": ""}))

    def more(self, piece: Said | Thought | Working) -> str:
        """A piece of text; a comment as a sign of life."""
        if isinstance(piece, Working):
            return sign(piece, self.place)
        return event(self.piece({"content" if isinstance(piece, Said) else "reasoning_content": piece.text}))

    def ending(self, finished: Finished) -> str:
        """Calls, how it ended, what was used."""
        return "".join([*map(event, self.end(finished)), "data: [DONE]\n\n"])

    def failure(self, finished: Finished) -> dict[str, Any]:
        """As any error."""
        return failure_of(finished)

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
            return [failure_of(finished)]
        calls = [{"index": index, **_call(call)} for index, call in enumerate(finished.calls)]
        last = [self.piece({"tool_calls": calls})] if calls else []
        last.append(self.piece({}, finished.finish))
        if self.wants_usage:
            used = {"choices": [], "usage": _usage(finished.usage)}
            last.append({**self._head("chat.completion.chunk"), **used})
        return last

    @property
    def headers(self) -> dict[str, str]:
        """Return what goes ahead of it."""
        return headers_of(self.place)

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
