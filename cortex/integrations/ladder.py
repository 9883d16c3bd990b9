"""Finds the rung of the sandbox that works on this machine, by really running something on each: best first.

`sandbox.py` runs and keeps what is found; why a rung does not work is told in words.
"""

import errno
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from msgspec import Struct

from cortex.base.errors import ToolFailed
from cortex.integrations import landlock, seccomp
from cortex.integrations.process import ProcessResult, can_count

Level = Literal["bubblewrap", "landlock", "none"]

SHORT_OF = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)  # processes, memory, files: not for good


class Probe(Struct, frozen=True, kw_only=True):
    """The abilities of this machine, and why not more. `is_final`: whether it would say so at any other time."""

    level: Level
    reason: str
    is_final: bool = True


async def climb(
    levels: Sequence[Level], bubblewrap: str, attempt: Callable[[Level], Awaitable[ProcessResult]]
) -> Probe:
    """The first of `levels` on which `attempt`, an `echo ready`, comes to its end; `bubblewrap` is its program."""
    if lacking := seccomp.lacking():
        return Probe(level="none", reason=lacking)
    if not can_count():
        return Probe(level="none", reason="This kernel does not tell a process's children (CONFIG_PROC_CHILDREN).")
    reasons: list[str] = []
    is_final = True
    for level in levels:
        if reason := _lacking(level, bubblewrap):
            reasons.append(reason)
            continue
        reason, is_lasting = await _tried(level, attempt)
        if not reason:
            return Probe(level=level, reason=" ".join(reasons), is_final=is_final)
        reasons.append(reason)
        is_final = is_final and is_lasting
    return Probe(level="none", reason=" ".join(reasons) or "Switched off.", is_final=is_final)


def _lacking(level: Level, bubblewrap: str) -> str:
    """Why `level` need not be tried, or ""."""
    if level == "bubblewrap":
        return "" if bubblewrap else "bubblewrap is not installed (package `bubblewrap`)."
    return landlock.lacking()


async def _tried(level: Level, attempt: Callable[[Level], Awaitable[ProcessResult]]) -> tuple[str, bool]:
    """Why `level` does not work here, and whether that lasts; an empty text when it works."""
    try:
        ended = await attempt(level)
    except ToolFailed as error:
        cause = error.__cause__
        return error.message, not (isinstance(cause, OSError) and cause.errno in SHORT_OF)
    if ended.code == 0 and ended.out == "ready\n":
        return "", True
    told = (ended.err or ended.killed).strip()[:200] or f"exit code {ended.code}"
    is_short = any(os.strerror(number) in ended.err for number in SHORT_OF)
    return f"{level} does not work here: {told}.", not (ended.killed or is_short)
