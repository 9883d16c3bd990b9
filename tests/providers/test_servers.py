"""The table of servers: each row is whole, its address leads to it, and it knows how its server says no."""

import re
from datetime import date
from typing import get_args
from urllib.parse import urlsplit

import pytest

from cortex.base.errors import RejectionKind
from cortex.providers.server_row import ServerRow
from cortex.providers.servers import (
    OTHER,
    SERVERS,
    asked_at,
    base_of,
    by_id,
    headers_of,
    server_of,
)
from tests.model_servers.rows import ROWS
from tests.server_words import SAID

ALL = (*SERVERS, OTHER)
GROUPS = {"window", "output", "name", "index"}


def test_every_row_has_a_double_that_speaks_as_its_server_does() -> None:
    assert {row.id for row in ALL} == {row.engine or OTHER.id for row in ROWS}
    assert len({row.id for row in ALL}) == len({row.label for row in ALL}) == len(ALL)


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.id)
def test_a_row_says_where_its_facts_are_from_and_when_they_were_read(row: ServerRow) -> None:
    assert row.sources
    assert all(urlsplit(source).scheme == "https" and urlsplit(source).netloc for source in row.sources)
    assert date(2026, 1, 1) <= date.fromisoformat(row.read) <= date(2026, 12, 31)
    assert row.note


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.id)
def test_a_row_does_not_contradict_itself(row: ServerRow) -> None:
    assert row.protocols
    assert bool(row.base_url) != (row.id in ("azure", "other")), "an address, or an example of one"
    assert set(row.goes_back) - {"redacted_thinking", "extra_content"} <= set(row.reasoning)
    for models, place, value in row.stand_ins:
        assert re.compile(models)
        assert place.removeprefix("calls.").partition(".")[0] in row.goes_back, "it stands where the real one goes"
        assert value
    assert row.omits <= {"parallel_tool_calls", "stream_options", "tool_choice=required"}
    assert bool(row.keys_url) != (row.is_local or row is OTHER)


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [said for row in ALL for said in row.says.items()],
)
def test_every_pattern_compiles_is_lower_case_and_names_known_groups(kind: RejectionKind, pattern: str) -> None:
    assert kind in get_args(RejectionKind)
    found = re.compile(pattern, re.IGNORECASE)
    assert set(found.groupindex) <= GROUPS
    assert not found.search(""), "it would match anything"
    assert not re.search(r"(?<!\\)[A-Z]", re.sub(r"\(\?P<", "", pattern)), "patterns are looked for in any case"


@pytest.mark.parametrize("row", [row for row in SERVERS if row.hosts], ids=lambda row: row.id)
def test_an_address_leads_to_its_row(row: ServerRow) -> None:
    url = row.base_url or "https://our-team.openai.azure.com/openai/v1"
    if not row.is_local:
        assert server_of(url) is row
        assert server_of(url.upper()) is row
    host = urlsplit(url).hostname or ""
    assert server_of(f"https://{host}.evil.example/v1") is OTHER
    assert server_of(f"https://not-{'.'.join(host.split('.')[-2:])}/v1") is OTHER


def test_without_an_address_it_is_the_makers_own_and_at_home_what_it_was_found_to_be() -> None:
    assert server_of("").id == "openai"
    assert server_of("http://127.0.0.1:8080/v1") is OTHER
    assert server_of("http://127.0.0.1:8080/v1", engine="llamacpp").id == "llamacpp"
    assert server_of("http://127.0.0.1:8080/v1", engine="gone-since") is OTHER
    assert server_of("https://api.mistral.ai/v1", engine="vllm").id == "mistral", "its own host speaks louder"


def test_a_key_goes_in_the_header_that_its_server_reads() -> None:
    assert headers_of(by_id("openai"), "k") == {"Authorization": "Bearer k"}
    assert headers_of(by_id("azure"), "k") == {"api-key": "k"}
    assert headers_of(by_id("anthropic"), "k") == {"anthropic-version": "2026-10-21", "x-api-key": "k"}
    assert headers_of(by_id("openrouter"), "k") == {"X-Title": "Cortex", "Authorization": "Bearer k"}
    assert [headers_of(row, "") for row in ALL if row.is_local] == [{}] * 5


@pytest.mark.parametrize(
    ("server", "base", "asked"),
    [
        ("openai", "https://api.openai.com/v1/", "https://api.openai.com/v1"),
        ("azure", "https://us.openai.azure.com", "https://us.openai.azure.com/openai/v1"),
        ("azure", "https://us.openai.azure.com/openai", "https://us.openai.azure.com/openai/v1"),
        ("azure", "https://us.services.ai.azure.com/models", "https://us.services.ai.azure.com/openai/v1"),
        ("azure", "https://gate.example/ai/v1", "https://gate.example/ai/v1"),
        (
            "azure",
            "https://us.openai.azure.com/openai/deployments/our-chat",
            "https://us.openai.azure.com/openai/deployments/our-chat?api-version=2024-10-21",
        ),
    ],
)
def test_each_request_goes_where_the_server_takes_it(server: str, base: str, asked: str) -> None:
    assert asked_at(by_id(server), base) == asked
    assert base_of(by_id("openai"), base) == base.rstrip("/")


@pytest.mark.parametrize(("server", "kind", "said", "groups"), SAID)
def test_a_row_understands_the_words_of_its_server(server: str, kind: str, said: str, groups: dict[str, str]) -> None:
    assert {what: _named(pattern, said) for what, pattern in by_id(server).says.items() if _is(pattern, said)} == {
        kind: groups
    }


def test_each_row_of_a_server_that_refuses_was_tried_with_its_words() -> None:
    tried = {server for server, *_ in SAID}
    assert tried == {row.id for row in ALL if row.says}


def test_plain_failures_are_no_rejection_of_the_request() -> None:
    told = ("Internal server error", "Bad gateway", "Rate limit reached for requests", "Incorrect API key provided.")
    assert [kind for row in ALL for kind, pattern in row.says.items() for said in told if _is(pattern, said)] == []


def _is(pattern: str, said: str) -> bool:
    return re.search(pattern, said, re.IGNORECASE) is not None


def _named(pattern: str, said: str) -> dict[str, str]:
    found = re.search(pattern, said, re.IGNORECASE)
    return {name: value for name, value in found.groupdict().items() if value} if found else {}
