"""Scripted conversations: what is asked, which tools each round needs, what they give back, the answer.

`talks/*.jsonl`, a turn a line: `conversation`, `turn`, `text`, `rounds` (lists of {tool, arguments, result, tokens}),
`answer`. `tokens` stretches a result with made-up lines, so that results are as long as real ones.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cortex.base import tokens
from cortex.base.errors import UserError
from cortex.base.form_words import what_is_wrong

FOLDER = Path(__file__).parent / "talks"
_WORDS = """
    north garden order valve report paper window market letter winter copper signal bridge lemon carpet ticket engine
    harbour candle forest meeting silver pocket river station blanket number corner sugar ladder museum travel
"""


class _Scripted(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Call(_Scripted):
    tool: str
    arguments: dict[str, Any] = {}
    result: str
    tokens: int = 0


class _Line(_Scripted):
    conversation: str
    turn: int
    text: str
    rounds: tuple[tuple[_Call, ...], ...] = ()
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that a round needs, with what it gives back."""

    tool: str
    arguments: Mapping[str, Any]
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkTurn:
    """What a person asks, the calls of each round, and the answer."""

    text: str
    rounds: tuple[tuple[Call, ...], ...]
    answer: str


Talk = tuple[TalkTurn, ...]


def read(path: Path) -> tuple[Talk, ...]:
    """The conversations of a file in their order; UserError names file and line of a slip."""
    talks: dict[str, list[TalkTurn]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = _Line.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise UserError(f"{path.name}, line {number}: {place}: {what_is_wrong(first)}.") from error
        rounds = tuple(tuple(_call(call) for call in each) for each in row.rounds)
        talks.setdefault(row.conversation, []).append(TalkTurn(text=row.text, rounds=rounds, answer=row.answer))
    return tuple(tuple(turns) for turns in talks.values())


def _call(call: _Call) -> Call:
    return Call(tool=call.tool, arguments=call.arguments, result=stretched(call.result, call.tokens))


def stretched(text: str, wanted_tokens: int) -> str:
    """The text with made-up lines behind it until it has about that many tokens; the same text gives the same lines."""
    missing = wanted_tokens - tokens.count(text)
    if missing <= 0:
        return text
    dice = random.Random(text)  # noqa: S311 - made-up data, no secret
    lines: list[str] = []
    while missing > 0:
        lines.append(" ".join(dice.choices(_WORDS.split(), k=9)) + f" {dice.randrange(100)}")
        missing -= 12
    return "\n".join((text, *lines))
