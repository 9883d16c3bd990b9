"""Every place where a person types an address refuses what a library below would fail at, in a sentence."""

import json

import httpx
import pytest

from cortex.app import Cortex
from tests.base.test_web_address import REFUSED
from tests.notify import browser as push
from tests.web.conftest import Browser

ODD = [url for url in REFUSED.values() if url.isprintable() and url.startswith("http")]


async def typed(ada: Browser, url: str) -> dict[str, httpx.Response]:
    """What each form answers, by its path."""
    sender = push.Browser().target(url)
    model = {"provider": "openai", "model": "m", "context_tokens": 9000}
    server = {"mcpServers": {"shop": {"url": url}}}
    return {
        "a model": await ada.post("/models", name="odd", base_url=url, **model),
        "a model's test": await ada.post("/models/test", name="odd", base_url=url, **model),
        "a server of models": await ada.post("/models/connect", preset="other", base_url=url, api_key="k"),
        "its list": await ada.post("/models/connect/list", provider="openai", base_url=url),
        "its other server": await ada.post("/models/connect/more", provider="openai", base_url=url),
        "its choice": await ada.post("/models/connect/use", provider="openai", base_url=url, pick="m"),
        "Home Assistant": await ada.post("/admin/integrations/home_assistant", address=url, token="t" * 40),
        "its test": await ada.post("/admin/integrations/home_assistant/test", address=url, token="t" * 40),
        "Talk": await ada.post("/admin/integrations/talk", address=url, user="cortex", password="p" * 30),
        "journals": await ada.post("/admin/integrations/aether", address=url, token="t" * 40),
        "a database": await ada.post("/admin/integrations/aether_db", host=url.removeprefix("http://"), user="u"),
        "an MCP server": await ada.post("/admin/integrations/mcp", name="odd", is_new=1, address=url),
        "its JSON": await ada.post("/admin/mcp", config=json.dumps(server)),
        "a webhook": await ada.post("/notifications/settings/address", channel="webhook", address=url),
        "ntfy": await ada.post("/notifications/settings/address", channel="ntfy", address=f"{url}/topic"),
        "push": await ada.post("/push/subscribe", endpoint=url, p256dh=sender.key, auth=sender.secret),
    }


@pytest.mark.parametrize("url", ODD[:3])
async def test_no_form_takes_an_address_that_no_library_does(ada: Browser, url: str) -> None:
    answers = {where: answer.status_code for where, answer in (await typed(ada, url)).items()}
    assert answers == dict.fromkeys(answers, 422)


@pytest.mark.full
@pytest.mark.parametrize("url", ODD[3:])
async def test_nor_any_other_such(ada: Browser, url: str) -> None:
    answers = {where: answer.status_code for where, answer in (await typed(ada, url)).items()}
    assert answers == dict.fromkeys(answers, 422)


async def test_an_odd_address_that_is_stored_already_breaks_no_page(house: Cortex, ada: Browser) -> None:
    good = await ada.post("/models", name="far", provider="openai", model="m", base_url="http://127.0.0.1:9/v1")
    assert good.status_code == 303
    for path in house.settings.home.rglob("models.yaml"):
        path.write_text(path.read_text().replace("http://127.0.0.1:9/v1", ODD[0]))
    for page in ("/models", "/models/edit?name=far", "/c/new", "/account/roles"):
        assert (await ada.get(page)).status_code < 500
