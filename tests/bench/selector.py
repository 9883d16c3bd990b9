"""Somebody else's way to choose, as a program: JSON lines over its stdin and stdout (docs/bench.md has the protocol).

It is told the tools once, then each message, and names the tools that it would send. It runs with our rights.
"""

import asyncio
import json
import os
import shutil
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from cortex.base.clock import ticks_s
from cortex.base.errors import ToolFailed, UserError
from cortex.base.form_words import what_is_wrong
from cortex.integrations.process import running
from tests.bench.rows import Mark, Said

PROTOCOL = 1
LINE_BYTES = 1_048_576
ENDING_S = 2.0


class _Ready(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    ready: bool


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    id: Mark
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorLimits:
    """Seconds that a selector may take: until it is ready, and for each message."""

    start_s: float = 120.0
    answer_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorQuestion:
    """A message to choose for, and what was said before it."""

    message: str
    history: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorAnswer:
    """The tools that were named, the best first, and how long that took on the clock."""

    tools: tuple[str, ...]
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """The running program. `names`: the tools that it may name."""

    process: Process
    names: frozenset[str]


T = TypeVar("T", bound=BaseModel)


def answers(
    command: Sequence[str],
    tools: Sequence[Mapping[str, Any]],
    questions: Sequence[SelectorQuestion],
    limits: SelectorLimits,
) -> list[SelectorAnswer]:
    """What the program chooses for each question, in order; UserError where it ends, is late or answers wrong.

    `tools`: what it may choose from, each with `name`, `description`, `parameters`.
    """
    return asyncio.run(_answers(command, tools, questions, limits))


async def _answers(
    command: Sequence[str],
    tools: Sequence[Mapping[str, Any]],
    questions: Sequence[SelectorQuestion],
    limits: SelectorLimits,
) -> list[SelectorAnswer]:
    program = shutil.which(command[0]) or command[0]
    found: list[SelectorAnswer] = []
    try:
        async with running(
            [program, *command[1:]], cwd=Path.cwd(), line_bytes=LINE_BYTES, env=os.environ, is_heard=False
        ) as process:
            link = _Link(process=process, names=frozenset(str(tool["name"]) for tool in tools))
            greeting = {"protocol": PROTOCOL, "tools": list(tools)}
            ready = _read(
                _Ready, await _asked(link, greeting, limits.start_s, "the list of tools"), "the list of tools"
            )
            if not ready.ready:
                raise UserError('The selector answered the list of tools with "ready": false.')
            for number, question in enumerate(questions, 1):
                found.append(await _answer(link, question, number, limits.answer_s))
    except ToolFailed as error:
        raise UserError(f"The selector could not be used: {error.message}") from error
    return found


async def _answer(link: _Link, question: SelectorQuestion, number: int, limit_s: float) -> SelectorAnswer:
    what = f"message {number}"
    history = [{speaker: text} for speaker, text in question.history]
    started_s = ticks_s()
    line = await _asked(link, {"id": str(number), "message": question.message, "history": history}, limit_s, what)
    ms = (ticks_s() - started_s) * 1000
    reply = _read(_Reply, line, what)
    if reply.id != str(number):
        raise UserError(f"The selector answered {what} with the id {reply.id!r}; it must be {str(number)!r}.")
    unknown = next((name for name in reply.tools if name not in link.names), None)
    if unknown is not None:
        raise UserError(f"The selector answered {what} with {unknown!r}, which is none of the tools it was given.")
    return SelectorAnswer(tools=tuple(dict.fromkeys(reply.tools)), ms=ms)


async def _asked(link: _Link, line: Mapping[str, Any], limit_s: float, what: str) -> bytes:
    """The line that comes back."""
    process = link.process
    if process.stdin is None or process.stdout is None:
        raise UserError("The selector has no stdin or stdout.")
    try:
        async with asyncio.timeout(limit_s):
            with suppress(ConnectionError):  # it has ended: what it says last is read, and then nothing
                process.stdin.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
                await process.stdin.drain()
            found = await process.stdout.readline()
    except TimeoutError as error:
        raise UserError(f"The selector did not answer {what} within {limit_s:g} s.") from error
    except ValueError as error:
        raise UserError(f"The selector answered {what} with a line of more than {LINE_BYTES:,} bytes.") from error
    if not found.endswith(b"\n"):
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), ENDING_S)
        code = "" if process.returncode is None else f" with exit code {process.returncode}"
        raise UserError(f"The selector ended{code} before it answered {what}.")
    return found


def _read(kind: type[T], line: bytes, what: str) -> T:
    """The line as it should be."""
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        said = f"{place}: {what_is_wrong(first)}" if place else what_is_wrong(first)
        shown = line.decode("utf-8", "replace").strip()[:80]
        raise UserError(f"The selector answered {what} with {shown!r}: {said}.") from error
