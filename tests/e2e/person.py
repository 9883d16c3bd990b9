"""What a person does in the browser: set up, log in, send, wait, look. Polls with `evaluate`, as the CSP demands."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.e2e.browser import PATIENCE_MS, Window
from tests.e2e.caller import PASSWORD
from tests.e2e.daemon import Daemon
from tests.patience import PATIENCE_S

RUNNING = "() => document.querySelector('#composer')?.dataset.running ?? ''"
# What the live document may differ in from a reloaded one: the marks of htmx, scrolling room, what is laid out lazily,
# and which details are open. Everything else counts, white space between blocks excepted.
FOLDED = """() => {
  const copy = document.querySelector('#log').cloneNode(true);
  for (const one of copy.querySelectorAll('*')) {
    for (const name of [...one.getAttributeNames()])
      if (name.startsWith('data-htmx') || name === 'style' || name === 'open'
          || name === 'title' && one.matches('time'))
        one.removeAttribute(name);
    one.classList?.remove('old', 'did', 'htmx-request', 'htmx-added', 'htmx-settling', 'htmx-swapping');
    if (one.getAttribute('class') === '') one.removeAttribute('class');
  }
  copy.normalize();
  return copy.innerHTML.replace(/\\s*\\n\\s*/g, '\\n').replace(/>\\s+</g, '><').trim();
}"""


def set_up(window: Window, daemon: Daemon, name: str = "Ada") -> None:
    """The first account, by the link that the daemon printed."""
    page = window.page
    page.goto(daemon.setup_link)
    page.fill("[name=name]", name)
    page.fill("[name=password]", PASSWORD)
    page.click("main button.primary")
    page.wait_for_url("**/start**")


def log_in(window: Window, name: str = "Ada") -> None:
    """By the form."""
    window.page.goto("/login")
    window.page.fill("[name=name]", name)
    window.page.fill("[name=password]", PASSWORD)
    window.page.click("main button.primary")
    window.page.wait_for_url("**/today")


def new_chat(window: Window) -> Page:
    """The page of a conversation that is not begun."""
    window.page.goto("/c/new")
    return window.page


def tab(window: Window, path: str) -> Page:
    """Another tab of the profile, watched like the first."""
    page = window.context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", lambda message: window.complaints.extend([message.text] * (message.type == "error")))
    page.goto(path)
    return page


def poll(look: Callable[[], Any], timeout_s: float = PATIENCE_S, every_s: float = 0.03) -> Any:
    """What `look` gives as soon as it is something; fails when nothing comes."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(every_s)


@contextmanager
def tools_panel(page: Page) -> Iterator[Locator]:
    """The panel of mode, rounds, role and price, while it is open."""
    page.click("#tools")
    yield page.locator("#plan")
    page.keyboard.press("Escape")


def type_and_send(page: Page, text: str, *, mode: str = "") -> None:
    """Write and press Enter; does not wait."""
    if mode:
        with tools_panel(page) as panel:
            panel.locator(f"[name=mode][value={mode}]").check()
    page.fill("#text", text)
    page.press("#text", "Enter")


def send(page: Page, text: str, *, mode: str = "") -> Locator:
    """Send and wait until the answer begins to show; its article."""
    before = answers(page)
    type_and_send(page, text, mode=mode)
    wait_for_answer(page, before + 1)
    return page.locator(".turn.bot").last


def ask(page: Page, text: str, *, mode: str = "") -> Locator:
    """Send and wait for the end of the turn; the answer's article."""
    answer = send(page, text, mode=mode)
    wait_for_end(page)
    return answer


def answers(page: Page) -> int:
    """How many answers the page shows."""
    return page.locator(".turn.bot").count() if "/c/" in page.url else 0


def wait_for_answer(page: Page, count: int) -> None:
    """Until so many answers are on the page."""
    expect(page.locator(".turn.bot")).to_have_count(count)


def wait_for_end(page: Page, timeout_s: float = PATIENCE_S) -> None:
    """Until no answer is being written."""
    poll(lambda: is_idle(page), timeout_s)


def is_idle(page: Page) -> bool:
    """Whether every turn on the page has ended and the composer knows."""
    return bool(
        page.evaluate(
            """() => !document.querySelector('.working, .queued')
                 && document.querySelector('#composer').dataset.running === '0'
                 && document.querySelector('.turn.bot .foot') !== null"""
        )
    )


def log_of(page: Page) -> str:
    """The conversation's document, without what may differ after a reload."""
    return str(page.evaluate(FOLDED))


def same(page: Page, other: Page) -> str:
    """The conversation's document, once both pages have it: on a busy machine the last part may still be drawn."""
    deadline_s = time.monotonic() + PATIENCE_S
    while (one := log_of(page)) != (another := log_of(other)) and time.monotonic() < deadline_s:
        page.wait_for_timeout(50)
    assert one == another
    return one


def same_after_reload(page: Page) -> str:
    """The conversation's document, once it is as whoever loads it now has it; the page is then loaded anew."""
    with closing(page.context.new_page()) as fresh:
        fresh.goto(page.url)
        live = same(page, fresh)
    page.reload()
    return live


def said(answer: Locator) -> str:
    """The words of an answer, cards left out."""
    return "\n".join(answer.locator(".prose > .md").all_inner_texts()).strip()


def conversation_of(page: Page) -> str:
    """The id in the address."""
    return page.url.partition("/c/")[2].partition("?")[0].partition("#")[0]


def allow_once(page: Page) -> None:
    """Allow what weighs much: its card leads to a page of its own, and that asks once more."""
    page.locator(".ask.high").get_by_role("link", name="Allow once").click()
    page.locator(".ask.high").get_by_role("button", name="Allow once").click()
    expect(page.locator("#log")).to_be_visible()  # it leads back to the chat
