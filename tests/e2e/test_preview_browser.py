"""Previews in a browser: drawn on press, gone on the next, in no origin, without a single request to anywhere else."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import ask, new_chat, poll
from tests.scripted_server import ScriptedServer, rule

pytestmark = [pytest.mark.browser, pytest.mark.full]

DIAGRAM = "```mermaid\ngraph TD\n  Kettle --> Tea\n```"
DRAWING = '```svg\n<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><circle r="9"/></svg>\n```'
PAGE = """\
```html
<p id="here">drawn</p>
<img src="https://evil.example/leak.png">
<script>
  const tried = document.getElementById("here");
  const say = words => { tried.textContent += " " + words; };
  try { say(document.cookie || "none"); } catch { say("no-cookie"); }
  try { say(parent.document.title); } catch { say("no-parent"); }
  fetch("https://evil.example/x").then(() => say("fetched"), () => say("no-fetch"));
  fetch("/account").then(() => say("ours"), () => say("not-ours"));
  setTimeout(() => { location = "https://evil.example/gone"; }, 300);
</script>
```"""


@pytest.fixture(scope="module")
def writes(house: Daemon, ada: Caller) -> Iterator[None]:
    """The model writes what it is asked for."""
    rules = (rule("a diagram", DIAGRAM), rule("a drawing", DRAWING), rule("a page", PAGE))
    with ScriptedServer(*rules) as server:
        form = {"name": "Draws", "provider": "openai", "model": "draws", "streams": "1", "tools": "1"}
        ada.post("/models", base_url=server.base_url, api_key=server.api_key, **form)
        ada.post("/models/chain", names="Draws")
        yield


def pressed(page: Page, words: str) -> None:
    ask(page, words)
    expect(page.locator("iframe")).to_have_count(0)
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("iframe.preview")).to_have_count(1)


@pytest.mark.usefixtures("writes")
def test_a_diagram_is_drawn_and_gone_again(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    pressed(page, "a diagram")
    expect(page.frame_locator("iframe").locator("svg")).to_contain_text("Kettle")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("iframe")).to_have_count(0)


@pytest.mark.usefixtures("writes")
def test_a_drawing_is_shown(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    pressed(page, "a drawing")
    expect(page.frame_locator("iframe").locator("svg circle")).to_have_count(1)


@pytest.mark.usefixtures("writes")
def test_a_page_runs_and_reaches_nothing(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    left: list[str] = []
    page.on("requestfinished", lambda one: left.append(one.url) if not one.url.startswith(house.origin) else None)
    pressed(page, "a page")
    shown = page.frame_locator("iframe").locator("#here")
    for words in ("drawn", "no-cookie", "no-parent", "no-fetch", "not-ours"):
        expect(shown).to_contain_text(words)
    # leading the frame away was refused too; asking the page lets Playwright hear what its console says
    poll(lambda: page.title() and any("frame-src" in line for line in window.complaints), 20)
    assert left == []
    assert "evil.example" not in page.url
    window.complaints.clear()  # what the policy refused
