"""The arguments of a tool as a form: its fields from the schema, and what was typed back as arguments.

Pure. `web/pages/tool_call.py` and `approval_edit.py` call it; the gate checks the arguments as it checks a model's.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Literal

from msgspec import Struct
from pydantic import ValidationError

from cortex.base.errors import UserError
from cortex.base.form_words import what_is_wrong
from cortex.base.json_text import parsed
from cortex.toolkit.spec import Tool
from cortex.toolkit.words import label

Kind = Literal["text", "date", "number", "choice", "list", "json"]
ReadDay = Callable[[str], date | None]
WHOLE = "json"
TRUTH = (("true", "yes"), ("false", "no"))


class CallField(Struct, frozen=True, kw_only=True):
    """One argument. `options`: values with their words, for a choice; `default`: what holds where nothing is typed."""

    name: str
    label: str
    kind: Kind
    hint: str
    is_required: bool
    options: tuple[tuple[str, str], ...] = ()
    default: str = ""
    least: float | None = None
    most: float | None = None
    is_whole: bool = False


class Read(Struct, frozen=True, kw_only=True):
    """The typed values as the arguments' JSON; `faults`: field -> what is wrong with it, then `arguments` is ""."""

    arguments: str
    faults: Mapping[str, str]


def fields_of(tool: Tool) -> tuple[CallField, ...]:
    """The tool's arguments in the order of its signature."""
    schema = tool.full.parameters
    required, nodes = schema.get("required", ()), schema.get("properties", {})
    return tuple(_field(name, nodes[name], name in required) for name in _names(tool))


def read(tool: Tool, typed: Mapping[str, str], read_day: ReadDay, whole: str = "") -> Read:
    """The arguments from the fields; `whole`: JSON that stands in place of all of them; `read_day`: of typed words."""
    faults: dict[str, str] = {}
    values = _object(whole, faults) if whole.strip() else _values(tool, typed, read_day, faults)
    if not faults:
        faults = _checked(tool, values, is_whole=bool(whole.strip()))
    return Read(arguments="" if faults else json.dumps(values, ensure_ascii=False), faults=faults)


def typed_of(tool: Tool, arguments: str) -> dict[str, str]:
    """Arguments as they would have been typed, for a form that shows them again; defaults stay blank."""
    values: dict[str, Any] = json.loads(arguments)
    fields = tool.arguments.model_fields
    shipped = {name: fields[name].default if name in fields else None for name in _names(tool)}
    return {
        field.name: _typed(field, values[field.name])
        for field in fields_of(tool)
        if values.get(field.name, shipped[field.name]) != shipped[field.name]
    }


def _names(tool: Tool) -> Sequence[str]:
    """The arguments in the order of the signature; of a tool that has none (an MCP server's) as its schema has them."""
    own = tool.arguments.model_fields
    return tuple(own) if "root" not in own else tuple(tool.full.parameters.get("properties", {}))


def _field(name: str, node: Mapping[str, Any], is_required: bool) -> CallField:
    named = node.get("type", [])
    kinds: list[str] = [kind for kind in (named if isinstance(named, list) else [named]) if kind != "null"]
    kind, options = _kind(node, kinds[0] if len(kinds) == 1 else "")
    default = node.get("default")
    return CallField(
        name=name,
        label=label(name),
        kind=kind,
        hint=str(node.get("description", "")),
        is_required=is_required,
        options=options,
        default=_default_text(default),
        least=node.get("minimum"),
        most=node.get("maximum"),
        is_whole=kinds == ["integer"],
    )


def _default_text(default: Any) -> str:
    """A default in words; "" where there is nothing to say."""
    if isinstance(default, bool):
        return "yes" if default else "no"
    return "" if default is None else str(default)


def _kind(node: Mapping[str, Any], kind: str) -> tuple[Kind, tuple[tuple[str, str], ...]]:
    if "enum" in node:
        return "choice", tuple((str(value), str(value)) for value in node["enum"] if value is not None)
    if kind == "boolean":
        return "choice", TRUTH
    if kind in ("integer", "number"):
        return "number", ()
    if kind == "string":
        return ("date" if node.get("format") == "date" else "text"), ()
    if kind == "array" and node.get("items", {}).get("type") == "string":
        return "list", ()
    return "json", ()


def _values(tool: Tool, typed: Mapping[str, str], read_day: ReadDay, faults: dict[str, str]) -> dict[str, Any]:
    """Return what was typed into each field; a blank one is left out, and stands for the default."""
    values: dict[str, Any] = {}
    for field in fields_of(tool):
        said = typed.get(field.name, "").replace("\r\n", "\n")
        if not said.strip():
            if field.is_required:
                faults[field.name] = "This is needed."
            continue
        values[field.name] = _value(field, said, read_day, faults)
    return values


def _value(field: CallField, said: str, read_day: ReadDay, faults: dict[str, str]) -> Any:
    if field.kind == "list":
        return [row.strip() for row in said.splitlines() if row.strip()]
    if field.options == TRUTH:
        return said == "true"
    if field.kind == "json":
        try:
            return parsed(said)
        except ValueError as error:
            faults[field.name] = f"This is not JSON: {error}."
            return None
    if field.kind == "date":
        try:
            day = read_day(said)
        except UserError as refused:
            faults[field.name] = refused.message
            return None
        return day.isoformat() if day else None
    return said if field.kind == "text" else said.strip()


def _object(whole: str, faults: dict[str, str]) -> dict[str, Any]:
    try:
        values = parsed(whole)
    except ValueError as error:
        faults[WHOLE] = f"This is not JSON: {error}."
        return {}
    if not isinstance(values, dict):
        faults[WHOLE] = "The arguments are one JSON object: {…}."
        return {}
    return values


def _checked(tool: Tool, values: Mapping[str, Any], *, is_whole: bool) -> dict[str, str]:
    """Return what the tool's own model finds wrong, by field."""
    try:
        tool.arguments.model_validate(values)
    except ValidationError as error:
        faults: dict[str, str] = {}
        for item in error.errors():
            name = str(item["loc"][0]) if item["loc"] else WHOLE
            said = what_is_wrong(item)
            words = f"{name}: {said}." if is_whole else f"{said[:1].upper()}{said[1:]}."
            faults.setdefault(WHOLE if is_whole else name, words)
        return faults
    return {}


def _typed(field: CallField, value: Any) -> str:
    if field.options == TRUTH:
        return "true" if value else "false"
    if field.kind == "list":
        return "\n".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if field.kind == "json" else str(value)
