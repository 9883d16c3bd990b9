"""Makes `before_prices.tar.xz`: a home as commit c044b940 left it when it was killed in the middle of its work.

    git worktree add OLD c044b940
    PYTHONPATH=OLD python tests/homes/left_before_prices.py

Made as `left_2026_11_21.py` says, with what `left_2026_11_27.py` has. Besides: what that version knew of choosing
tools, which are a phrase and examples of this server, a shipped phrase that was left out and a refit in force; and a
job that is at work when the process dies.
"""

import hashlib
import json
import re
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from tests.children import Program
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.daemon import Daemon
from tests.homes import left_2026_11_21, left_2026_11_27
from tests.homes.left_2026_11_21 import HaltingDaemon, one, pack, until
from tests.homes.left_2026_11_27 import CUT_OFF, ENDED, FILE, GIVEN, HOOK, QUEUED, SHARED, SKILL, WAITING
from tests.scripted_server import Rule, ScriptedServer, Use, rule

OWN = "krimskrams the blue box is in the attic"
PHRASE = "krimskrams"
LEFT_OUT = "scratchpad"
VERBS = ("feed", "wake", "warm", "cool", "brush", "weigh", "wash", "calm")
EXAMPLES = tuple(f"{verb} the dragon" for verb in VERBS)
AT_WORK = "Put rye on my shopping list."
RULES: tuple[Rule, ...] = (
    rule("rye", Use("task_create", {"title": "rye"}), "Rye is on your list."),
    rule(PHRASE, Use("scratch_append", {"text": "blue box: attic"}), "It is on your scratchpad."),
    rule("dragon", Use("scratch_append", {"text": "dragon: calm"}), "The dragon is written down."),
    *left_2026_11_27.RULES,
)
HALT = left_2026_11_27.HALT.replace(
    '"bread" in call.arguments', 'any(one in call.arguments for one in ("bread", "rye"))'
)


class Halting(HaltingDaemon):
    """In a process that begins by itself, and so reads the hook."""

    starts = Program


def make(target: Path) -> None:
    left_2026_11_21.HALT = HALT
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(*RULES) as model:
        daemon = Halting(Path(folder) / "home")
        daemon.start()
        try:
            with Caller(daemon) as ada:
                set_up(daemon, ada.set_up(), model)
                teach(daemon, ada)
                work(daemon, ada)
        finally:
            daemon.close()
        assert model.problems == []
        shorten(daemon)
        pack(daemon.home, target)


def set_up(daemon: Daemon, ada: Caller, model: ScriptedServer) -> None:
    """What people had; the token and the job's web address stand in `left.json`."""
    form = {"provider": "openai", "model": "scripted", "base_url": model.base_url, "api_key": model.api_key}
    ada.post("/models", name="scripted", streams="on", tools="on", **form)
    bob = ada.invite("Bob")
    ada.post("/tasks", title="apples", list_name=SHARED)
    ada.post("/lists/share", name=SHARED, people=[str(one(daemon, "SELECT id FROM accounts WHERE name = 'Bob'"))])
    shared = one(daemon, "SELECT list_id FROM task_list_members")
    bob.post(f"/lists/{shared}/accept")
    assert "apples" in bob.get("/tasks").text
    ada.post("/skills", title=SKILL[0], description=SKILL[1])
    ada.give(*FILE)
    ada.post("/jobs/new", name="Bell", prompt=HOOK, when="0 0 1 1 *", time_zone="UTC")
    bell = one(daemon, "SELECT id FROM jobs")
    page = ada.post(f"/jobs/{bell}/address", way="address").text
    address = re.search(r"/hooks/([\w-]+)", page)
    ada.post("/confirm", password=PASSWORD)
    made = re.search(r"cx-[\w-]+", ada.post("/account/tokens", name="script", role="chat").text)
    assert address
    assert made
    ended = ada.send("new", ENDED)
    until(lambda: "Milk is on your list." in ada.get(f"/c/{ended}").text)
    (daemon.home / GIVEN).write_text(json.dumps({"token": made[0], "address": f"/hooks/{address[1]}"}), "utf-8")
    bob.__exit__()


def teach(daemon: Daemon, ada: Caller) -> None:
    """What this server knows of its own, and a turn that used it."""
    ada.post(
        "/admin/tools/in/scratchpad",
        phrases=f"{PHRASE} [scratch_append]",
        no_phrases=LEFT_OUT,
        examples="\n".join(f"{said} [scratch_append]" for said in EXAMPLES),
        do="save",
    )
    ada.post("/admin/backups")
    ada.post("/admin/tools/learn", do="refit")
    assert one(daemon, "SELECT count(*) FROM refits WHERE is_in_force") == 1
    own = ada.send("new", OWN)
    until(lambda: "It is on your scratchpad." in ada.get(f"/c/{own}").text)


def work(daemon: Daemon, ada: Caller) -> None:
    """The job and the turns; then the kill."""
    until(lambda: one(daemon, "SELECT count(*) FROM turns WHERE state <> 'done'") == 0)
    ada.post("/jobs/new", name="Rye", prompt=AT_WORK, when="0 0 1 1 *", time_zone="UTC")
    rye = one(daemon, "SELECT id FROM jobs WHERE name = 'Rye'")
    ada.post(f"/jobs/{rye}/run")
    until(lambda: one(daemon, "SELECT count(*) FROM tasks WHERE title = 'rye'") == 1)
    cut_off = ada.send("new", CUT_OFF)
    ada.send("new", WAITING)
    until(lambda: one(daemon, "SELECT count(*) FROM calls WHERE state = 'intended'") == 2)
    until(lambda: one(daemon, "SELECT count(*) FROM tasks WHERE title = 'bread'") == 1)
    until(lambda: one(daemon, "SELECT count(*) FROM approvals WHERE state = 'asked'") == 1)
    ada.send(cut_off, QUEUED)
    daemon.kill9()
    assert one(daemon, "SELECT count(*) FROM turns WHERE state = 'queued'") == 1
    assert one(daemon, "SELECT state FROM slots") == "running"


def shorten(daemon: Daemon) -> None:
    """Of the refit's 3 MB the beginning alone, with its digest: that it is old stands beside them."""
    with closing(sqlite3.connect(daemon.home / "cortex.db", timeout=left_2026_11_21.PATIENCE_S)) as rows, rows:
        ((number, kept),) = rows.execute("SELECT number, substr(weights, 1, 1000) FROM refits").fetchall()
        digest = hashlib.sha256(kept).hexdigest()[:16]
        rows.execute("UPDATE refits SET weights = ?, digest = ? WHERE number = ?", (kept, digest, number))


if __name__ == "__main__":
    make(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "before_prices.tar.xz")
