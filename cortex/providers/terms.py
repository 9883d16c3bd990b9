"""What the three protocols share: the terms of one endpoint, the history made fit for it, and a finished answer.

`chat.py`, `responses.py` and `messages.py` build a request's body by these and read what comes; `wire.py` sends it.
"""

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.attachments import words_of_gone, words_of_unseen
from cortex.base.errors import ProviderError
from cortex.base.json_text import parsed
from cortex.base.messages import Message, Part, Picture, Text, ToolCall, ToolResult, Usage, assistant, user
from cortex.base.model import ModelEntry
from cortex.ports.loop import Delta, Request
from cortex.providers.late import Late
from cortex.providers.server_row import CallIds, ServerRow

NOTHING = "(nothing)"
_NOT_RUN = "(no result: it was not run)"
_GO_ON = "OK."  # between a result and a person's words, for who wants an answer there
# As an entry's parameters were named so far.
_SAME = {"stop": "stop_sequences", "reasoning_effort": "thinking"}
_SAFE = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_SHORT = 40
_NINE = re.compile(r"^[a-zA-Z0-9]{9}$")
_COUNT_MOST = 1_000_000_000  # above it a budget would be spent, and a database's number full, by one word of a server
_CALLS_MOST, _ARGUMENTS_MOST = 500, 2_000_000  # of one answer; characters of all
_ID_MOST, _NAME_MOST = 50_000, 200  # characters; some put a signature into an id


class Terms(Struct, frozen=True, kw_only=True):
    """The terms on which one model is spoken to. `name`: whose opaque parts go back to it, the maker or the host.

    `late`: how it takes tools that came after the prefix was cached.
    """

    entry: ModelEntry
    row: ServerRow
    name: str
    late: Late = "none"

    def streams(self, request: Request) -> bool:
        """Tell whether the answer is asked for as a stream."""
        return self.entry.streams and not self.leaves_out(request, "stream")

    def leaves_out(self, request: Request, parameter: str) -> bool:
        """Tell whether this parameter is not sent: the server refuses it, or it was asked to be left out."""
        return parameter in self.row.omits or parameter in self.entry.refused or parameter in request.without


Finish = Literal["stop", "length", "window", "filtered", "error"]


class Answer(Struct, kw_only=True):
    """The content of an answer. `finish`: None until it said how it ended; `is_over`: the protocol's own end."""

    parts: list[Part] = field(default_factory=list)
    finish: Finish | None = None
    is_over: bool = False
    usage: Usage | None = None


class AnswerReader(Protocol):
    """Reads the answer of one request. `answer`: what is known of its end so far."""

    answer: Answer

    def event(self, kind: str, data: Mapping[str, Any]) -> list[Delta]:
        """Take in one event of a stream; what a person sees of it."""
        ...

    def whole(self, body: Mapping[str, Any]) -> list[Delta]:
        """Take in an answer that came in one piece."""
        ...

    def end(self) -> tuple[list[Delta], Answer]:
        """Return what was held back, and the answer, once nothing more comes."""
        ...


def fitted(request: Request, terms: Terms) -> tuple[Message, ...]:
    """The history as this server takes it: each call with its result, in an order of speakers that it accepts.

    The same history gives the same messages, always: a longer one begins with those of the shorter.
    """
    found = _pair_results([message for message in map(_with_speakers, request.messages) if message.parts])
    order = terms.row.order
    if order == "strict":
        found = _answer_results(found)
    return tuple(found if order == "any" else _join_speakers(found))


def _with_speakers(message: Message) -> Message:
    """Cortex's own words in the middle are the user's side: few servers take instructions there."""
    if message.speaker == "system":
        return replace(message, speaker="user")
    is_said = any(
        (isinstance(part, Text) and part.text.strip()) or isinstance(part, ToolCall) for part in message.parts
    )
    return replace(message, parts=()) if message.speaker == "assistant" and not is_said else message


def _pair_results(messages: Sequence[Message]) -> list[Message]:
    """A call without a result gets one that says so; a result without its call is told in words."""
    found: list[Message] = []
    waiting: tuple[ToolCall, ...] = ()
    for message in (*messages, None):
        if waiting:
            items = [part for part in message.parts if isinstance(part, ToolResult)] if message else []
            told = {item.call_id: item for item in items}
            missing = [call for call in waiting if call.id not in told]
            if message is None or message.speaker != "tool":
                found.append(Message(speaker="tool", parts=tuple(map(_not_run, waiting))))
            elif missing:
                message = replace(message, parts=(*message.parts, *map(_not_run, missing)))
        if message is None:
            break
        if message.speaker == "tool":
            found += _with_calls(message, {call.id for call in waiting})
        else:
            found.append(message)
        waiting = message.calls if message.speaker == "assistant" else ()
    return found


def _not_run(call: ToolCall) -> ToolResult:
    return ToolResult(call_id=call.id, name=call.name, text=_NOT_RUN, is_error=True)


def _with_calls(message: Message, known: Collection[str]) -> list[Message]:
    """The results that answer a call, then the others in words."""
    fit = [part for part in message.parts if not isinstance(part, ToolResult) or part.call_id in known]
    lost = [part for part in message.parts if isinstance(part, ToolResult) and part.call_id not in known]
    found = [replace(message, parts=tuple(fit))] if any(isinstance(part, ToolResult) for part in fit) else []
    return [*found, *(user(f"[{part.name} gave: {part.text}]") for part in lost)]


def _answer_results(messages: Sequence[Message]) -> list[Message]:
    """An assistant's word between a result and the user's next ones."""
    found: list[Message] = []
    for message in messages:
        if found and found[-1].speaker == "tool" and message.speaker == "user":
            found.append(assistant(_GO_ON))
        found.append(message)
    return found


def _join_speakers(messages: Sequence[Message]) -> list[Message]:
    """Two messages of one person, or two answers, as one; and the user speaks first."""
    found: list[Message] = []
    for message in messages:
        is_same = bool(found) and found[-1].speaker == message.speaker and not found[-1].calls
        if is_same and message.speaker in ("user", "assistant"):
            found[-1] = replace(found[-1], parts=(*found[-1].parts, *message.parts))
        else:
            found.append(message)
    return [user(NOTHING), *found] if found and found[0].speaker == "assistant" else found


def call_id(text: str, form: CallIds) -> str:
    """The id in a form that the server takes; the same id gives the same one, always."""
    is_fit = {"any": True, "short": 0 < len(text) <= _SHORT, "safe": _SAFE.match(text), "nine": _NINE.match(text)}
    if is_fit[form]:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return digest[:9] if form == "nine" else f"call_{digest[:24]}"


def own_calls(calls: Sequence[ToolCall], request: Request) -> list[ToolCall]:
    """The calls of an answer with ids of their own: one that is empty, endless or was used before gets a fresh one.

    ProviderError for more of them than any answer means.
    """
    if len(calls) > _CALLS_MOST or sum(len(call.arguments) for call in calls) > _ARGUMENTS_MOST:
        raise ProviderError("its tool calls did not end.", kind="malformed")
    used = {call.id for message in request.messages for call in message.calls}
    found: list[ToolCall] = []
    for call in calls:
        is_fit = 0 < len(call.id) <= _ID_MOST and call.id not in used
        fresh = whole_text(call.id) if is_fit else f"call_{uuid.uuid4().hex[:24]}"
        used.add(fresh)
        name = whole_text(call.name)[:_NAME_MOST]
        found.append(ToolCall(id=fresh, name=name, arguments=whole_text(call.arguments) or "{}"))
    return found


def whole_text(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair: nothing can send or keep one."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object; what is none goes back under a name that says so."""
    try:
        found = parsed(call.arguments)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"INVALID_JSON": call.arguments}


def text_of(result: ToolResult) -> str:
    """Return what a result says, for wires that cannot mark an error."""
    text = result.text or NOTHING
    return json.dumps({"error": text}, ensure_ascii=False, separators=(",", ":")) if result.is_error else text


def seen_of(message: Message, request: Request, entry: ModelEntry) -> tuple[list[tuple[Picture, str]], str]:
    """The pictures of a user's message that are sent, with their bytes in base64, and its words.

    A line stands in the words for each picture that is not.
    """
    sent: list[tuple[Picture, str]] = []
    lines: list[str] = []
    sees = entry.takes_pictures and "pictures" not in request.without
    for picture in message.pictures:
        data = request.pictures.get(picture.sha256)
        if sees and data is not None:
            sent.append((picture, base64.b64encode(data).decode()))
        else:
            lines.append(words_of_gone(picture.name) if sees else words_of_unseen(picture.name))
    words = "\n\n".join(filter(None, (*lines, message.text)))
    return sent, words or ("" if sent else NOTHING)


def settings_of(request: Request, terms: Terms) -> dict[str, Any]:
    """The entry's own parameters, and over them what the request says, as JSON values.

    That a server refuses to be told how much to think is kept under one name, whatever its protocol calls it.
    """
    found: dict[str, Any] = {}
    own = dict(terms.entry.extra_params)
    for key, _ in request.parameters:
        own.pop(_SAME.get(key, key), None)
    for key, text in (*own.items(), *request.parameters):
        try:
            found[key] = parsed(text)
        except ValueError:
            found[key] = text
    if terms.leaves_out(request, "reasoning_effort"):
        return {key: value for key, value in found.items() if key not in ("thinking", "reasoning_effort")}
    return found


def number(value: object) -> int:
    """A count as an endpoint gives it, 0 for what is none: no answer has as many tokens or parts as `_COUNT_MOST`."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0
    return int(value) if 0 < value < _COUNT_MOST else 0
