"""Somebody else's tool catalogue as a snapshot, as the tools of an MCP server would stand in the registry.

Token figures are estimated (four characters a token): ranking reads none, and catalogues of 10,000 would take long.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from cortex.base.messages import ToolSchema
from cortex.selection.types import Domain, Example, Snapshot, ToolEntry
from tests.bench.files import Examples
from tests.bench.rows import OfferedTool

HOME = "catalogue"
CHARACTERS_A_TOKEN = 4
_FRAME_TOKENS = 30


def snapshot_of(tools: Sequence[OfferedTool], examples: Examples) -> Snapshot:
    """The tools in their order, a domain for each of their groups; unknown names in `examples` are passed over."""
    entries = tuple(entry_of(tool) for tool in tools)
    homes: dict[str, list[str]] = {}
    for entry in entries:
        homes.setdefault(entry.category, []).append(entry.name)
    domains = tuple(
        Domain(
            name=home,
            summary=home,
            examples=tuple(Example(text=text, tools=(name,)) for name in names for text in examples.get(name, ())),
            tokens=len(home) // CHARACTERS_A_TOKEN + 1,
        )
        for home, names in homes.items()
    )
    told = repr([(tool.name, tool.description, tool.group, tool.parameters) for tool in tools]) + repr(
        sorted(examples.items())
    )
    return Snapshot(version=blake2b(told.encode(), digest_size=8).hexdigest(), entries=entries, domains=domains)


def joined(own: Snapshot, brought: Snapshot) -> Snapshot:
    """The snapshot with these tools in front of its meta tools, and their domains behind its own."""
    known = {domain.name for domain in own.domains}
    business = [entry for entry in own.entries if not entry.is_meta]
    metas = [entry for entry in own.entries if entry.is_meta]
    return replace(
        own,
        version=blake2b(f"{own.version} {brought.version}".encode(), digest_size=8).hexdigest(),
        entries=(*business, *brought.entries, *metas),
        domains=(*own.domains, *(domain for domain in brought.domains if domain.name not in known)),
    )


def entry_of(tool: OfferedTool) -> ToolEntry:
    """One tool of the catalogue."""
    parameters = _parameters(tool.parameters)
    full = ToolSchema(name=tool.name, description=tool.description, parameters=parameters)
    bare = {"type": "object", "properties": {name: {} for name in parameters["properties"]}}
    size = len(tool.name) + len(tool.description)
    return ToolEntry(
        name=tool.name,
        category=tool.group or HOME,
        summary=tool.description,
        line=f"{tool.name}: {tool.description}",
        full=full,
        stub=ToolSchema(name=tool.name, description=tool.description, parameters=bare),
        tokens_full=_FRAME_TOKENS + (size + len(repr(parameters))) // CHARACTERS_A_TOKEN,
        tokens_stub=_FRAME_TOKENS + (size + len(repr(bare))) // CHARACTERS_A_TOKEN,
        tokens_line=size // CHARACTERS_A_TOKEN + 2,
        tokens_name=len(tool.name) // CHARACTERS_A_TOKEN + 2,
    )


def _parameters(given: Any) -> dict[str, Any]:
    """The arguments as a JSON schema; what is none has no arguments. Any: another format's word for them."""
    properties = given.get("properties") if isinstance(given, Mapping) else None
    if not isinstance(properties, Mapping):
        return {"type": "object", "properties": {}}
    named = {str(name): dict(node) for name, node in properties.items() if isinstance(node, Mapping)}
    return {"type": "object", "properties": named}
