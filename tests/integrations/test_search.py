"""Each engine's own answer becomes the same rows; each engine's trouble becomes words."""

import json
import sys
from typing import Any

import httpx
import pytest

from cortex.base.address import named
from cortex.base.errors import ConfigError, NotAllowed, ToolFailed
from cortex.base.http import open_client
from cortex.integrations.search import (
    BraveSearch,
    DdgsSearch,
    SearchResult,
    SearxngSearch,
    web_search_from,
)
from tests.streamed import streamed

ROW = SearchResult(title="Otters", url="https://example.org", snippet="Hold hands.")
SEARXNG = {"results": [{"title": "Otters", "url": "https://example.org", "content": "Hold\n hands."}, "odd"]}
BRAVE = {"web": {"results": [{"title": "Otters", "url": "https://example.org", "description": "Hold hands."}]}}


def _client(status: int, body: Any, seen: list[httpx.Request] | None = None) -> Any:
    def answer(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        return streamed(status, body if isinstance(body, str) else json.dumps(body))

    return lambda: httpx.AsyncClient(transport=httpx.MockTransport(answer))


async def test_searxng() -> None:
    seen: list[httpx.Request] = []
    engine = SearxngSearch("http://search.example:8080/", _client(200, SEARXNG, seen))
    assert await engine.search("otters & co", 5) == [ROW]
    assert str(seen[0].url) == "http://search.example:8080/search?q=otters+%26+co&format=json"


async def test_brave_gets_its_key_in_a_header_only() -> None:
    seen: list[httpx.Request] = []
    assert await BraveSearch("the-key", _client(200, BRAVE, seen)).search("otters", 3) == [ROW]
    assert seen[0].headers["X-Subscription-Token"] == "the-key"
    assert "the-key" not in str(seen[0].url)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [(403, "no", "json"), (500, "oops", "500"), (429, "slow down", "429"), (200, "<html>", "no JSON")],
)
async def test_an_engine_in_trouble_is_told(status: int, body: str, words: str) -> None:
    with pytest.raises(ToolFailed, match=words):
        await SearxngSearch("http://search.example", _client(status, body)).search("otters", 5)


@pytest.mark.parametrize("body", [{}, {"results": None}, {"results": "x"}, []])
async def test_an_odd_answer_is_nothing_found(body: Any) -> None:
    assert await SearxngSearch("http://search.example", _client(200, body)).search("otters", 5) == []


async def test_the_instance_is_reached_at_its_own_place_only() -> None:
    with pytest.raises(ToolFailed):  # allowed by name, but nobody listens there
        await SearxngSearch("http://127.0.0.1:9/").search("otters", 5)
    elsewhere = SearxngSearch("http://127.0.0.1:10/", lambda: open_client(named(("127.0.0.1", 9))))
    with pytest.raises(NotAllowed):
        await elsewhere.search("otters", 5)


async def test_ddgs_without_a_network_fails_in_words() -> None:
    with pytest.raises(ToolFailed):
        await DdgsSearch().search("otters", 3)


def test_the_settings_choose_the_engine() -> None:
    assert isinstance(web_search_from(searxng_url="http://s.example", brave_api_key="k"), SearxngSearch)
    assert isinstance(web_search_from(brave_api_key="k", ddgs=True), BraveSearch)
    assert isinstance(web_search_from(ddgs=True), DdgsSearch)
    assert web_search_from() is None


def test_an_engine_whose_library_is_not_there_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs", None)
    with pytest.raises(ConfigError, match="make ddgs"):
        web_search_from(ddgs=True)
