"""A disk on which no byte is left, under the real daemon: each refusal is a sentence, and what runs can be stopped."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.crew import until
from tests.e2e.daemon import Daemon
from tests.e2e.test_every_turn_ends import OWN, cramped, full, halfway, model, settle
from tests.patience import PATIENCE_S
from tests.services.chat.test_imports import chatgpt

__all__ = ["cramped"]

SAID = (("user", "Where do truffles grow? " * 9_000), ("assistant", "Under oaks."))
CHATS = json.dumps([chatgpt(*SAID, key=str(number)) for number in range(9)]).encode()


@OWN
def test_on_a_full_disk_refusals_are_sentences_and_all_work_can_be_stopped(cramped: Daemon) -> None:
    with (
        model("It is there, " + "".join(f"and there it stays {day} " for day in range(2_000))) as scripted,
        Caller(cramped) as ada,
        bare(cramped) as http,
    ):
        cramped.start()
        settle(ada.set_up(), scripted)
        cid = halfway(scripted, ada)
        ada.post("/confirm", password=PASSWORD)
        http.cookies.set("cortex", ada.token)
        with full(cramped):
            asked: dict[str, Callable[[], httpx.Response]] = {
                "an upload": lambda: http.post("/files", files={"files": ("a.txt", b"words " * 100_000)}),
                "an import": lambda: http.post("/account/import", files={"file": ("c.json", CHATS)}),
                "an export": lambda: http.get("/account/everything"),
                "a form": lambda: http.post("/scratchpad", data={"text": "words " * 30_000}),
            }
            answers = {what: ask() for what, ask in asked.items()}
            assert {what: answer.status_code for what, answer in answers.items()} == dict.fromkeys(asked, 507)
            assert all("disk is full" in answer.text for answer in answers.values())
            assert not any("it was done" in answer.text for answer in answers.values())
            stopped = http.post("/stop-all", data={"whom": "mine"})
            assert stopped.status_code == 303
            assert "Everything was stopped" in ada.get("/stop-all").text
            assert len(list(home_of(cramped).glob("STOP-*"))) == 1
        until(lambda: 'class="end">Stopped.' in ada.get(f"/c/{cid}").text)
        until(lambda: not list(home_of(cramped).glob("STOP-*")))
        assert "work.stopped" in ada.get("/admin/audit").text
        ada.post("/stop-all/release", scope=re.findall(r'name="scope"\s+value="([^"]+)"', ada.get("/stop-all").text)[0])
        assert "Everything was stopped" not in ada.get("/stop-all").text
        assert http.post("/files", files={"files": ("a.txt", b"words")}).status_code == 303
        assert "Traceback" not in cramped.log


def bare(daemon: Daemon) -> httpx.Client:
    """A client that is content with any answer."""
    headers = {"Origin": daemon.origin, "Accept": "text/html"}
    return httpx.Client(base_url=daemon.origin, headers=headers, timeout=PATIENCE_S, trust_env=False)


def home_of(daemon: Daemon) -> Path:
    """Its HOME, as it sees it."""
    return Path(f"/proc/{daemon.pid}/root{daemon.home}")
