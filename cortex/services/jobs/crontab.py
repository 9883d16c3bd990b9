"""Reads the text of a crontab, line by line: what each would be as a job, or why it is none. Saves nothing.

A line's command becomes a prompt, for Cortex asks a model and runs no shell by itself; the comment above it, its name.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from cortex.base.errors import ToolFailed
from cortex.ports.schedule import Timing, Timings
from cortex.storage.job_rows import JobValues

LINES_MOST = 500
_VARIABLE = re.compile(r"([A-Za-z_]\w*)\s*=\s*(.*)")
_NICKNAME = re.compile(r"(@\w+)\s+(.+)")
_LINE = re.compile(r"((?:\S+\s+){4}\S+)\s+(.+)")
_ZONES = ("CRON_TZ", "TZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class CrontabLine:
    """A line that is meant to do something. `why`: why it is no job, or what was left out of it; "" for a clean one."""

    number: int
    text: str
    name: str = ""
    prompt: str = ""
    timing: Timing | None = None
    next_at: datetime | None = None
    why: str = ""


def read_crontab(text: str, timings: Timings, now: datetime, time_zone: str) -> tuple[CrontabLine, ...]:
    """Every line but blank ones and comments, in order; environment lines say what becomes of them."""
    found: list[CrontabLine] = []
    zone, above = time_zone, ""
    for number, raw in enumerate(text.splitlines()[:LINES_MOST], start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            above = line.lstrip("# ").strip() if line else ""
            continue
        variable = _VARIABLE.fullmatch(line)
        if variable:
            name, value = variable[1], variable[2].strip("\"' ")
            zone = value if name in _ZONES else zone
            why = f"the times below are in {value}" if name in _ZONES else "skipped: a job has no environment"
            found.append(CrontabLine(number=number, text=line, why=why))
        else:
            found.append(_job(number, line, above, timings, now, zone))
        above = ""
    return tuple(found)


def _job(number: int, line: str, above: str, timings: Timings, now: datetime, zone: str) -> CrontabLine:
    parts = _NICKNAME.fullmatch(line) or _LINE.fullmatch(line)
    if parts is None:
        return CrontabLine(number=number, text=line, why="not a crontab line: five fields, then a command")
    when, command = " ".join(parts[1].split()), parts[2].strip()
    if when.lower() == "@reboot":
        return CrontabLine(number=number, text=line, why="jobs run at times; there is no @reboot")
    command, has_input = _command(command)
    try:
        timing = timings.read(when, now, zone)
    except ToolFailed as error:
        return CrontabLine(number=number, text=line, why=error.message)
    return CrontabLine(
        number=number,
        text=line,
        name=(above or command)[:80],
        prompt=f"Run this command and summarize its output: {command}",
        timing=timing,
        next_at=next(iter(timings.following(timing, now, 1)), None),
        why="the input after the % sign is skipped" if has_input else "",
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


def _command(text: str) -> tuple[str, bool]:
    """The command without what cron would feed it, and whether there was any of that."""
    command, *rest = re.split(r"(?<!\\)%", text, maxsplit=1)
    return command.replace("\\%", "%").strip(), bool(rest)
