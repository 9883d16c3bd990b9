"""How many files and connections a process may have open at once: raised at a start, told by the doctor.

Each open page is one; beyond what is left `web/connections.py` answers 503. Called ahead of everything else by
`web/__main__.py`.
"""

import os
import resource
from contextlib import suppress

from msgspec import Struct

WANTED = 8_192  # for 4,000 connections (web/connections.py: MOST), as many files beside them, and then some
FEW = 1_024  # what most systems allow where nobody asks for more


class OpenFiles(Struct, frozen=True, kw_only=True):
    """Count what a process has open, and say what it may have."""

    count: int
    most: int


def raise_limit() -> None:
    """Let this process open what Cortex wants, as far as the system allows; what was allowed before stays.

    Children inherit it, as they inherit what a person sets by ulimit. A system that forbids it is left as it is.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(WANTED, _number(hard))
    if _number(soft) < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def of_process(pid: int) -> OpenFiles | None:
    """Return what the process has and may have; None where that cannot be seen: it is another person's, or ended."""
    try:
        if pid == os.getpid():
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            return OpenFiles(count=len(os.listdir("/dev/fd")), most=_number(soft))
        soft, _ = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        return OpenFiles(count=len(os.listdir(f"/proc/{pid}/fd")), most=_number(soft))
    except (OSError, AttributeError):  # macOS has neither of another process's
        return None


def _number(limit: int) -> int:
    """The limit as a number: one that is none is the largest that is meant anywhere."""
    return 1 << 20 if limit == resource.RLIM_INFINITY else limit
