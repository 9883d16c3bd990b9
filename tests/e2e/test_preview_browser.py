"""Previews in a browser: drawn on press, gone on the next; nothing in them runs or asks anybody for anything."""

import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import ask, new_chat
from tests.scripted_server import ScriptedServer, rule

pytestmark = [pytest.mark.browser, pytest.mark.full]

DIAGRAM = "```mermaid\ngraph TD\n  Kettle --> Tea\n```"
DRAWING = '```svg\n<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><circle r="9"/></svg>\n```'
PAGE = """\
```html
<style>#here { color: rgb(1, 2, 3) }</style>
<p id="here">drawn</p>
<img src="HERE/picture.png" onerror="document.getElementById('here').textContent += ' by a handler'">
<a id="away" href="HERE/link">away</a> <a id="within" href="#here">within</a>
<script>
  document.getElementById("here").textContent += " by a script";
  new RTCPeerConnection({ iceServers: [{ urls: "turn:HOST?transport=tcp", username: "a", credential: "b" }] });
  location = "HERE/led-away";
</script>
<iframe srcdoc="<script>parent.location = 'HERE/nested'</script>"></iframe>
<iframe src="HERE/framed"></iframe>
<object data="HERE/object"></object>
<meta http-equiv="refresh" content="0;url=HERE/refreshed">
```"""


@pytest.fixture(scope="module")
def outside() -> Iterator[socket.socket]:
    """A place that nobody may even connect to: a browser looks one up ahead of a request that it then refuses."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        yield listening


@pytest.fixture(scope="module")
def writes(house: Daemon, ada: Caller, outside: socket.socket) -> Iterator[None]:
    """The model writes what it is asked for."""
    host = f"127.0.0.1:{outside.getsockname()[1]}"
    page = PAGE.replace("HERE", f"http://{host}").replace("HOST", host)
    rules = (rule("a diagram", DIAGRAM), rule("a drawing", DRAWING), rule("a page", page))
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
def test_a_page_is_drawn_and_neither_runs_nor_reaches_anybody(
    house: Daemon, ada: Caller, opens: Opens, outside: socket.socket
) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    pressed(page, "a page")
    frame = page.frame_locator("iframe")
    expect(frame.locator("#here")).to_have_css("color", "rgb(1, 2, 3)")
    expect(frame.locator("#within")).to_have_attribute("href", "#here")
    frame.locator("#away").click()
    frame.locator("#within").click()  # what would have led the frame away has had its time by now
    expect(frame.locator("#here")).to_have_text("drawn")
    with pytest.raises(BlockingIOError):
        outside.accept()
    assert [one.url.removeprefix(house.origin).partition("#")[0] for one in page.frames[1:]] == ["/preview"]
    window.complaints.clear()  # what the policy refused
