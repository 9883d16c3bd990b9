"""Cortex's own message types: what is stored, replayed and mapped to a provider's wire.

Portable JSON both ways (`to_json`, `from_json`); `providers/pydantic.py` is the only mapper to a wire format.
"""

from dataclasses import dataclass
from typing import Any, Literal, assert_never

Speaker = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Words of the speaker."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """A model's reasoning, shown folded. `opaque` is the provider's own part, sent back to it verbatim."""

    text: str
    opaque: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One use of a tool as the model asked for it; `arguments` is the JSON text exactly as it arrived."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a call gave back. `tainted`: the text came from outside and may carry somebody else's instructions."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    tainted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """A provider's part that we keep verbatim (so that cached prefixes stay byte-equal) and do not read."""

    provider: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reveal:
    """From here on these tools may be called: a wire that declares late carries their schemas at this place."""

    names: tuple[str, ...]


Part = Text | Thinking | ToolCall | ToolResult | Opaque | Reveal


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    speaker: Speaker
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All its words, joined by blank lines."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def said(self) -> str:
        """What a person reads of it: a user's own words, without what Cortex put behind them (date, notes)."""
        first = next((part.text for part in self.parts if isinstance(part, Text)), "")
        return first if self.speaker == "user" else self.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Its tool calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """A tool as a model sees it; `parameters` is a minified JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call, as the provider counted them. `input_tokens` includes the cached and written ones."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0


def user(text: str) -> Message:
    """A user's message of plain text."""
    return Message(speaker="user", parts=(Text(text=text),))


def assistant(text: str, *calls: ToolCall) -> Message:
    """An assistant's message: words, then calls. No words, no text part."""
    words: tuple[Part, ...] = (Text(text=text),) if text else ()
    return Message(speaker="assistant", parts=(*words, *calls))


def results(*items: ToolResult) -> Message:
    """The message that answers the calls of the assistant's message before it."""
    return Message(speaker="tool", parts=items)


def part_to_json(part: Part) -> dict[str, Any]:
    """A part as portable JSON with its `kind`."""
    match part:
        case Text():
            return {"kind": "text", "text": part.text}
        case Thinking():
            return {"kind": "thinking", "text": part.text, "opaque": part.opaque}
        case ToolCall():
            return {"kind": "call", "id": part.id, "name": part.name, "arguments": part.arguments}
        case ToolResult():
            return {
                "kind": "result",
                "call_id": part.call_id,
                "name": part.name,
                "text": part.text,
                "is_error": part.is_error,
                "tainted": part.tainted,
            }
        case Opaque():
            return {"kind": "opaque", "provider": part.provider, "data": part.data}
        case Reveal():
            return {"kind": "reveal", "names": list(part.names)}
        case _:
            assert_never(part)


_KINDS: dict[str, type[Text] | type[Thinking] | type[ToolCall] | type[ToolResult] | type[Opaque]] = {
    "text": Text,
    "thinking": Thinking,
    "call": ToolCall,
    "result": ToolResult,
    "opaque": Opaque,
}


def part_from_json(data: dict[str, Any]) -> Part:
    """The part that `part_to_json` wrote; KeyError for an unknown kind."""
    if data["kind"] == "reveal":
        return Reveal(names=tuple(data["names"]))
    fields = {key: value for key, value in data.items() if key != "kind"}
    return _KINDS[data["kind"]](**fields)


def to_json(message: Message) -> dict[str, Any]:
    """A message as portable JSON."""
    return {"speaker": message.speaker, "parts": [part_to_json(part) for part in message.parts]}


def from_json(data: dict[str, Any]) -> Message:
    """The message that `to_json` wrote."""
    return Message(speaker=data["speaker"], parts=tuple(part_from_json(part) for part in data["parts"]))
