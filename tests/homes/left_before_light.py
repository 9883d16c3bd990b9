"""Makes `before_light.tar.xz`: a home as commit 032fc2e7 left it when it was killed in the middle of its work.

    git worktree add OLD 032fc2e7
    PYTHONPATH=OLD python tests/homes/left_before_light.py

Made as `left_2026_11_21.py` says, with what `left_before_prices.py` has. Besides: a chat of several turns, with a hello
and a tool in it, whose log, plans and steps that version kept at length.
"""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.homes import left_before_prices
from tests.homes.left_2026_11_21 import PATIENCE_S, one, until
from tests.scripted_server import Use, rule

HELLO = "hello there, how are you"
SUGAR = "add sugar to my shopping list"
TALK = (
    (HELLO, "I am well."),
    (SUGAR, "Sugar is on your list."),
    ("what did I just ask for?", "You asked for sugar."),
)
RULES = (
    rule("just ask", "You asked for sugar."),
    rule("hello", "Hello! I am well."),
    rule("sugar", Use("task_create", {"title": "sugar"}), "Sugar is on your list."),
    *left_before_prices.RULES,
)
teach = left_before_prices.teach


def talk(daemon: Daemon, ada: Caller) -> None:
    """Several turns in one chat, ahead of the backup."""
    chat = "new"
    for said, answer in TALK:
        chat = ada.send(chat, said)
        ada.until_idle(chat)
        assert answer in ada.get(f"/c/{chat}").text
    until(lambda: one(daemon, "SELECT count(*) FROM turns WHERE state <> 'done'") == 0)
    teach(daemon, ada)


def forget_the_refit(daemon: Daemon) -> None:
    """Its 3 MB say nothing of what this home is for."""
    with closing(sqlite3.connect(daemon.home / "cortex.db", timeout=PATIENCE_S)) as rows, rows:
        rows.execute("DELETE FROM refits")


def make(target: Path) -> None:
    left_before_prices.RULES = RULES
    left_before_prices.teach = talk
    left_before_prices.shorten = forget_the_refit
    left_before_prices.make(target)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "before_light.tar.xz")
