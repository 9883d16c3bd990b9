"""From a typed function and its docstring to what a model is sent: arguments model, full, stub and line form.

Pure: reads signatures, writes no file, calls nothing. `decorator.py` is the only caller; a fault in a tool's
signature or docstring is a `TypeError` while the category is imported.
"""

import inspect
import json
import typing
from collections.abc import Callable
from datetime import date, datetime
from hashlib import sha256
from typing import Annotated, Any

from msgspec import Struct
from pydantic import BaseModel, BeforeValidator, ConfigDict, create_model
from pydantic.fields import FieldInfo

from cortex.base.messages import ToolSchema
from cortex.toolkit.context import Ctx

SUMMARY_CHARACTERS = 70
SECTIONS = ("Args:", "Returns:", "Raises:", "Yields:", "Example:", "Examples:", "Note:")


class DocstringParts(Struct, frozen=True, kw_only=True):
    """A docstring taken apart: first line, the paragraphs after it, and a line a parameter."""

    summary: str
    body: str
    arguments: dict[str, str]


class Forms(Struct, frozen=True, kw_only=True):
    """All that a model may see of a tool, and the model that checks its calls."""

    arguments: type[BaseModel]
    full: ToolSchema
    stub: ToolSchema
    line: str
    summary: str
    hash: str


def forms(function: Callable[..., Any], name: str) -> Forms:
    """The forms of `function` under `name`; TypeError when its docstring or types are not complete."""
    words = read_docstring(inspect.getdoc(function) or "", name)
    fields = _fields(function, name)
    missing = [key for key in fields if key not in words.arguments]
    unknown = [key for key in words.arguments if key not in fields]
    if missing or unknown:
        raise TypeError(f"{name}: the docstring's Args lack {missing} and name unknown {unknown}")
    arguments = _model(name, fields)
    parameters = minify(arguments.model_json_schema())
    described = _described(parameters, words.arguments)
    description = f"{words.summary}\n{words.body}" if words.body else words.summary
    full = ToolSchema(name=name, description=description, parameters=described)
    stub = ToolSchema(name=name, description=words.summary, parameters=bare(parameters))
    line = f"{name}: {words.summary.rstrip('.')}"
    digest = sha256(canonical([name, description, described, words.summary]).encode()).hexdigest()[:16]
    return Forms(arguments=arguments, full=full, stub=stub, line=line, summary=words.summary, hash=digest)


def read_docstring(text: str, name: str) -> DocstringParts:
    """The parts of a Google docstring; TypeError when the first line is missing, too long or without a full stop."""
    lines = text.splitlines()
    summary = lines[0].strip() if lines else ""
    if not summary or len(summary) >= SUMMARY_CHARACTERS:
        raise TypeError(f"{name}: the docstring's first line must have 1 to {SUMMARY_CHARACTERS - 1} characters")
    body: list[str] = []
    arguments: dict[str, str] = {}
    section, current = "", ""
    for line in lines[1:]:
        if line.strip() in SECTIONS:
            section = line.strip()
        elif not section:
            body.append(line.strip())
        elif section == "Args:" and line.strip():
            current = _argument_line(line, current, arguments)
    return DocstringParts(summary=summary, body=" ".join(part for part in body if part), arguments=arguments)


def _argument_line(line: str, current: str, arguments: dict[str, str]) -> str:
    """Take one line of the Args section in; a deeper indent continues the parameter before it."""
    indent = len(line) - len(line.lstrip())
    if indent > 4 and current:
        arguments[current] = f"{arguments[current]} {line.strip()}"
        return current
    key, colon, words = line.strip().partition(":")
    if not colon or not words.strip():
        raise TypeError(f"the Args line {line.strip()!r} is not 'name: words'")
    arguments[key] = words.strip()
    return key


def _fields(function: Callable[..., Any], name: str) -> dict[str, tuple[Any, Any]]:
    """Parameter name -> (type, default) of everything but the `Ctx`."""
    hints = typing.get_type_hints(function, include_extras=True)
    fields: dict[str, tuple[Any, Any]] = {}
    for index, parameter in enumerate(inspect.signature(function).parameters.values()):
        kind = hints.get(parameter.name)
        if index == 0:
            if kind is not Ctx:
                raise TypeError(f"{name}: the first parameter must be `ctx: Ctx`")
            continue
        if kind is None or parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{name}: parameter {parameter.name!r} needs a type and a plain name")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (_guarded(kind), default)
    return fields


def _guarded(kind: Any) -> Any:
    """The type with numbers refused where a date is meant: pydantic would read 5 as a day of 1970."""
    bare = [part for part in (kind, *typing.get_args(kind)) if part in (date, datetime)]
    return Annotated[kind, BeforeValidator(_words_only)] if bare else kind


def _words_only(value: object) -> object:
    if isinstance(value, int | float):
        raise ValueError("write the date as YYYY-MM-DD")
    return value


def _model(name: str, fields: dict[str, tuple[Any, Any]]) -> type[BaseModel]:
    settings = ConfigDict(extra="forbid", allow_inf_nan=False)
    given: dict[str, Any] = {
        key: (kind, default if isinstance(default, FieldInfo) or default is ... else FieldInfo(default=default))
        for key, (kind, default) in fields.items()
    }
    return create_model(f"{name}_arguments", __config__=settings, **given)


def minify(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema in fewer bytes: no titles, no references, `anyOf[T, null]` as a list of types, sorted keys."""
    made = _smaller(schema, schema.get("$defs", {}))
    made.pop("$defs", None)
    made.setdefault("properties", {})
    return dict(sorted(made.items()))


def _smaller(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """One level of `minify`."""
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _smaller({**target, **rest}, definitions)
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("title", "$defs") or (key == "default" and value is None):
            continue
        if key == "properties":
            made[key] = {name: _smaller(part, definitions) for name, part in sorted(value.items())}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            made[key] = _smaller(value, definitions)
        elif key == "anyOf":
            made |= _joined([_smaller(part, definitions) for part in value])
        else:
            made[key] = value
    return dict(sorted(made.items()))


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """`anyOf` of one type and null as one type list; any other `anyOf` as it is."""
    solid = [part for part in parts if part != {"type": "null"}]
    if len(solid) != 1 or len(parts) != 2 or not isinstance(solid[0].get("type"), str):
        return {"anyOf": parts}
    made = dict(solid[0])
    made["type"] = [made["type"], "null"]
    if "const" in made:
        made["enum"] = [made.pop("const")]
    if "enum" in made:
        made["enum"] = [*made["enum"], None]
    return made


def _described(parameters: dict[str, Any], words: dict[str, str]) -> dict[str, Any]:
    """The parameters with the docstring's words on each."""
    properties = {
        key: dict(sorted({**value, "description": words[key]}.items()))
        for key, value in parameters["properties"].items()
    }
    return {**parameters, "properties": properties}


def bare(node: dict[str, Any]) -> dict[str, Any]:
    """Names and types only: what is left for a model that has seen the full form or can guess."""
    keep = {"type", "enum", "items", "required", "anyOf", "const"}
    made = {key: value for key, value in node.items() if key in keep}
    if isinstance(made.get("items"), dict):
        made["items"] = bare(made["items"])
    if "properties" in node:
        made["properties"] = {key: bare(value) for key, value in node["properties"].items()}
    return dict(sorted(made.items()))


def canonical(value: object) -> str:
    """JSON with sorted keys and no spaces: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
