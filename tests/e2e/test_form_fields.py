"""Fields of forms in Chromium: files that are chosen, named and taken off again; days and times in words or picked."""

import pytest
from playwright.sync_api import FilePayload, expect

from tests.e2e.browser import axe, overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import go

pytestmark = pytest.mark.browser


def text(name: str, size_bytes: int = 2_000) -> FilePayload:
    return {"name": name, "mimeType": "text/plain", "buffer": b"oak " * (size_bytes // 4)}


@pytest.mark.parametrize("width", [1280, 390])
def test_files_are_named_taken_off_again_and_sent(house: Daemon, ada: Caller, opens: Opens, width: int) -> None:
    page = go(opens(house.origin, ada.token, width=width, height=844), "/files")
    field, chosen = page.get_by_label("Files to add"), page.locator(".take-l")
    expect(page.locator(".take")).to_contain_text("MB each")
    field.set_input_files([text(f"oak{width}.txt"), text(f"elm{width}.txt")])
    field.set_input_files(text(f"ash{width}.txt"))
    expect(chosen.locator("li")).to_have_count(3)
    expect(chosen).to_contain_text("2 kB")
    assert axe(page) == []
    assert overflow_px(page) <= 0
    off = page.get_by_role("button", name=f"Remove elm{width}.txt")
    off.focus()
    page.keyboard.press("Enter")
    expect(chosen.locator("li")).to_have_count(2)
    expect(page.get_by_role("button", name=f"Remove ash{width}.txt")).to_be_focused()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("link", name=f"oak{width}.txt")).to_be_visible()
    expect(page.get_by_role("link", name=f"ash{width}.txt")).to_be_visible()
    assert f"elm{width}" not in page.content()


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = go(opens(house.origin, ada.token), "/skills")
    page.get_by_label("A SKILL.md, or a .zip of folders").set_input_files(text("big.zip", 2_400_000))
    expect(page.locator(".take-l .bad")).to_contain_text("too large: at most 2 MB")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    button = page.locator("form[action='/skill-folders'] button", has_text="Add")
    button.click()
    assert "POST" not in asked
    page.get_by_role("button", name="Remove big.zip").click()
    expect(page.locator(".take-l li")).to_have_count(0)
    assert not page.locator("#f-folders").evaluate("one => one.validity.customError")


def test_a_file_is_dropped_on_its_field(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = go(opens(house.origin, ada.token), "/account/import")
    page.locator("#f-file").evaluate(
        """box => {
            const data = new DataTransfer();
            data.items.add(new File(['[]'], 'chats.json'));
            box.files = data.files;
            box.dispatchEvent(new Event('change', { bubbles: true }));
        }"""
    )
    expect(page.locator(".take-l")).to_contain_text("chats.json")
    box, area = page.locator("#f-file").bounding_box(), page.locator(".take-b").bounding_box()
    assert box
    assert area
    assert abs(box["height"] - area["height"]) <= 2, "the browser takes a drop anywhere on the area"


def test_a_day_is_typed_in_words_or_picked(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = go(opens(house.origin, ada.token, width=390, height=844), "/tasks")
    page.get_by_label("New task").fill("Prune the oak")
    page.locator("[data-writes=new-due]").fill("2031-12-24")
    due = page.get_by_label("Due", exact=True)
    expect(due).to_have_value("24 Dec 2031")
    expect(due).to_be_focused()
    page.get_by_role("button", name="Add", exact=True).first.click()
    page.get_by_role("link", name="Prune the oak").click()
    expect(page.get_by_label("Due", exact=True)).to_have_value("24 Dec 2031")
    page = go(opens(house.origin, ada.token, width=1280), "/notifications/settings")
    page.get_by_label("From", exact=True).fill("half past nine in the evening")
    page.locator("[data-writes=quiet-to]").fill("07:00")
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.get_by_label("From", exact=True)).to_have_value("21:30")
    expect(page.get_by_label("To", exact=True)).to_have_value("07:00")
    assert axe(page) == []


def test_without_a_script_they_are_plain_fields(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token, has_script=False)
    page = go(window, "/files")
    expect(page.locator(".take-w")).to_be_hidden()
    page.get_by_label("Files to add").set_input_files(text("plain.txt"))
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("link", name="plain.txt")).to_be_visible()
    expect(go(window, "/tasks").locator(".when-pick").first).to_be_hidden()
