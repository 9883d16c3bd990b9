"""Chats of another program taken over on the page in Chromium, found, taken back; and all that is one's own taken."""

import io
import json
import zipfile

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import overflow_px
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import forgive, go

pytestmark = pytest.mark.browser
TEA = b"---\nname: make-tea\ndescription: Brews tea.\n---\n\nBoil water.\n"


def exported(count: int) -> bytes:
    def chat(n: int) -> object:
        said = [
            {"role": "user", "content": f"Where is oak {n}?"},
            {"role": "assistant", "content": f"By **barn** {n}."},
        ]
        return {"id": f"c{n}", "title": f"Oak {n}", "chat": {"messages": said * 3}}

    return json.dumps([chat(n) for n in range(count)]).encode()


def test_chats_are_taken_over_and_taken_back(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token, width=390, height=844)
    page = go(window, "/account/data")
    page.get_by_role("link", name="Import chats").click()
    page.get_by_label("File", exact=True).set_input_files(
        {"name": "x.json", "mimeType": "application/json", "buffer": b"{nothing"}
    )
    page.get_by_role("button", name="Read file").click()
    expect(page.locator("#main")).to_contain_text("This is not a chat export")
    forgive(window, 422)
    big = {"name": "chats.json", "mimeType": "application/json", "buffer": exported(300)}
    page.get_by_label("File", exact=True).set_input_files(big)  # type: ignore[arg-type]
    page.get_by_role("button", name="Read file").click()
    expect(page.locator("#main")).to_contain_text("0 of 300 chats imported.")
    assert overflow_px(page) <= 0
    page.get_by_role("button", name="Import").click()
    expect(page.locator("#main")).to_contain_text("Done: 300 of 300 chats imported.")
    assert overflow_px(page) <= 0
    page = go(window, "/search?q=barn+299")
    page.locator("#main").get_by_role("link").filter(has_text="Oak 299").first.click()
    expect(page.locator("#main strong").first).to_have_text("barn")
    page = go(window, "/account/import")
    page.get_by_role("button", name="Delete imported chats").click()
    expect(page.locator("#main")).to_contain_text("Open WebUI")
    assert "Oak 299" not in ada.get("/search?q=oak").text


def test_a_skill_of_another_assistant_comes_in_marked_and_goes_out(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token, width=390, height=844)
    page = go(window, "/skills")
    chosen = page.get_by_label("A SKILL.md, or a .zip of folders")
    chosen.set_input_files({"name": "SKILL.md", "mimeType": "text/markdown", "buffer": b"# no head"})
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#main")).to_contain_text("it says no name or no description")
    forgive(window, 422)
    chosen.set_input_files({"name": "SKILL.md", "mimeType": "text/markdown", "buffer": TEA})
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#main")).to_contain_text("Make tea external content")
    assert overflow_px(page) <= 0
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Export").click()
    with zipfile.ZipFile(io.BytesIO(waiting.value.path().read_bytes())) as archive:
        assert b"Boil water." in archive.read("make-tea/SKILL.md")


def test_everything_is_downloaded_with_the_password(house: Daemon, ada: Caller, opens: Opens) -> None:
    ada.post("/tasks", title="Find truffles")
    window = opens(house.origin, ada.token)
    page = go(window, "/account/data")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Export everything").click()
        if page.url.startswith(f"{house.origin}/confirm"):
            page.get_by_label("Password").fill(PASSWORD)
            page.keyboard.press("Enter")
    with zipfile.ZipFile(io.BytesIO(waiting.value.path().read_bytes())) as archive:
        assert "Find truffles" in archive.read("data/tasks.jsonl").decode()
