"""Makes `before_calendars.tar.xz`: a home as commit 007febe2 left it when it was killed in the middle of its work.

    git worktree add OLD 007febe2
    PYTHONPATH=OLD python tests/homes/left_before_calendars.py

Made as `left_2026_11_21.py` says, with what `left_before_face.py` has. Besides: a snippet of one's own, and a reminder
and a job by the clock, which the calendar shows from then on.
"""

import sys
from pathlib import Path

from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.homes import left_before_face

SNIPPET = ("bins", "Which bin goes out this week?")
WEEKLY = "Weekly look"
RULES = left_before_face.RULES
furnish = left_before_face.furnish


def people_s_days(daemon: Daemon, ada: Caller) -> None:
    """What stands in Ada's days, ahead of the rest."""
    ada.post("/snippets", name=SNIPPET[0], text=SNIPPET[1])
    ada.post("/jobs/new", name=WEEKLY, kind="message", prompt="Look.", when="every Monday at 8:00", time_zone="UTC")
    furnish(daemon, ada)


def make(target: Path) -> None:
    left_before_face.furnish = people_s_days
    left_before_face.make(target)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "before_calendars.tar.xz")
