"""Today in Chromium: a ticked line stays and can be taken back, keys, a thumb that swipes, a sentence begins a chat."""

import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import go
from tests.e2e.person import poll

pytestmark = pytest.mark.browser

SWIPE = """([name, by]) => {
  const line = [...document.querySelectorAll('.line')].find(one => one.textContent.includes(name));
  const box = line.getBoundingClientRect(), at = { clientX: box.x + box.width / 2, clientY: box.y + 20 };
  const send = (type, more) => line.querySelector('.t').dispatchEvent(
    new PointerEvent(type, { bubbles: true, pointerType: 'touch', ...at, clientX: at.clientX + more }));
  send('pointerdown', 0); send('pointermove', by / 2); send('pointermove', by); send('pointerup', by);
}"""


def due_today(ada: Caller, *titles: str) -> None:
    for title in titles:
        ada.post("/tasks", title=title, due=datetime.now(UTC).date().isoformat())


def line(page: Page, title: str) -> str:
    return f".line:has-text({title!r})"


def test_a_ticked_line_stays_can_be_taken_back_and_then_folds(house: Daemon, ada: Caller, opens: Opens) -> None:
    due_today(ada, "Fold the sheets")
    page = go(opens(house.origin, ada.token), "/today")
    row = page.locator(line(page, "Fold the sheets"))
    row.locator(".ck").click()
    expect(row).to_have_class(re.compile("is-done"))
    poll(lambda: "Fold the sheets" in ada.get("/tasks?done=1").text)
    row.locator(".ck").click()
    expect(row).not_to_have_class(re.compile("is-done"))
    poll(lambda: "Fold the sheets" in ada.get("/tasks").text)
    row.locator(".ck").click()
    expect(row).to_have_count(0)
    expect(page.locator("#toasts")).to_contain_text("Fold the sheets")
    page.click("#toasts .toast .btn")
    expect(page.locator(line(page, "Fold the sheets"))).to_have_count(1)


def test_keys_move_tick_and_add(house: Daemon, ada: Caller, opens: Opens) -> None:
    due_today(ada, "Sweep the yard", "Sweep the roof")
    page = go(opens(house.origin, ada.token), "/today")
    names = page.locator(".line .t").all_inner_texts()
    for key in ("j",) * (names.index("Sweep the roof") + 1) + ("k", "j", "x"):
        page.keyboard.press(key)
    poll(lambda: "Sweep the roof" in ada.get("/tasks?done=1").text)
    assert "Sweep the yard" not in ada.get("/tasks?done=1").text
    page.keyboard.press("a")
    page.keyboard.type("Oil the hinge")
    page.keyboard.press("Enter")
    expect(page.locator(line(page, "Oil the hinge"))).to_have_count(1)


def test_a_thumb_to_the_right_ticks_and_to_the_left_puts_off(house: Daemon, ada: Caller, opens: Opens) -> None:
    due_today(ada, "Beat the rugs", "Dust the lamp", "Hold still")
    page = go(opens(house.origin, ada.token, width=390, height=844, is_phone=True), "/today")
    for name, by in (("Hold still", 20), ("Beat the rugs", 120), ("Dust the lamp", -120)):
        page.evaluate(SWIPE, [name, by])
    poll(lambda: "Beat the rugs" in ada.get("/tasks?done=1").text)
    poll(lambda: re.search(r"Dust the lamp.*?tomorrow", ada.get("/tasks?q=Dust").text, re.DOTALL))
    expect(page.locator(line(page, "Dust the lamp"))).to_have_count(0)
    expect(page.locator(line(page, "Hold still"))).to_have_count(1)


def test_a_task_is_dragged_to_its_place_by_its_handle(house: Daemon, ada: Caller, opens: Opens) -> None:
    for title in ("one", "two", "three"):
        ada.post("/tasks", title=title, list_name="order")
    page = go(opens(house.origin, ada.token), "/tasks?list=order")
    names = page.locator(".line .t a")
    page.locator(line(page, "three")).hover()
    page.locator(line(page, "three")).locator(".grip").hover()
    page.mouse.down()
    page.locator(line(page, "one")).hover()
    page.mouse.up()
    poll(
        lambda: (
            re.findall(r'dir="auto">(?:<bdi>)?(\w+)(?:</bdi>)?</a>', ada.get("/tasks?list=order").text)
            == ["three", "one", "two"]
        )
    )
    assert names.all_inner_texts() == ["three", "one", "two"]


def test_the_handle_lies_beside_the_tick_under_a_thumb(house: Daemon, ada: Caller, opens: Opens) -> None:
    ada.post("/tasks", title="Thumb", list_name="thumbs")
    page = go(opens(house.origin, ada.token, is_phone=True), "/tasks?list=thumbs")
    grip, tick = page.locator(".line .grip").bounding_box(), page.locator(".line .ck").bounding_box()
    assert grip
    assert tick
    assert grip["x"] + grip["width"] <= tick["x"]
    page.touchscreen.tap(tick["x"] + 2, tick["y"] + tick["height"] / 2)
    expect(page.locator(line(page, "Thumb"))).to_have_count(0)


def test_without_a_connection_an_open_day_says_of_when_it_is_and_ticks_wait(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    due_today(ada, "Air the attic")
    window = opens(house.origin, ada.token)
    page = go(window, "/today")
    expect(page.locator("#as-of")).to_be_empty()
    window.context.set_offline(True)
    expect(page.locator("#as-of")).to_have_text(re.compile(r"^As of \d\d:\d\d, without a connection\."))
    row = page.locator(line(page, "Air the attic"))
    row.locator(".ck").click()
    expect(row).to_have_class(re.compile("waits"))
    assert "Air the attic" not in ada.get("/tasks?done=1").text
    window.context.set_offline(False)
    poll(lambda: "Air the attic" in ada.get("/tasks?done=1").text)
    expect(page.locator("#as-of")).to_be_empty()
    expect(row).to_have_count(0)
    window.complaints[:] = [one for one in window.complaints if "ERR_INTERNET_DISCONNECTED" not in one]


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "plain"])
def test_a_sentence_begins_a_chat(house: Daemon, ada: Caller, opens: Opens, has_script: bool) -> None:
    page = go(opens(house.origin, ada.token, has_script=has_script), "/today")
    page.fill("#say", "hello there")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/c/\w{10,}"))
    expect(page.locator(".turn.user").first).to_contain_text("hello there")
