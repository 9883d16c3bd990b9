"""An MCP server of ours set up in a living house: its tools listed in a file, looked for, allowed."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cortex.ports.mcp import McpServers
from cortex.services.integrations.mcp import Choice
from tests import hostile_mcp
from tests.living_house import LivingHouse

READS = {"readOnlyHint": True, "openWorldHint": False}
LONGEST_S = "140"  # that the form takes
ANYTHING = {"type": "object", "properties": {"do": {"type": "string"}, "say": {"type": "string"}}}


def listed(name: str, description: str = "Does it.", *, is_read: bool = False, **more: Any) -> dict[str, Any]:
    hints = {"annotations": READS} if is_read else {}
    return {"name": name, "description": description, "inputSchema": ANYTHING, **hints, **more}


@dataclass(frozen=True, slots=True)
class McpHouse:
    """The server is called `shop`; `folder` holds the file of what it lists."""

    house: LivingHouse
    folder: Path

    def lists(self, *tools: dict[str, Any]) -> None:
        (self.folder / "listing.json").write_text(json.dumps(tools))

    def install(self, program: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        program.write_text(Path(hostile_mcp.__file__).read_text())

    async def set_up(self, *tools: dict[str, Any], **form: Any) -> None:
        """Set the server up with these tools, and allow them all."""
        self.install(self.folder / "server.py")
        self.lists(*tools)
        await self.save(is_new=True, **form)
        await self.house.cortex.mcp_tools.look(self.house.admin, "shop")
        await self.allow()

    async def save(self, *, is_new: bool = False, **form: Any) -> None:
        """Keep its form, with the longest limit unless another is given."""
        command = shlex.join(["/usr/bin/python3", str(self.folder / "server.py"), str(self.folder / "listing.json")])
        given = {"command": command, "readable": str(self.folder), "timeout_s": LONGEST_S, **form}
        await self.house.cortex.integrations.save(self.house.admin, "mcp", "shop", given, is_new=is_new)

    async def allow(self, *, words: str = "") -> int:
        """Allow all that was seen."""
        seen = await self.house.cortex.mcp_tools.tools("shop")
        choices = [
            Choice(name=one.row.name, digest=one.row.seen_digest, is_allowed=True, words=words)
            for one in seen
            if one.row.seen is not None
        ]
        return await self.house.cortex.mcp_tools.choose(self.house.admin, "shop", choices)

    async def allow_usable(self) -> None:
        """Allow all but what was left out."""
        seen = [one for one in await self.house.cortex.mcp_tools.tools("shop") if not one.left_out and one.row.seen]
        choices = [Choice(name=one.row.name, digest=one.row.seen_digest, is_allowed=True) for one in seen]
        await self.house.cortex.mcp_tools.choose(self.house.admin, "shop", choices)

    async def call(self, tool: str, **arguments: Any) -> str:
        """Call it as an admin's turn would once the gate let it."""
        port = self.house.cortex.scope.provide(McpServers, self.house.admin.id)
        return await port.call("shop", tool, arguments)

    async def permitted(self) -> frozenset[str]:
        return await self.house.cortex.tools.permitted(self.house.admin, "orchestrator")
