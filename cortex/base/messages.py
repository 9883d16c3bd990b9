"""Cortex's own message types: what is stored, replayed and mapped to a provider's wire.

Portable JSON both ways (`to_json`, `from_json`); `providers/` maps them to the wires.
"""

from typing import Any, Literal

from msgspec import Struct

from cortex.base import portable

Speaker = Literal["system", "user", "assistant", "tool"]

# Heads the calls that an earlier try of the message made, in a note behind its words.
DONE_ALREADY = "[Done already, by a try that was set aside. It stands: do not do it again.]"


class Text(Struct, frozen=True, kw_only=True):
    """Words of the speaker."""

    text: str


class Thinking(Struct, frozen=True, kw_only=True):
    """A model's reasoning, shown folded. `opaque` is the provider's own part, sent back to it verbatim."""

    text: str
    opaque: dict[str, Any] | None = None


class ToolCall(Struct, frozen=True, kw_only=True):
    """One use of a tool as the model asked for it; `arguments` is the JSON text exactly as it arrived.

    `is_written`: it wrote the call as text, where anybody's words may stand: the gate asks before it changes anything.
    """

    id: str
    name: str
    arguments: str
    is_written: bool = False


class ToolResult(Struct, frozen=True, kw_only=True):
    """The result of a call. `tainted`: the text came from outside and may carry somebody else's instructions."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    tainted: bool = False


class Opaque(Struct, frozen=True, kw_only=True):
    """A provider's part that we keep verbatim (so that cached prefixes stay byte-equal) and do not read."""

    provider: str
    data: dict[str, Any]


class Reveal(Struct, frozen=True, kw_only=True):
    """From here on these tools may be called: a wire that declares late carries their schemas at this place."""

    names: tuple[str, ...]


class Picture(Struct, frozen=True, kw_only=True):
    """A picture that the user gave: the document's id, the hash of its file, its size as models get it, in pixels."""

    document: str
    sha256: str
    name: str
    media_type: str
    width: int
    height: int


Part = Text | Picture | Thinking | ToolCall | ToolResult | Opaque | Reveal


class Message(Struct, frozen=True, kw_only=True):
    """One message of a conversation."""

    speaker: Speaker
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All its words, joined by blank lines."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, Text) and part.text)

    @property
    def said(self) -> str:
        """Return what a person reads of it: a user's own words, without what Cortex put behind them (date, notes)."""
        first = next((part.text for part in self.parts if isinstance(part, Text)), "")
        return first if self.speaker == "user" else self.text

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Its pictures, in order."""
        return tuple(part for part in self.parts if isinstance(part, Picture))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Its tool calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


class ToolSchema(Struct, frozen=True, kw_only=True):
    """A tool as a model sees it; `parameters` is a minified JSON schema of type object.

    `strict`: the provider is to hold the model to the schema, which has to be of a form that it takes.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool = False


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one model call, as the provider counted them. `input_tokens` includes the cached and written ones."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0


def user(text: str, *behind: str, pictures: tuple[Picture, ...] = ()) -> Message:
    """A user's message: the words, pictures, and what Cortex puts behind them."""
    texts = tuple(Text(text=each) for each in filter(None, behind))
    return Message(speaker="user", parts=(Text(text=text), *pictures, *texts))


def assistant(text: str, *calls: ToolCall) -> Message:
    """An assistant's message: words, then calls. No words, no text part."""
    words: tuple[Part, ...] = (Text(text=text),) if text else ()
    return Message(speaker="assistant", parts=(*words, *calls))


def results(*items: ToolResult) -> Message:
    """The message that answers the calls of the assistant's message before it."""
    return Message(speaker="tool", parts=items)


_KINDS: dict[str, type[Part]] = {
    "text": Text,
    "picture": Picture,
    "thinking": Thinking,
    "call": ToolCall,
    "result": ToolResult,
    "opaque": Opaque,
    "reveal": Reveal,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_json(message: Message) -> dict[str, Any]:
    """A message as portable JSON; each part says its kind."""
    parts = [{"kind": _NAMES[type(part)], **portable.plain(part)} for part in message.parts]
    for part in parts:
        if part.get("is_written") is False:  # calls are kept as they always were
            del part["is_written"]
    return {"speaker": message.speaker, "parts": parts}


def from_json(data: dict[str, Any]) -> Message:
    """The message that `to_json` wrote; KeyError for an unknown kind."""
    parts = (portable.read(_KINDS[part["kind"]], part) for part in data["parts"])
    return Message(speaker=data["speaker"], parts=tuple(parts))
