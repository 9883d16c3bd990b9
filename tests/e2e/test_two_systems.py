"""Home Assistant and MariaDB set up on the page and read for one message, with its trace: all real but the model."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from cortex.integrations.home_assistant.form import HomeAssistantForm
from cortex.integrations.home_assistant.home_assistant import HomeConnection
from tests.e2e.browser import axe, overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import ask, new_chat, said, send, wait_for_end
from tests.mariadb import MariaServer
from tests.real_home_assistant import RealHome, pythons_of_home_assistant, real_home
from tests.scripted_server import ScriptedServer, Use, rule
from tests.shop import shop_server

pytestmark = [pytest.mark.browser, pytest.mark.full]

HREF = "/admin/integrations"
OUTSIDE = Use("ha_get_state", {"entity": "outside"})
COUNT = Use("ae_db_query", {"sql": "select count(*) as members from members"})
RULES = (
    rule("how warm is it outside and how many members", OUTSIDE, COUNT, "Here it is."),
    rule("is the porch lantern on", Use("ha_get_state", {"entity": "porch lantern"}), "Here it is."),
)


@pytest.fixture
def shop() -> Iterator[MariaServer]:
    with shop_server() as server:
        yield server


@pytest.fixture(params=pythons_of_home_assistant())
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealHome]:
    (tmp_path / "real").mkdir()
    with real_home(tmp_path / "real", request.param) as found:
        yield found


@pytest.fixture
def ada(daemon: Daemon) -> Iterator[Caller]:
    """The admin of a daemon where nothing is set up: each version of Home Assistant has its own."""
    daemon.start()
    with Caller(daemon) as caller:
        yield caller.set_up()


def fill(page: Page, kind: str, is_new: str, **typed: str) -> None:
    page.goto(HREF)  # the page behind a save may still be on its way
    card = page.locator(f"form[action='{HREF}/{kind}']").last
    row = page.locator("details.sys", has=card)
    row.locator("summary").first.click()
    if not card.is_visible():
        row.locator("section summary").first.click()
    for name, value in typed.items():
        card.locator(f"[name={name}]").fill(value)
    card.get_by_role("button", name="Test").click()
    expect(card.locator(".say.ok")).to_contain_text(is_new)
    card.locator("button.primary").click()
    page.wait_for_url(f"**{HREF}#{kind}")


async def rename(home: RealHome, entity_id: str, name: str) -> None:
    form = HomeAssistantForm.model_validate({"address": home.url, "token": home.token})
    connection = HomeConnection(form.server())
    async with connection.index.client.running():
        socket = await connection.index.client.socket()
        await socket.command("config/entity_registry/update", entity_id=entity_id, name=name)


def test_one_message_reads_the_house_and_the_database(
    daemon: Daemon, ada: Caller, opens: Opens, home: RealHome, shop: MariaServer
) -> None:
    window = opens(daemon.origin, ada.token)
    page = window.page
    fill(page, "home_assistant", "Home Assistant 20", address=home.url, token=home.token)
    card = {"name": "shop", "host": "127.0.0.1", "port": str(shop.port), "user": "reader"}
    fill(page, "aether_db", "MariaDB 10", **card, password="only-reading-ü€", schemas="shop club")
    assert home.token not in page.content()
    assert (axe(page), overflow_px(page)) == ([], 0)

    with ScriptedServer(*RULES) as server:
        form = {"name": "Echo", "provider": "openai", "model": "echo", "streams": "1", "tools": "1"}
        ada.post("/models", base_url=server.base_url, api_key=server.api_key, **form)
        ada.post("/models/chain", names="Echo")
        page = new_chat(window)
        answer = send(page, "how warm is it outside and how many members are in the shop database")
        page.get_by_role("button", name="Allow").click()  # names and states of the house are words from outside
        wait_for_end(page)
        expect(answer.locator("details.tool.ok .tn")).to_have_text(["ha_get_state", "ae_db_query"])
        assert "Here it is." in said(answer)
        answer.locator("details.tool summary").last.click()
        expect(answer.locator("details.tool").last).to_contain_text(re.compile(r"members\s*4"))
        answer.get_by_role("link", name="More for this answer").click()
        page.get_by_role("link", name="Trace of this answer").click()
        trace = page.locator("main")
        expect(trace).to_contain_text("ha_get_state")
        expect(trace).to_contain_text("ae_db_query")

        with ThreadPoolExecutor(1) as beside:  # the browser's own loop runs in this thread
            beside.submit(asyncio.run, rename(home, "light.hall", "Porch lantern")).result()
        renamed = ask(new_chat(window), "is the porch lantern on")
        renamed.locator("details.tool summary").click()
        expect(renamed.locator("details.tool.ok")).to_contain_text("Porch lantern (light.hall")
    window.page.goto(HREF)
    expect(window.page.locator("#home_assistant")).to_contain_text("Works.")
