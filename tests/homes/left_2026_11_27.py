"""Makes `2026-11-27.tar.xz`: a home as commit aeb655a2 left it when it was killed in the middle of its work.

    git worktree add OLD aeb655a2
    PYTHONPATH=OLD python tests/homes/left_2026_11_27.py

Made as `left_2026_11_21.py` says. Beside turns that were cut off, queued and waiting for a yes it has what people set
up: two accounts, a list that one shares with the other, a skill, a file, a job with a web address, a token, a backup.
The token and the web address stand in `left.json`, which a test takes out before the start.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.daemon import Daemon
from tests.homes import left_2026_11_21
from tests.homes.left_2026_11_21 import HaltingDaemon, one, pack, until
from tests.scripted_server import ScriptedServer, Use, rule

ENDED = "add milk to my shopping list"
CUT_OFF = "add bread to my shopping list"
QUEUED = "and what did I say about eggs?"
WAITING = "send me a joke every day at 9 in the evening"
SHARED = "groceries"
SKILL = ("Weekly plan", "Plan: the week, in 3 steps - yes or no")
FILE = ("notes.txt", b"The spare key is at number 9.\n")
HOOK = "Say that the bell rang."
GIVEN = "left.json"
RULES = (
    rule("milk", Use("task_create", {"title": "milk"}), "Milk is on your list."),
    rule("bread", Use("task_create", {"title": "bread"}), "Bread is on your list."),
    rule("eggs", "You said nothing about eggs."),
    rule("joke", Use("cron_add", {"prompt": "Tell a joke.", "when": "every day at 21:00"}), "Jokes are set up."),
    rule("bell", "The bell rang."),
    rule("token", "The token lets you in."),
)
HALT = """
import asyncio
from cortex.services.turns.calls import CallLog
end = CallLog.end
async def halting(self, turn, call, ending):
    if "bread" in call.arguments:
        await asyncio.Event().wait()
    return await end(self, turn, call, ending)
CallLog.end = halting
"""


def make(target: Path) -> None:
    left_2026_11_21.HALT = HALT
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(*RULES) as model:
        daemon = HaltingDaemon(Path(folder) / "home")
        daemon.start()
        try:
            with Caller(daemon) as ada:
                set_up(daemon, ada.set_up(), model)
                work(daemon, ada)
        finally:
            daemon.close()
        assert model.problems == []
        pack(daemon.home, target)


def set_up(daemon: Daemon, ada: Caller, model: ScriptedServer) -> None:
    """What people had before the turns that are cut off."""
    form = {"provider": "openai", "model": "scripted", "base_url": model.base_url, "api_key": model.api_key}
    ada.post("/models", name="scripted", streams="on", tools="on", **form)
    bob = ada.invite("Bob")
    ada.post("/tasks", title="apples", list_name=SHARED)
    ada.post("/lists/share", name=SHARED, people=[str(one(daemon, "SELECT id FROM accounts WHERE name = 'Bob'"))])
    assert "apples" in bob.get("/tasks").text
    ada.post("/skills", title=SKILL[0], description=SKILL[1])
    ada.give(*FILE)
    ada.post("/jobs/new", name="Bell", prompt=HOOK, when="0 0 1 1 *", time_zone="UTC")
    job = one(daemon, "SELECT id FROM jobs")
    page = ada.post(f"/jobs/{job}/address", way="address").text
    address = re.search(r"/hooks/([\w-]+)", page)
    ada.post("/confirm", password=PASSWORD)
    made = re.search(r"cx-[\w-]+", ada.post("/account/tokens", name="script", role="chat").text)
    assert address
    assert made
    ended = ada.send("new", ENDED)
    until(lambda: "Milk is on your list." in ada.get(f"/c/{ended}").text)
    until(lambda: one(daemon, "SELECT count(*) FROM turns WHERE state = 'done'") == 1)
    ada.post("/admin/backups")
    given = {"token": made[0], "address": f"/hooks/{address[1]}"}
    (daemon.home / GIVEN).write_text(json.dumps(given), "utf-8")
    bob.__exit__()


def work(daemon: Daemon, ada: Caller) -> None:
    """The turns; then the kill."""
    cut_off = ada.send("new", CUT_OFF)
    ada.send("new", WAITING)
    until(lambda: one(daemon, "SELECT count(*) FROM calls WHERE state = 'intended'") == 1)
    until(lambda: one(daemon, "SELECT count(*) FROM tasks WHERE title = 'bread'") == 1)
    until(lambda: one(daemon, "SELECT count(*) FROM approvals WHERE state = 'asked'") == 1)
    ada.send(cut_off, QUEUED)
    daemon.kill9()
    assert one(daemon, "SELECT count(*) FROM turns WHERE state = 'queued'") == 1


if __name__ == "__main__":
    make(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "2026-11-27.tar.xz")
