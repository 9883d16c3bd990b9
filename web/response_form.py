"""An answer as OpenAI's Responses: the object, and the events of its stream in their order.

Contract: https://platform.openai.com/docs/api-reference/responses-streaming (read 2026-11-27). A stream has no [DONE]:
`response.completed`, `response.incomplete` or `response.failed` ends it.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from cortex.base.messages import ToolCall, Usage
from cortex.services.api.answers import Finished, Said, Thought, Working
from web.programs import event, failure_of, headers_of, sign

# Of a response's own errors; all others are server_error.
CODES = {"quota": "rate_limit_exceeded", "busy": "rate_limit_exceeded", "request": "invalid_prompt"}
Item = dict[str, Any]


class ResponseForm(Struct, kw_only=True):
    """One response. `echo`: what it repeats of its request.

    `_done`: the items of its stream that are out; `_open`: the one that grows, of text or reasoning, None for none;
    `_text`: what of it is out; `_number`: of the next event.
    """

    id: str
    created: int
    echo: Mapping[str, Any]
    place: str = ""
    media_type: str = "text/event-stream"
    _done: list[Item] = field(default_factory=list)
    _open: type[Said] | type[Thought] | None = None
    _text: str = ""
    _number: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """Return what goes ahead of it."""
        return headers_of(self.place)

    def opening(self) -> str:
        """It was created, and is being answered."""
        begun = self._response("in_progress", [])
        return self._event("created", response=begun) + self._event("in_progress", response=begun)

    def more(self, piece: Said | Thought | Working) -> str:
        """A piece of an item, which begins with the first; a comment as a sign of life."""
        if isinstance(piece, Working):
            return sign(piece, self.place)
        events = ""
        if self._open is not type(piece):
            events = self._end_item() + self._begin_item(type(piece))
        self._text += piece.text
        if isinstance(piece, Said):
            return events + self._event("output_text.delta", **self._at(), delta=piece.text, logprobs=[])
        return events + self._event("reasoning_summary_text.delta", **self._at(), delta=piece.text)

    def ending(self, finished: Finished) -> str:
        """The end of the item that grew, the calls, and how all of it ended."""
        events = self._end_item()
        if finished.failure:
            error = {"code": CODES.get(finished.failure, "server_error"), "message": finished.text}
            failed = self._response("failed", self._done, finished.usage) | {"error": error}
            return events + self._event("failed", response=failed)
        events += "".join(map(self._call_events, finished.calls))
        whole = self._ended(self._done, finished)
        return events + self._event(whole["status"], response=whole)

    def whole(self, text: str, thought: str, finished: Finished) -> dict[str, Any]:
        """The response at its end."""
        text = finished.answer or text
        parts: list[tuple[type[Said] | type[Thought], str]] = [(Thought, thought), (Said, text)]
        items = [self._item(kind, n, said, "completed") for n, (kind, said) in enumerate(parts) if said]
        return self._ended([*items, *(_call(call, "completed") for call in finished.calls)], finished)

    def failure(self, finished: Finished) -> dict[str, Any]:
        """As any error of the API."""
        return failure_of(finished)

    def _begin_item(self, kind: type[Said] | type[Thought]) -> str:
        self._open, self._text = kind, ""
        item = self._item(kind, len(self._done), None, "in_progress")
        added = self._event("output_item.added", output_index=len(self._done), item=item)
        if kind is Said:
            return added + self._event("content_part.added", **self._at(), part=_words(""))
        return added + self._event("reasoning_summary_part.added", **self._at(), part=_summary(""))

    def _end_item(self) -> str:
        if self._open is None:
            return ""
        text, place = self._text, self._at()
        if self._open is Said:
            events = self._event("output_text.done", **place, text=text, logprobs=[])
            events += self._event("content_part.done", **place, part=_words(text))
        else:
            events = self._event("reasoning_summary_text.done", **place, text=text)
            events += self._event("reasoning_summary_part.done", **place, part=_summary(text))
        item = self._item(self._open, len(self._done), text, "completed")
        self._open = None
        return events + self._finish(item)

    def _call_events(self, call: ToolCall) -> str:
        begun = _call(call, "in_progress") | {"arguments": ""}
        place = {"item_id": begun["id"], "output_index": len(self._done)}
        events = self._event("output_item.added", output_index=len(self._done), item=begun)
        events += self._event("function_call_arguments.delta", **place, delta=call.arguments)
        events += self._event("function_call_arguments.done", **place, name=call.name, arguments=call.arguments)
        return events + self._finish(_call(call, "completed"))

    def _finish(self, item: Item) -> str:
        self._done.append(item)
        return self._event("output_item.done", output_index=len(self._done) - 1, item=item)

    def _at(self) -> Item:
        """Where the item that grows is, and its only part."""
        part = "content_index" if self._open is Said else "summary_index"
        index = len(self._done)
        return {"item_id": self._item_id(self._open, index), "output_index": index, part: 0}

    def _item_id(self, kind: type[Said] | type[Thought] | None, index: int) -> str:
        return f"{'msg' if kind is Said else 'rs'}_{self.id.removeprefix('resp_')}_{index}"

    def _item(self, kind: type[Said] | type[Thought], index: int, text: str | None, status: str) -> Item:
        id = self._item_id(kind, index)
        if kind is Said:
            content = [] if text is None else [_words(text)]
            return {"id": id, "type": "message", "status": status, "role": "assistant", "content": content}
        return {"id": id, "type": "reasoning", "status": status, "summary": [] if text is None else [_summary(text)]}

    def _ended(self, items: list[Item], finished: Finished) -> dict[str, Any]:
        """The response; incomplete, and so its last words, where the tokens ran out."""
        if finished.finish != "length":
            return self._response("completed", items, finished.usage)
        words = [n for n, item in enumerate(items) if item["type"] == "message"][-1:]
        items = [item | {"status": "incomplete"} if n in words else item for n, item in enumerate(items)]
        cut = {"incomplete_details": {"reason": "max_output_tokens"}}
        return self._response("incomplete", items, finished.usage) | cut

    def _response(self, status: str, output: list[Item], usage: Usage | None = None) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            **self.echo,
            "output": [*output],
            "usage": None if usage is None else _usage(usage),
        }

    def _event(self, kind: str, **values: Any) -> str:
        number, self._number = self._number, self._number + 1
        name = f"response.{kind}"
        return event({"type": name, "sequence_number": number, **values}, name)


def _words(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _summary(text: str) -> Item:
    return {"type": "summary_text", "text": text}


def _call(call: ToolCall, status: str) -> Item:
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
