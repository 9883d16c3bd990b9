"""An answer as OpenAI's Responses: the object, and the events of its stream in their order.

Contract: https://platform.openai.com/docs/api-reference/responses-streaming (read 2026-11-27). A stream has no [DONE]:
`response.completed`, `response.incomplete` or `response.failed` ends it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cortex.base.messages import ToolCall, Usage
from cortex.services.api.answers import Finished, Said, Thought, Working
from web.programs import event, failure_of, headers_of, sign

CODES = {"quota": "rate_limit_exceeded"}  # of a response's own errors; all others are server_error


@dataclass(slots=True, kw_only=True)
class ResponseForm:
    """One response. `echo`: what it repeats of its request. `_said`: the text that is out; `_number`: of the event."""

    id: str
    created: int
    echo: Mapping[str, Any]
    place: str = ""
    media_type: str = "text/event-stream"
    _said: str = ""
    _number: int = field(default=0)

    @property
    def headers(self) -> dict[str, str]:
        """What goes ahead of it."""
        return headers_of(self.place)

    def opening(self) -> str:
        """It was created, and is being answered."""
        begun = self._response("in_progress")
        return self._event("response.created", response=begun) + self._event("response.in_progress", response=begun)

    def more(self, piece: Said | Thought | Working) -> str:
        """A piece of the message, which begins with the first; a comment as a sign of life."""
        if isinstance(piece, Working):
            return sign(piece, self.place)
        if isinstance(piece, Thought):
            return ""
        begins = "" if self._said else self._message_begins()
        self._said += piece.text
        place = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
        return begins + self._event("response.output_text.delta", **place, delta=piece.text, logprobs=[])

    def ending(self, finished: Finished) -> str:
        """The message's end, the calls, and how all of it ended."""
        message = self._message_ends() if self._said else ""
        if finished.failure:
            error = {"code": CODES.get(finished.failure, "server_error"), "message": finished.text}
            failed = self._response("failed", self._output(self._said, finished), finished.usage) | {"error": error}
            return message + self._event("response.failed", response=failed)
        first = 1 if self._said else 0
        calls = [self._call_events(call, first + n) for n, call in enumerate(finished.calls)]
        whole = self.whole(self._said, "", finished)
        last = self._event(f"response.{whole['status']}", response=whole)
        return message + "".join(calls) + last

    def whole(self, text: str, _thought: str, finished: Finished) -> dict[str, Any]:
        """The response at its end; incomplete where the tokens ran out."""
        text, is_cut = finished.answer or text, finished.finish == "length"
        done = self._response("incomplete" if is_cut else "completed", self._output(text, finished), finished.usage)
        return done | {"incomplete_details": {"reason": "max_output_tokens"}} if is_cut else done

    def failure(self, finished: Finished) -> dict[str, Any]:
        """As any error of the API."""
        return failure_of(finished)

    @property
    def _message_id(self) -> str:
        return f"msg_{self.id.removeprefix('resp_')}"

    def _message_begins(self) -> str:
        item = _message(self._message_id, None, "in_progress")
        place = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
        added = self._event("response.output_item.added", output_index=0, item=item)
        return added + self._event("response.content_part.added", **place, part=_text(""))

    def _message_ends(self) -> str:
        place = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
        done = self._event("response.output_text.done", **place, text=self._said, logprobs=[])
        done += self._event("response.content_part.done", **place, part=_text(self._said))
        item = _message(self._message_id, self._said, "completed")
        return done + self._event("response.output_item.done", output_index=0, item=item)

    def _call_events(self, call: ToolCall, index: int) -> str:
        begun = _call(call, "in_progress") | {"arguments": ""}
        place = {"item_id": begun["id"], "output_index": index}
        events = [
            self._event("response.output_item.added", output_index=index, item=begun),
            self._event("response.function_call_arguments.delta", **place, delta=call.arguments),
            self._event("response.function_call_arguments.done", **place, name=call.name, arguments=call.arguments),
            self._event("response.output_item.done", output_index=index, item=_call(call, "completed")),
        ]
        return "".join(events)

    def _output(self, text: str, finished: Finished) -> list[dict[str, Any]]:
        status = "incomplete" if finished.finish == "length" or finished.failure else "completed"
        message = [_message(self._message_id, text, status)] if text else []
        return [*message, *(_call(call, "completed") for call in finished.calls)]

    def _response(
        self, status: str, output: list[dict[str, Any]] | None = None, usage: Usage | None = None
    ) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            **self.echo,
            "output": output or [],
            "usage": None if usage is None else _usage(usage),
        }

    def _event(self, kind: str, **values: Any) -> str:
        number, self._number = self._number, self._number + 1
        return event({"type": kind, "sequence_number": number, **values}, kind)


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _message(id: str, text: str | None, status: str) -> dict[str, Any]:
    content = [] if text is None else [_text(text)]
    return {"id": id, "type": "message", "status": status, "role": "assistant", "content": content}


def _call(call: ToolCall, status: str) -> dict[str, Any]:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "status": status,
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
