"""What a server lists, read entry by entry: one that cannot be used is left out by name, with the reason, and no more.

The fields that a model or the gate would see are kept as they came, so that what is pinned is what the server said.
"""

from typing import Any

import mcp_types as types
from msgspec import Struct, field
from pydantic import ValidationError

from cortex.base.errors import ToolFailed
from cortex.base.hidden import show_hidden
from cortex.ports.mcp import LEFT_OUT

PAGES_MOST, TOOLS_MOST, TOOL_CHARACTERS, NAME_CHARACTERS = 50, 1_000, 40_000, 200
FIELDS = ("name", "title", "description", "inputSchema", "annotations")
HINTS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
NUMBER_MOST = 2**63
_INCLUDED = {"name", "title", "description", "input_schema", "annotations"}
Listed = dict[str, Any]


class ToolPages(Struct):
    """The pages of one listing, taken in one after another. `tools`: by name; an entry with `LEFT_OUT` says why."""

    tools: dict[str, Listed] = field(default_factory=dict)
    _pages: int = 0
    _count: int = 0
    _cursors: set[str] = field(default_factory=set)

    def take(self, page: dict[str, Any]) -> list[types.Tool]:
        """Take a page in; the tools of it that the protocol's package can read. ToolFailed for what is no list."""
        entries = page.get("tools")
        if not isinstance(entries, list):
            raise ToolFailed("The MCP server's list of tools cannot be read: it holds no list.")
        self._pages += 1
        proper: list[types.Tool] = []
        room = TOOLS_MOST - self._count
        for entry in entries[:room]:
            self._count += 1
            tool = _proper(entry)
            if self._add(entry, tool) and tool is not None:
                proper.append(tool)
        if len(entries) > room:
            self.leave_out("(more)", f"The server lists more than {TOOLS_MOST:,} tools; the others were not read.")
        return proper

    def next_cursor(self, page: dict[str, Any]) -> str | None:
        """Where the list goes on; None at its end, and where it has none."""
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return None
        if cursor in self._cursors or self._pages >= PAGES_MOST or self._count >= TOOLS_MOST:
            self.leave_out("(more)", "The server's list of tools has no end; what came first was read.")
            return None
        self._cursors.add(cursor)
        return cursor

    def leave_out(self, name: str, why: str) -> None:
        """Keep that this one cannot be used, in place of it."""
        shown = show_hidden(name)[:NAME_CHARACTERS] or "(no name)"
        number = 1
        key = shown
        while key in self.tools and self.tools[key].get(LEFT_OUT) != why:
            number += 1
            key = f"{shown} ({number})"
        self.tools[key] = {"name": key, LEFT_OUT: why}

    def _add(self, entry: object, tool: types.Tool | None) -> bool:
        """Tell whether it can be used."""
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(name, str) or not name.strip():
            self.leave_out(f"(entry {self._count})", "It has no name.")
        elif len(name) > NAME_CHARACTERS:
            self.leave_out(name, f"Its name has {len(name):,} characters; at most {NAME_CHARACTERS} can be used.")
        elif not name.isprintable():
            self.leave_out(name, "Its name contains characters that cannot be shown.")
        elif name in self.tools:
            self.leave_out(name, "The server lists two tools of this name; the first is used.")
        else:
            given = _given(entry, tool)
            size = len(str(given))
            if size <= TOOL_CHARACTERS:
                self.tools[name] = given
                return True
            self.leave_out(
                name, f"It is described in {size:,} characters; at most {TOOL_CHARACTERS:,} are read of a tool."
            )
        return False


def _proper(entry: object) -> types.Tool | None:
    try:
        return types.Tool.model_validate(entry, by_name=False)
    except ValidationError:
        return None


def _given(entry: dict[str, Any], tool: types.Tool | None) -> Listed:
    """The fields that are kept; of a wrong type counts as not said."""
    if tool is not None:
        given = tool.model_dump(mode="json", by_alias=True, exclude_none=True, include=_INCLUDED)
    else:
        hints, schema = entry.get("annotations"), entry.get("inputSchema")
        given = {"name": entry["name"], "inputSchema": schema if isinstance(schema, dict) else {}}
        given |= {key: entry[key] for key in ("title", "description") if isinstance(entry.get(key), str)}
        if isinstance(hints, dict):
            given["annotations"] = {key: hints[key] for key in HINTS if isinstance(hints.get(key), str | bool)}
    return {key: _kept(given[key]) for key in FIELDS if key in given}


def _kept(value: Any) -> Any:  # Any: a JSON value, of at most the levels that `nesting.py` leaves
    """The value as every database keeps it: no zero character, no number that is none or has no end."""
    match value:
        case dict():
            return {_kept(key): _kept(one) for key, one in value.items()}
        case list():
            return [_kept(one) for one in value]
        case str():
            return value.replace("\0", "\ufffd")
        case float() if value != value or abs(value) == float("inf"):
            return None
        case int() if not isinstance(value, bool) and abs(value) >= NUMBER_MOST:
            return float(value)
    return value
