"""The coding agent asked for in a chat and watched in Chromium: its diff merged, one stopped, its end told."""

import asyncio
from pathlib import Path

import pytest
from playwright.sync_api import expect

from cortex.integrations.sandbox import Sandbox
from tests.aider_double import install
from tests.e2e.browser import overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import go
from tests.e2e.person import allow_once, poll
from tests.on_disk import folder_on_disk as folder_on_disk
from tests.real_aider import AIDER, EDIT, NO_AIDER
from tests.scripted_server import ScriptedServer, Use, rule
from tests.services.agents.test_coding import git, repository_in

IS_BOXED = asyncio.run(Sandbox().probe()).level == "bubblewrap"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not IS_BOXED, reason="the coding agent needs bubblewrap"),
]


def asked(ada: Caller, text: str) -> str:
    """A new conversation in the role that has the tool."""
    answer = ada.post("/c/new/messages", text=text, mode="auto", role="coder")
    return answer.headers["location"].rpartition("/")[2]


def test_an_agent_is_asked_for_watched_and_merged(
    house: Daemon, ada: Caller, opens: Opens, scripted: ScriptedServer, tmp_path: Path
) -> None:
    program = install(tmp_path / "aider") if NO_AIDER else AIDER
    repository = repository_in(tmp_path / "shop")
    before = (repository / "hello.py").read_text()
    task = {"repository": "shop", "message": "please greet", "files": ["hello.py"], "background": True}
    scripted.rules = [
        rule("better greeting", Use("aider_run", {**task, "notify": True}, is_blind=True), "It is at work."),
        rule("diff --git", "Greet well"),
        rule("the diff", "Greet well"),
        rule("please greet", EDIT),
    ]
    ada.post("/models", name="m", provider="openai", model="s", base_url=scripted.base_url, api_key="test-key")
    ada.post("/admin/integrations/coding", is_new="1", repositories=f"shop={repository}", program=str(program))
    window = opens(house.origin, ada.token, width=390, height=844)
    chat = asked(ada, "I want a better greeting")
    poll(lambda: "Allow once" in ada.get(f"/c/{chat}").text)
    page = go(window, f"/c/{chat}")
    allow_once(page)
    expect(page.locator("#main")).to_contain_text("Follow it with aider_status")
    page = go(window, "/admin/integrations#coding")
    page.get_by_role("link", name="Runs and folders Coding agent").click()
    page.get_by_role("link", name="please greet").click()
    expect(page.get_by_role("button", name="Merge")).to_be_visible()  # the page looks again by itself
    expect(page.get_by_label("Diff", exact=True)).to_contain_text("+    return 'good day'")
    expect(page.get_by_label("Agent output")).to_contain_text("Applied edit to hello.py")
    assert overflow_px(page) <= 0
    assert "a commit" in ada.get("/notifications").text
    page.get_by_role("button", name="Merge").click()
    expect(page.locator("#main")).to_contain_text("Merged as")
    assert "good day" in (repository / "hello.py").read_text()
    assert git(repository, "log", "-1", "--format=%s") == "Greet well"
    (repository / "hello.py").write_text(before)  # so that the next one has something to do
    git(repository, "commit", "-qam", "Greet as before")
    chat = asked(ada, "I want a better greeting")
    poll(lambda: "Allow once" in ada.get(f"/c/{chat}").text)
    page = go(window, f"/c/{chat}")
    allow_once(page)
    expect(page.locator("#main")).to_contain_text("Follow it with aider_status")
    page = go(window, "/admin/coding")
    page.locator("tbody a").first.click()
    page.get_by_role("button", name="Discard").click()
    expect(page.locator("#main")).to_contain_text("Stopped or discarded")
    assert git(repository, "log", "--oneline").count("\n") == 2
