"""Jobs in Chromium with the real daemon: made in words, previewed, run now, and found in its runs with a transcript."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.browser import overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import forgive, go
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.browser


def test_a_job_is_made_in_words_run_now_and_read_in_its_transcript(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = go(opens(house.origin, ada.token), "/jobs")
    page.get_by_role("link", name="New job").first.click()
    page.get_by_label("Name", exact=True).fill("Evening list")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("When", exact=True).fill("every weekday at half past seven")
    times = page.get_by_role("list", name="Next runs").get_by_role("listitem")
    expect(page.locator("#reading")).to_contain_text("Every weekday (Mon-Fri) at 07:30, Europe/Berlin")
    assert sum("07:30" in line for line in times.all_inner_texts()) == 10
    expect(page.get_by_label("Arguments")).to_be_hidden()
    page.get_by_label("Prompt or message").fill("add milk and eggs to my shopping list")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#toasts")).to_contain_text("Saved: Evening list, first")
    page.get_by_role("button", name="Run now").click()
    row = page.get_by_role("table", name="Runs, newest first").get_by_role("row").last
    expect(row).to_contain_text("manual")
    expect(row.locator(".pill")).to_have_text("done")  # the page looks again by itself
    expect(row).to_contain_text(re.compile("milk", re.IGNORECASE))
    row.get_by_role("link", name="Transcript").click()
    expect(page.locator("details.tool .tn").first).to_have_text("task_create")
    expect(page.locator(".turn.user, .turn").first).to_contain_text("add milk and eggs")
    go(opens(house.origin, ada.token), "/tasks?q=milk")
    page.goto("/jobs")
    expect(page.get_by_role("img", name="One run: done")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/tasks")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs")


def test_a_refused_time_that_is_corrected_is_wrong_no_more(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = go(window, "/jobs/new")
    when = page.get_by_label("When", exact=True)
    when.fill("whenever")
    page.get_by_label("Prompt or message").fill("say hello")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#f-when-e")).to_contain_text("whenever")
    when.fill("every day at 7")
    expect(page.locator("#reading")).to_contain_text("Every day at 07:00")
    expect(page.locator("#f-when-e")).to_have_count(0)
    expect(page.locator("[aria-invalid]")).to_have_count(0)
    expect(page.get_by_text("please check the marked field")).to_have_count(0)
    expect(when).to_be_focused()
    forgive(window, 422)


def test_a_job_is_previewed_and_saved_without_script(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = go(opens(house.origin, ada.token, has_script=False), "/jobs/new?example=2")
    page.get_by_label("When", exact=True).fill("0 3 28 2,3 *")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#reading")).to_contain_text("The clock jumps 02:00")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Week ahead", level=1)).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".job-head")).to_contain_text("Paused.")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="Week ahead", level=1)).to_be_visible()


def test_a_job_is_made_with_the_keyboard_and_shows_what_it_takes_of_a_long_list(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    page = go(opens(house.origin, ada.token), "/jobs/new")
    page.get_by_label("Name", exact=True).focus()
    for words in ("Milk", "every day at 7"):
        page.keyboard.type(words)
        page.keyboard.press("Tab")
    for _ in range(3):  # past zone, kind and the link to models
        page.keyboard.press("Tab")
    page.keyboard.type("add milk to my shopping list")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # unfolds
    page.get_by_label("Only these tools").press("Space")
    page.get_by_label("Tools", exact=True).press_sequentially("all")
    expect(page.locator("#carried")).to_contain_text("every run sends: task_list task_create")
    page.get_by_label("Tools", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="Milk", level=1)).to_be_visible()
    expect(page.locator("#carried")).to_contain_text("every run sends: task_list task_create")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0


def test_another_program_begins_a_job_by_its_web_address(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = go(opens(house.origin, ada.token, width=390, height=844), "/jobs/new")
    page.get_by_label("Name", exact=True).fill("Front door")
    page.get_by_label("When", exact=True).fill("only when called")
    expect(page.locator("#reading")).to_contain_text("Started by its web address")
    page.get_by_label("Send me this text, no model").check()
    page.get_by_label("Prompt or message").fill("The bell rang.")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Web address").click()
    page.get_by_role("button", name="Create address").click()
    expect(page.locator("code.link-out")).to_have_count(2)
    url, secret = page.locator("code.link-out").all_inner_texts()
    assert url.startswith(f"{house.origin}/hooks/")
    assert overflow_px(page) <= 0
    sent = {"door": "front <b>now</b>"}
    assert httpx.post(url, json=sent, trust_env=False, timeout=PATIENCE_S).status_code == 401
    headers = {"Authorization": f"Bearer {secret}"}
    taken = httpx.post(url, json=sent, headers=headers, trust_env=False, timeout=PATIENCE_S)
    assert (taken.status_code, list(taken.json())) == (202, ["run"])
    much = httpx.post(url, content=b"x" * 300_000, headers=headers, trust_env=False, timeout=PATIENCE_S)
    assert much.status_code == 413
    assert httpx.get(url, trust_env=False, timeout=PATIENCE_S).status_code == 404
    page.goto(page.url)
    expect(page.locator("code.link-out")).to_have_count(1)  # the secret is not shown again
    expect(page.locator("#main")).to_contain_text("1 request, ")
    expect(page.locator("#main")).to_contain_text("1 refused, ")
    page.get_by_role("link", name="Runs").click()
    row = page.get_by_role("table", name="Runs, newest first").get_by_role("row").last
    expect(row).to_contain_text("by web address")
    expect(row.locator(".pill")).to_have_text("done")
    page.goto("/notifications")
    expect(page.locator("#main")).to_contain_text('{"door":"front <b>now</b>"}')
