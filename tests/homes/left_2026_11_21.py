"""Makes `2026-11-21.tar.xz`: a home as commit 35a5629 left it when it was killed in the middle of its work.

    git worktree add OLD 35a5629
    PYTHONPATH=OLD python tests/homes/left_2026_11_21.py

(in an environment with that commit's `requirements/test.txt`). That commit's own daemon writes all of it, asked over
its own pages with its own test helpers. One conversation has ended. In two others the process dies between the effect
of a call and its record; behind the first of them a message is queued. A fourth waits for a person's yes, and a job
comes every hour.
"""

import io
import os
import shutil
import sqlite3
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.scripted_server import ScriptedServer, Use, rule

ENDED = "add milk to my shopping list"
CUT_OFF = "add bread to my shopping list"
QUEUED = "and what did I say about eggs?"
CUT_OFF_ONCE = "jot down that the spare key is at number 9"
WAITING = "send me a joke every day at 9 in the evening"
DUE = "Say that the hour has struck."
LINE = "spare key: number 9"
RULES = (
    rule("milk", Use("task_create", {"title": "milk"}), "Milk is on your list."),
    rule("bread", Use("task_create", {"title": "bread"}), "Bread is on your list."),
    rule("eggs", "You said nothing about eggs."),
    rule("spare key", Use("scratch_append", {"text": LINE}), "I looked after the spare key."),
    rule("joke", Use("cron_add", {"prompt": "Tell a joke.", "when": "every day at 21:00"}), "Jokes are set up."),
    rule("hour", "The hour has struck."),
)
# The daemon stands still where a kill is wanted: what these calls do is done, and that they did it is not written down.
HALT = f"""
import asyncio
from cortex.services.calls import Book
end = Book.end
async def halting(self, turn, call, ending):
    if "bread" in call.arguments or {LINE!r} in call.arguments:
        await asyncio.Event().wait()
    return await end(self, turn, call, ending)
Book.end = halting
"""
LEFT_OUT = ("*-wal", "*-shm", "*.log", "*.lock", "vectors", "logs")
PATIENCE_S = 120.0


class HaltingDaemon(Daemon):
    """A daemon that never records the end of the calls that are to be cut off."""

    def _environment(self) -> dict[str, str]:
        found = super()._environment()
        hook = self.home.parent / "hook"
        hook.mkdir(exist_ok=True)
        (hook / "sitecustomize.py").write_text(HALT, encoding="utf-8")
        return {**found, "PYTHONPATH": f"{hook}{os.pathsep}{found['PYTHONPATH']}"}


def make(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(*RULES) as model:
        daemon = HaltingDaemon(Path(folder) / "home")
        daemon.start()
        try:
            with Caller(daemon) as ada:
                work(daemon, ada.set_up(), model)
        finally:
            daemon.close()
        assert model.problems == []
        pack(daemon.home, target)


def work(daemon: Daemon, ada: Caller, model: ScriptedServer) -> None:
    """All of it; then the kill."""
    form = {"provider": "openai", "model": "scripted", "base_url": model.base_url, "api_key": model.api_key}
    ada.post("/models", name="scripted", streams="on", tools="on", **form)
    ada.post("/jobs/new", name="Hourly word", prompt=DUE, when="0 * * * *", time_zone="UTC", fire_within_s="7200")
    ended = ada.send("new", ENDED)
    until(lambda: "Milk is on your list." in ada.get(f"/c/{ended}").text)
    until(lambda: one(daemon, "SELECT count(*) FROM turns WHERE state = 'done'") == 1)
    cut_off = ada.send("new", CUT_OFF)
    ada.send("new", CUT_OFF_ONCE)
    ada.send("new", WAITING)
    until(lambda: one(daemon, "SELECT count(*) FROM calls WHERE state = 'intended'") == 2)
    until(lambda: one(daemon, "SELECT count(*) FROM tasks WHERE title = 'bread'") == 1)
    until(lambda: any(LINE in pad.read_text("utf-8") for pad in daemon.home.glob("*/scratchpad.md")))
    until(lambda: one(daemon, "SELECT count(*) FROM approvals WHERE state = 'asked'") == 1)
    ada.send(cut_off, QUEUED)
    daemon.kill9()
    assert one(daemon, "SELECT count(*) FROM turns WHERE state = 'queued'") == 1
    assert one(daemon, "SELECT count(*) FROM slots") == 0, "an hour began meanwhile: make it again"


def one(daemon: Daemon, question: str) -> object:
    """The one value that answers it."""
    with closing(sqlite3.connect(daemon.home / "cortex.db", timeout=PATIENCE_S)) as rows:
        return rows.execute(question).fetchone()[0]


def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def pack(home: Path, target: Path) -> None:
    """The home without what is made again, its databases without gaps; no name or number of this machine's users."""
    for database in home.glob("*.db"):
        with closing(sqlite3.connect(database, isolation_level=None)) as rows:
            rows.execute("VACUUM")
            rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copytree(home, home.parent / "kept", ignore=shutil.ignore_patterns(*LEFT_OUT))
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:xz", preset=9, format=tarfile.USTAR_FORMAT) as packed:
        packed.add(home.parent / "kept", "home", filter=_nobodys)
    target.write_bytes(made.getvalue())


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    make(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "2026-11-21.tar.xz")
