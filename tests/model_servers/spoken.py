"""What a double answers with: words, reasoning and calls, and in which manner its server writes them."""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

Thinks = Literal["", "reasoning_content", "reasoning", "details", "chunks", "blocks"]
UsageForm = Literal["asked", "finish", "each", "x_groq", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A call of a tool; `arguments` go out as JSON. `id`: "" takes the next in the server's own form.

    `raw`: goes out in their place in chat completions: no text, or the object itself, as some servers send it.
    """

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    raw: Any = json.dumps

    @property
    def text(self) -> str:
        """The arguments as text."""
        return json.dumps(self.arguments, ensure_ascii=False)

    @property
    def sent(self) -> Any:
        """The arguments as they go out."""
        return self.text if self.raw is json.dumps else self.raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a server of chat completions writes an answer.

    `ids`: a format of call ids with the number `n`. `numbering`: of the pieces of calls: right, all zero, none.
    `ids_in`: which pieces bear the id. `is_whole`: a call comes in one piece. `thinks`: the field of the reasoning.
    `is_signed`: the first call of an answer bears a signature (Gemini). `usage`: where it stands. `cached`: its keys
    for cached tokens, dotted. `finish`: the reason; "auto" is the right one, None leaves it out. `has_null_end`: a
    last delta with a finish of null behind it. `is_done_said`: `data: [DONE]`. `noise`: bytes between the events.
    `newline`: between lines. `cut`: characters of a piece of text; 0: words. `has_empty_first`: a first chunk without
    choices (Azure's filter results). `space`: between `data:` and what follows. `is_together`: all calls stand in one
    piece; `in_one`: the whole answer does, with the reason of its end.
    """

    ids: str = "call_{n:024d}"
    numbering: Literal["right", "zero", "none"] = "right"
    ids_in: Literal["first", "all", "empty"] = "first"
    is_whole: bool = False
    thinks: Thinks = ""
    is_signed: bool = False
    usage: UsageForm = "asked"
    cached: tuple[str, ...] = ("prompt_tokens_details.cached_tokens",)
    finish: str | None = "auto"
    has_null_end: bool = False
    is_done_said: bool = True
    noise: bytes = b""
    cut: int = 0
    newline: bytes = b"\n"
    has_empty_first: bool = False
    space: bytes = b" "
    is_together: bool = False
    in_one: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer. `manner`: fields of the row's manner that differ this time. `cached`: tokens told as cached.

    `ends`: at its limit of output tokens, or as the window is full.
    `breaks`: what happens in the middle: an error event, the content filter, or the connection is dropped.
    `pauses`: behind more than half of it the double waits until it is told to go on. `packet`: bytes that are sent at
    once; 0: an event. `is_whole`: in one piece, even if a stream was asked for.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[Use, ...] = ()
    manner: dict[str, Any] = field(default_factory=dict)
    cached: int = 0
    breaks: Literal["", "error", "filter", "drop", "window"] = ""
    ends: Literal["", "length", "window"] = ""
    pauses: bool = False
    packet: int = 0
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """The row's own refusal of this kind, whatever was asked. `in_stream`: as an event of a stream that began."""

    kind: str
    retry_after: str = ""
    in_stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a proxy in front of the server, or a body that is no answer."""

    status: int
    body: str | dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """No answer: the connection is dropped ahead of it, behind the head, or in the middle of the body."""

    phase: Literal["before", "head", "body"]


Answer = Said | Refuse | Page | Hang


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What the model of a double can do; a scene narrows it. `window`, `output`: tokens.

    `refuses`: parameters it does not take. `bad_tool`: a tool whose schema it refuses. `model`: the one it has.
    """

    tools: bool = True
    pictures: bool = True
    window: int = 0
    output: int = 0
    refuses: frozenset[str] = frozenset()
    bad_tool: str = ""
    thinks: bool = False
    model: str = ""
