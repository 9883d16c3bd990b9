"""MCP servers by streamable HTTP: headers of the card, a login by OAuth, what is down, where secrets never go."""

import asyncio
import json
import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from cortex.base.errors import ServiceDown, ToolFailed, UserError
from cortex.ports.mcp import McpServers
from cortex.services.integrations.mcp import Choice
from tests.far_mcp import FarServer, far_server
from tests.living_house import LivingHouse
from tests.mcp_house import LONGEST_S
from tests.patience import PATIENCE_S
from tests.ports import port_for


@pytest.fixture
def port(request: pytest.FixtureRequest) -> int:
    return port_for(request.node)


async def allow_all(house: LivingHouse, server: str) -> None:
    seen = await house.cortex.mcp_tools.tools(server)
    choices = [Choice(name=one.row.name, digest=one.row.seen_digest, is_allowed=True) for one in seen]
    await house.cortex.mcp_tools.choose(house.admin, server, choices)


async def call(house: LivingHouse, tool: str, **arguments: str) -> str:
    return await house.cortex.scope.provide(McpServers, house.admin.id).call("far", tool, arguments)


async def set_up(house: LivingHouse, far: FarServer, **form: str) -> None:
    await house.cortex.integrations.save(
        house.admin, "mcp", "far", {"address": far.address, "timeout_s": LONGEST_S, **form}, is_new=True
    )


async def back_from(address: str) -> dict[str, str]:
    """What the browser brings back from the login server, which decides at once."""
    async with httpx.AsyncClient(timeout=PATIENCE_S) as browser:
        answer = await browser.get(address)
    assert answer.status_code == 302, answer.text
    return {key: values[0] for key, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}


async def test_a_server_elsewhere_is_called_with_the_headers_of_its_card(house: LivingHouse, port: int) -> None:
    async with far_server(port) as far:
        await set_up(house, far, headers="Authorization='Bearer not-a-real-key' X-House=ada")
        assert await house.cortex.mcp_tools.look(house.admin, "far") == 2
        await allow_all(house, "far")
        assert "far_weather" in await house.cortex.tools.permitted(house.admin, "orchestrator")
        assert await call(house, "weather", town="Ghent") == "Rain in Ghent."
        assert all(sent["authorization"] == "Bearer not-a-real-key" for sent in far.headers)
        tool = house.cortex.runtime.registry.tools["far_weather"]
        assert tool.sends_to is not None
        assert (tool.risk, tool.sends_out, tool.sends_to({})) == ("medium", True, "127.0.0.1")
    with pytest.raises(ServiceDown):
        await call(house, "weather", town="Ghent")
    async with far_server(port):  # it is back
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    assert await call(house, "weather", town="Ghent") == "Rain in Ghent."
                    break
                except ServiceDown:
                    await asyncio.sleep(0.2)


async def test_headers_do_not_travel_to_another_address(house: LivingHouse, port: int) -> None:
    async with far_server(port) as far:
        await set_up(house, far, headers="Authorization='Bearer not-a-real-key'")
        elsewhere = {"address": f"http://127.0.0.1:{port + 1}/mcp"}
        with pytest.raises(UserError, match="Enter it again"):
            await house.cortex.integrations.save(house.admin, "mcp", "far", elsewhere, is_new=False)


async def test_a_login_is_begun_finished_kept_and_renewed(house: LivingHouse, port: int) -> None:
    cortex, ada = house.cortex, house.admin
    async with far_server(port, has_login=True) as far:
        far.login.lasts_s = 1
        await set_up(house, far, has_login="1")
        with pytest.raises(ToolFailed, match="an admin can log in on the page of its tools"):
            await cortex.mcp_tools.look(ada, "far")
        address = await cortex.mcp_logins.begin(ada, "far")
        assert urlsplit(address).path == "/authorize"
        assert parse_qs(urlsplit(address).query)["code_challenge_method"] == ["S256"]
        given = await back_from(address)
        with pytest.raises(UserError, match="not started here"):
            await cortex.mcp_logins.finish(house.member, given)
        address = await cortex.mcp_logins.begin(ada, "far")
        given = await back_from(address)
        with pytest.raises(UserError, match="not started here"):
            await cortex.mcp_logins.finish(ada, {**given, "state": "made up"})
        assert await cortex.mcp_logins.finish(ada, given) == "far"
        with pytest.raises(UserError, match="not started here"):
            await cortex.mcp_logins.finish(ada, given)
        async with asyncio.timeout(PATIENCE_S):
            while True:  # it was told to wait after the first failure
                try:
                    assert await cortex.mcp_tools.look(ada, "far") == 2
                    break
                except ServiceDown:
                    await asyncio.sleep(0.2)
        await allow_all(house, "far")
        await cortex.tools.permitted(ada, "orchestrator")
        while time.time() < max(one.expires_at or 0 for one in far.login.tokens.values()) + 1:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        far.login.lasts_s = 3_600
        assert await call(house, "weather", town="Ghent") == "Rain in Ghent."
        row = await cortex.mcp_tools.server("far")
        assert not {*far.login.tokens, *far.login.refresh} & set(json.dumps(row.settings).split('"'))


async def test_a_login_that_is_refused_says_so(house: LivingHouse, port: int) -> None:
    async with far_server(port, has_login=True) as far:
        far.login.is_willing = False
        await set_up(house, far, has_login="1")
        given = await back_from(await house.cortex.mcp_logins.begin(house.admin, "far"))
        with pytest.raises(ToolFailed, match="The login was refused: access_denied"):
            await house.cortex.mcp_logins.finish(house.admin, given)


async def test_a_server_without_a_login_is_not_logged_in_to(house: LivingHouse, port: int) -> None:
    async with far_server(port) as far:
        await set_up(house, far)
        with pytest.raises(UserError, match="without a login"):
            await house.cortex.mcp_logins.begin(house.admin, "far")
