"""Two real servers of the Model Context Protocol, from npm, in the sandbox: what they list, answer and cannot reach."""

import asyncio
import os
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cortex.base.errors import ToolFailed
from cortex.ports.mcp import McpServers
from cortex.services.integrations.mcp import Choice
from tests.living_house import LivingHouse, living_house
from tests.on_disk import folder_on_disk as folder_on_disk
from tests.patience import PATIENCE_S
from tests.ports import port_for
from tests.services.integrations.test_mcp_servers import NO_SANDBOX

SERVERS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cortex" / "mcp-servers"
MAKERS = SERVERS / "node_modules" / "@modelcontextprotocol"
pytestmark = [
    pytest.mark.skipif(NO_SANDBOX, reason="no sandbox works on this machine"),
    pytest.mark.skipif(not MAKERS.is_dir(), reason="the servers are not here: run `make mcp-servers`"),
]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


async def set_up(house: LivingHouse, name: str, server: str, arguments: str = "", **form: str) -> set[str]:
    """Set it up and allow all its tools; their names."""
    command = f"/usr/bin/env node {MAKERS}/{server}/dist/index.js {arguments}"
    given = {"command": command, "readable": str(SERVERS), **form}
    await house.cortex.integrations.save(house.admin, "mcp", name, given, is_new=True)
    await house.cortex.mcp_tools.look(house.admin, name)
    seen = await house.cortex.mcp_tools.tools(name)
    choices = [Choice(name=one.row.name, digest=one.row.seen_digest, is_allowed=True) for one in seen]
    await house.cortex.mcp_tools.choose(house.admin, name, choices)
    await house.cortex.tools.in_force()
    return {one.tool.name for one in seen}


async def call(house: LivingHouse, server: str, tool: str, **arguments: object) -> str:
    return await house.cortex.scope.provide(McpServers, house.admin.id).call(server, tool, dict(arguments))


async def test_the_server_with_everything_answers_with_all_kinds_of_parts(house: LivingHouse) -> None:
    names = await set_up(house, "every", "server-everything", environment="GREETING='good day'")
    assert {"every_echo", "every_get-sum", "every_read_resource"} <= names
    tools = house.cortex.runtime.registry.tools
    assert (tools["every_echo"].risk, tools["every_gzip-file-as-resource"].risk) == ("medium", "high")
    assert await call(house, "every", "echo", message="hinges") == "Echo: hinges"
    assert "kept as mcp/" in await call(house, "every", "get-tiny-image")
    assert "temperature" in await call(house, "every", "get-structured-content", location="Chicago")
    assert "[resource demo://resource/" in await call(house, "every", "get-resource-links", count=2)
    read = await call(house, "every", "read_resource", uri="demo://resource/static/document/features.md")
    assert "Everything Server" in read
    environment = await call(house, "every", "get-env")
    assert "good day" in environment
    assert "CORTEX" not in environment
    assert "SECRET" not in environment
    with pytest.raises(ToolFailed, match="fetch failed"):  # it has no network
        await call(house, "every", "gzip-file-as-resource", name="x", data="https://example.org", outputType="resource")


async def test_the_server_of_files_has_its_folders_alone(house: LivingHouse, tmp_path: Path) -> None:
    documents, other = tmp_path / "documents", tmp_path / "other"
    documents.mkdir()
    other.mkdir()
    (documents / "hinges.txt").write_text("twelve")
    (other / "secret.txt").write_text("nobody's")
    both = f"{documents} {other}"
    await set_up(house, "files", "server-filesystem", arguments=str(documents), writable=str(documents))
    assert await call(house, "files", "read_text_file", path=f"{documents}/hinges.txt") == "twelve"
    await call(house, "files", "write_file", path=f"{documents}/new.txt", content="made")
    assert (documents / "new.txt").read_text() == "made"
    with pytest.raises(ToolFailed, match="Access denied"):
        await call(house, "files", "read_text_file", path="/etc/hostname")
    # Told to open a folder that the card does not give, it finds none.
    await set_up(house, "greedy", "server-filesystem", arguments=both, writable=str(documents))
    with pytest.raises(ToolFailed):
        await call(house, "greedy", "read_text_file", path=f"{other}/secret.txt")


@asynccontextmanager
async def far_everything(port: int) -> AsyncIterator[str]:
    """The same server by streamable HTTP; its address."""
    environment = {**os.environ, "PORT": str(port)}
    program = str(MAKERS / "server-everything" / "dist" / "index.js")
    server = await asyncio.create_subprocess_exec(
        "node", program, "streamableHttp", env=environment, stdout=PIPE, stderr=STDOUT
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert server.stdout is not None
            while b"listening" not in await server.stdout.readline():
                assert server.returncode is None
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.kill()
        await server.communicate()


async def test_the_server_with_everything_is_used_again_at_once_after_its_restart(
    house: LivingHouse, request: pytest.FixtureRequest
) -> None:
    port = port_for(request.node)
    async with far_everything(port) as address:
        await house.cortex.integrations.save(house.admin, "mcp", "every", {"address": address}, is_new=True)
        await house.cortex.mcp_tools.look(house.admin, "every")
        seen = await house.cortex.mcp_tools.tools("every")
        choices = [Choice(name=one.row.name, digest=one.row.seen_digest, is_allowed=True) for one in seen]
        await house.cortex.mcp_tools.choose(house.admin, "every", choices)
        assert await call(house, "every", "echo", message="hinges") == "Echo: hinges"
    async with far_everything(port):
        assert await call(house, "every", "echo", message="again") == "Echo: again"
