"""Makes `before_face.tar.xz`: a home as commit a7cec132 left it when it was killed in the middle of its work.

    git worktree add OLD a7cec132
    PYTHONPATH=OLD python tests/homes/left_before_face.py

Made as `left_2026_11_21.py` says, with what `left_before_light.py` has. Besides: what a first page of the day shows
(a due task, a reminder that waits, one that was told), tasks in an order of their own, a note, a person who
was invited and did not come yet, and how Ada wants to be told.
"""

import sys
from pathlib import Path

from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.daemon import Daemon
from tests.homes import left_before_light, left_before_prices
from tests.homes.left_2026_11_21 import one, until
from tests.scripted_server import Rule, rule

DUE = "sign the school form"
LATER = "take the blue bin out"
TOLD = "water the plants"
LIST = "garden"
PLANTS = ("roses", "beans", "thyme")
NOTE = "Neighbours"
RULES: tuple[Rule, ...] = (rule("today", "A quiet day."), *left_before_light.RULES)
talk = left_before_light.talk


def furnish(daemon: Daemon, ada: Caller) -> None:
    """What a person has on an ordinary day, ahead of the backup."""
    ada.post("/tasks", title=DUE, list_name="inbox", due="2026-01-05")
    for title in PLANTS:
        ada.post("/tasks", title=title, list_name=LIST)
    last = one(daemon, "SELECT id FROM tasks WHERE title = 'thyme'")
    ada.post(f"/tasks/{last}/move", by="-1")
    ada.post("/reminders", words=f"remind me in 2 seconds to {TOLD}")
    ada.post("/reminders", words=f"remind me tomorrow at 20:00 to {LATER}")
    until(lambda: one(daemon, "SELECT count(*) FROM notices WHERE text || title LIKE '%water the plants%'") == 1)
    ada.post("/notes", name=NOTE)
    ada.post("/confirm", password=PASSWORD)
    ada.post("/admin/users", name="Mia", rank="member")
    ada.post("/start", hidden="1")
    talk(daemon, ada)


def make(target: Path) -> None:
    left_before_light.RULES = RULES
    left_before_light.talk = furnish
    left_before_light.make(target)
    assert left_before_prices.teach is furnish


if __name__ == "__main__":
    make(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "before_face.tar.xz")
