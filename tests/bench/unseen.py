"""Tools that nobody was trained on: made-up servers of 30 tools each, put beside what ships, as an MCP server is.

`unseen/*_catalog.jsonl` lists a server's tools as the server would, `unseen/routing_*.jsonl` what people ask of them.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cortex.selection.registry.snapshot import snapshot_of
from cortex.toolkit.mcp import McpServer, McpTool, mcp_category, tool_name
from cortex.toolkit.registry import Registry
from tests.bench import files
from tests.bench.catalogues import joined
from tests.bench.files import RoutingSet
from tests.bench.ground import BenchGround
from tests.bench.rows import OfferedTool

FOLDER = Path(__file__).parent / "unseen"
SERVERS = ("cluster", "shop", "travel")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenServer:
    """A server's tools, and messages that need them or none; the needs are named as the registry names the tools."""

    name: str
    tools: tuple[OfferedTool, ...]
    asked: RoutingSet


@lru_cache(maxsize=1)
def servers() -> tuple[UnseenServer, ...]:
    """The made-up servers by name."""
    return tuple(_server(name) for name in SERVERS)


def beside(ground: BenchGround, server: UnseenServer) -> BenchGround:
    """The same ground with this server's tools in the registry, without any example of what people say to them."""
    tools = [
        McpTool(name=tool.name, description=tool.description, schema=dict(tool.parameters or {}))
        for tool in server.tools
    ]
    brought = snapshot_of(Registry((mcp_category(McpServer(name=server.name), tools),)))
    return ground.over(joined(ground.snapshot, brought), channel=ground.channel)


def _server(name: str) -> UnseenServer:
    found = files.read(FOLDER / f"{name}_catalog.jsonl", _quiet)
    asked = files.read(FOLDER / f"routing_{name}.jsonl", _quiet).routing[0]
    rows = tuple(
        row.model_copy(
            update={"need_tools": tuple(tuple(tool_name(name, each) for each in group) for group in row.need_tools)}
        )
        for row in asked.rows
    )
    return UnseenServer(name=name, tools=found.filler, asked=RoutingSet(name=f"unseen_{name}", rows=rows))


def _quiet(line: str) -> None:
    """Our own files are as they should be."""
