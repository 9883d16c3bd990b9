"""Reads what lines of a crontab would be as jobs, or why not. Saves nothing; `integrations/foreign/` reads the text.

A line's command becomes a prompt, for Cortex asks a model and runs no shell by itself; the comment above it, its name.
"""

import asyncio
import io
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from cortex.base.errors import ToolFailed
from cortex.ports.foreign import ForeignReader, all_of
from cortex.ports.schedule import Timing, Timings
from cortex.storage.job_rows import JobValues

_ZONES = ("CRON_TZ", "TZ")


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", str_max_length=2_000)
    number: int
    text: str
    why: str = ""
    variable: str = ""
    value: str = ""
    when: str = ""
    command: str = ""
    has_input: bool = False
    name: str = Field(default="", max_length=80)


class CrontabLine(Struct, frozen=True, kw_only=True):
    """A line that is meant to do something. `why`: why it is no job, or what was left out of it; "" for a clean one."""

    number: int
    text: str
    name: str = ""
    prompt: str = ""
    timing: Timing | None = None
    next_at: datetime | None = None
    why: str = ""


async def read_crontab(
    foreign: ForeignReader, text: str, timings: Timings, now: datetime, time_zone: str
) -> tuple[CrontabLine, ...]:
    """Every line but blank ones and comments, in order; environment lines say what becomes of them. UserError."""
    lines = await all_of(foreign, "crontab", io.BytesIO(text.encode("utf-8", "replace")), _Line)
    return await asyncio.to_thread(_jobs, lines, timings, now, time_zone)


def _jobs(lines: Sequence[_Line], timings: Timings, now: datetime, zone: str) -> tuple[CrontabLine, ...]:
    found: list[CrontabLine] = []
    for line in lines:
        if line.variable:
            zone = line.value if line.variable in _ZONES else zone
            is_zone = line.variable in _ZONES
            why = f"the times below are in {line.value}" if is_zone else "skipped: a job has no environment"
            found.append(CrontabLine(number=line.number, text=line.text, why=why))
        else:
            found.append(_job(line, timings, now, zone))
    return tuple(found)


def _job(line: _Line, timings: Timings, now: datetime, zone: str) -> CrontabLine:
    why = line.why or ("jobs run at times; there is no @reboot" if line.when.lower() == "@reboot" else "")
    if why:
        return CrontabLine(number=line.number, text=line.text, why=why)
    try:
        timing = timings.read(line.when, now, zone)
    except ToolFailed as error:
        return CrontabLine(number=line.number, text=line.text, why=error.message)
    return CrontabLine(
        number=line.number,
        text=line.text,
        name=line.name,
        prompt=f"Run this command and summarize its output: {line.command}",
        timing=timing,
        next_at=next(iter(timings.following(timing, now, 1)), None),
        why="the input after the % sign is skipped" if line.has_input else "",
    )


def values_of(line: CrontabLine, timing: Timing) -> JobValues:
    """The job that a line would be."""
    return JobValues(
        name=line.name,
        prompt=line.prompt,
        timing_kind=timing.kind,
        expression=timing.expression,
        time_zone=timing.time_zone,
        words=timing.words,
        typed=timing.typed,
        is_tainted=False,
        is_private=False,
    )
