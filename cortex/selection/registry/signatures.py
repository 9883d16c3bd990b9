"""A tool in one line, for a model that calls it through the bridge or has just found it: arguments with their types."""

import json
from typing import Any

from cortex.selection.types import ToolEntry


def signature(entry: ToolEntry) -> str:
    """`name(argument: type, optional?: type): summary`, with the allowed values where they are few."""
    properties: dict[str, Any] = entry.full.parameters.get("properties", {})
    required = entry.full.parameters.get("required", [])
    names = [*required, *(name for name in properties if name not in required)]
    told = (
        f"{name}{'' if name in required else '?'}: {_kind(properties[name])}" for name in names if name in properties
    )
    return f"{entry.name}({', '.join(told)}): {entry.summary}"


def _kind(node: dict[str, Any]) -> str:
    if "enum" in node:
        return "|".join(json.dumps(value, ensure_ascii=False) for value in node["enum"])
    kind = node.get("type", "any")
    words = "|".join(kind) if isinstance(kind, list) else str(kind)
    return f"{words} ({node['format']})" if "format" in node else words
