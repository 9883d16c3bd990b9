"""Reads a model's arguments for a tool: checked by its pydantic model, or refused in words that mend the next try."""

import json
from typing import Any

from pydantic import BaseModel, ValidationError

from cortex.base.errors import ToolRetry
from cortex.toolkit.schema import canonical
from cortex.toolkit.spec import Tool

ARGUMENTS_CHARACTERS = 2_000_000


def read_arguments(tool: Tool, text: str) -> BaseModel:
    """The checked arguments in `text` (JSON, "" = none); ToolRetry says each fault and what was expected."""
    if len(text) > ARGUMENTS_CHARACTERS:
        raise ToolRetry(f"{tool.name} did not run: its arguments are longer than {ARGUMENTS_CHARACTERS} characters.")
    try:
        return tool.arguments.model_validate_json(text.strip() or "{}")
    except ValidationError as error:
        faults = "; ".join(_fault(item["loc"], item["msg"]) for item in error.errors(include_url=False)[:5])
        raise ToolRetry(f"{tool.name} did not run: {faults}. Expected: {expected(tool)}") from error


def keywords(arguments: BaseModel) -> dict[str, Any]:
    """The arguments as keywords for `tool.function(ctx, **keywords)`: values as validated, not dumped."""
    return {name: getattr(arguments, name) for name in type(arguments).model_fields}


def canonical_arguments(arguments: BaseModel) -> str:
    """The arguments as canonical JSON, defaults filled in: what an approval's hash is made of."""
    return canonical(json.loads(arguments.model_dump_json()))


def expected(tool: Tool) -> str:
    """The arguments that the tool takes, as short as a model can read them: `title: string, due?: string|null`."""
    properties: dict[str, Any] = tool.full.parameters.get("properties", {})
    required = tool.full.parameters.get("required", [])
    order = [name for name in tool.arguments.model_fields if name in properties]
    return ", ".join(f"{name}{'' if name in required else '?'}: {_kind(properties[name])}" for name in order) or "none"


def _kind(node: dict[str, Any]) -> str:
    if "enum" in node:
        return "|".join(json.dumps(value) for value in node["enum"])
    kind = node.get("type", "any")
    words = "|".join(kind) if isinstance(kind, list) else str(kind)
    return f"{words} ({node['format']})" if "format" in node else words


def _fault(where: tuple[int | str, ...], what: str) -> str:
    place = ".".join(str(part) for part in where)
    return f"{place}: {what}" if place else what
