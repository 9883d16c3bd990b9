"""The tools of MCP servers: what each server listed last, and what an admin allowed of it."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import delete, update

from cortex.base.ids import digest
from cortex.ports.mcp import FAMILY
from cortex.storage.repository import SharedRepository, reading, selected
from cortex.storage.schema import McpToolTable

Listed = dict[str, Any]  # a tool's JSON as its server sent it


class McpToolRow(Struct, frozen=True, kw_only=True):
    """A tool as it is stored; the fields are those of `McpToolTable`."""

    server: str
    name: str
    seen: Listed | None
    seen_digest: str
    seen_at: datetime
    allowed: Listed | None = None
    allowed_digest: str = ""
    allowed_by: str = ""
    allowed_at: datetime | None = None
    words: str = ""

    @property
    def is_in_force(self) -> bool:
        """Tell whether it is allowed, and still what it was then."""
        return self.allowed is not None and self.allowed_digest == self.seen_digest

    @property
    def has_changed(self) -> bool:
        """Tell whether it was allowed, and is another or gone since."""
        return self.allowed is not None and self.allowed_digest != self.seen_digest


class McpToolsRepository(SharedRepository):
    """Of the whole server; who may allow one is the services' matter."""

    @reading
    async def list(self, server: str = "") -> Sequence[McpToolRow]:
        """The tools of this server, or of all of them, by server and name."""
        rows = selected(McpToolRow, McpToolTable)
        if server:
            rows = rows.where(McpToolTable.server == server)
        return await self._all(McpToolRow, rows.order_by(McpToolTable.server, McpToolTable.name))

    async def seen(self, server: str, listed: Mapping[str, Listed]) -> bool:
        """Keep what the server lists now, by name; whether any tool that is allowed changed, went or came back."""
        known = {row.name: row for row in await self.list(server)}
        is_changed = False
        for name, row in known.items():
            if name not in listed and row.seen is not None:
                is_changed |= row.allowed is not None
                await self._note(server, name, None)
        for name, value in listed.items():
            before = known.get(name)
            if before is None:
                await self.session.execute(self._upsert(McpToolTable, self._row(server, name, value)))
            elif before.seen_digest != digest_of(value):
                is_changed |= before.allowed is not None
                await self._note(server, name, value)
        gone = [name for name, row in known.items() if name not in listed and row.allowed is None]
        await self.session.execute(delete(McpToolTable).where(*_at(server), McpToolTable.name.in_(gone)))
        return is_changed

    async def allow(self, server: str, name: str, seen_digest: str, words: str, by: str) -> bool:
        """Let it be used as it was seen; False where it is another by now."""
        found = next((row for row in await self.list(server) if row.name == name), None)
        if found is None or found.seen is None or found.seen_digest != seen_digest:
            return False
        values = {"allowed": found.seen, "allowed_digest": seen_digest, "allowed_by": by, "allowed_at": self.clock()}
        change = update(McpToolTable).where(*_at(server), McpToolTable.name == name)
        await self.session.execute(change.values(**values, words=words))
        return True

    async def forbid(self, server: str, name: str) -> None:
        """Let nobody use it."""
        change = update(McpToolTable).where(*_at(server), McpToolTable.name == name)
        await self.session.execute(change.values(allowed=None, allowed_digest="", allowed_by="", allowed_at=None))

    async def _note(self, server: str, name: str, value: Listed | None) -> None:
        change = update(McpToolTable).where(*_at(server), McpToolTable.name == name)
        seen_digest = digest_of(value) if value is not None else ""
        await self.session.execute(change.values(seen=value, seen_digest=seen_digest, seen_at=self.clock()))

    def _row(self, server: str, name: str, value: Listed) -> dict[str, Any]:
        seen = {"seen": value, "seen_digest": digest_of(value), "seen_at": self.clock()}
        return {"kind": FAMILY, "server": server, "name": name, **seen}


def digest_of(value: Listed) -> str:
    """A hash over all of it: what is pinned."""
    return digest(portable_text(value))


def portable_text(value: Listed) -> str:
    """JSON with sorted keys: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _at(server: str) -> tuple[Any, ...]:  # Any: SQLAlchemy's conditions
    return (McpToolTable.kind == FAMILY, McpToolTable.server == server)
