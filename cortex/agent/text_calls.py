"""Tool calls that a model wrote as text: those of which a whole answer consists, and what only looks like them.

Pure. Whether such a call is taken is decided in `services/turns/written_calls.py`, whether it runs by the gate. The
forms are `call_forms.py`'s.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cortex.agent.arguments import behind_bridge
from cortex.agent.call_forms import BEGINNINGS, KEYS, WrittenCall, fenced, written
from cortex.base.json_text import parsed
from cortex.base.messages import ToolCall, ToolSchema

CALLS_MOST = 32  # of one answer: a small model that writes more has lost its way
_BEGIN_MOST = 240  # characters from which it is told whether a call may begin
_FENCE = re.compile(r"(?:`{1,3}|`{3,}[\w+-]*[ \t]*(?:\n\s*)?)$")
_FENCED = re.compile(r"`{3,}[\w+-]*[ \t]*\n\s*")
_OBJECT = re.compile(r'[\[{\s]*(?:"(?P<key>\w*)(?P<end>"\s*(?P<colon>:\s*(?P<value>"[\w.-]*"?)?)?)?)?')
_MARK = re.compile(
    r"^[ \t]*(?:<tool_calls?>|<tool_use>|<function_calls?>|<function=|<\|tool_call|<\|python_tag\|>"
    r"|\[TOOL_(?:CALLS|REQUEST)\]|<\uff5ctool▁call|<\|channel\|>commentary to="
    r"|<minimax:tool_call>|<TOOLCALL>|<\|START_ACTION\|>)",
    re.MULTILINE,
)
_BLANKS = re.compile(r"[\s\\]+")
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_DEPTH = 12


def calls_in(text: str, tools: Sequence[ToolSchema]) -> tuple[ToolCall, ...]:
    """The calls of which this answer consists; () where it says anything else, or one fits no tool that was sent.

    They have no ids yet.
    """
    schemas = {tool.name: tool.parameters for tool in tools}
    found = [_fitted(call, schemas) for call in written(text)] if schemas else []
    is_whole = 0 < len(found) <= CALLS_MOST and None not in found
    return tuple(call for call in found if call is not None) if is_whole else ()


def looks_like_calls(text: str, tools: Sequence[ToolSchema]) -> bool:
    """Tell whether an answer that was not taken as calls has one in it, in a form or with marks that mean one."""
    names = {tool.name for tool in tools}
    parts = [text, *fenced(text), *(part for part in text.split("\n\n") if part.lstrip().startswith(("{", "[")))]
    if any(call.name in names for part in parts for call in written(part)):
        return True
    outside = "".join(text.split("```")[::2])
    return _MARK.search(outside) is not None


def may_be_calls(text: str, tools: Sequence[ToolSchema]) -> bool:
    """Tell whether an answer that begins so may turn out to be calls: while it does, it is not shown as words."""
    begin = text.lstrip()[:_BEGIN_MOST]
    if not begin or not tools:
        return bool(tools)
    if begin.startswith("`"):
        if _FENCE.fullmatch(begin):
            return True
        found = _FENCED.match(begin)
        return found is not None and may_be_calls(begin[found.end() :], tools)
    if any(each.startswith(begin) or begin.startswith(each) for each in BEGINNINGS):
        return True
    names = {tool.name for tool in tools}
    word = begin.lstrip("[ \n")
    if any(f"{name}(".startswith(word) or word.startswith(f"{name}(") for name in names):
        return True
    return begin[0] in "{[" and _may_be_object(begin, names)


def is_told(call: ToolCall, said: Iterable[str], outside: Iterable[str]) -> bool:
    """Tell whether the call stood in what the model was given, so that it may be no more than a quote.

    said: by the person or by tools of this server: the arguments as they are. outside: there it is enough that the
    tool's name and each of its values stand in one text.
    """
    name, given = behind_bridge(call)
    arguments = _bare(json.dumps(given, ensure_ascii=False))
    if given and any(arguments in _bare(text) and name in text for text in said):
        return True
    values = [_bare(value) for value in _leaves(given)]
    return any(name.lower() in text.lower() and all(value in _bare(text) for value in values) for text in outside)


def _bare(text: str) -> str:
    return _BLANKS.sub("", text).lower()


def _leaves(value: Any) -> Iterable[str]:  # Any: arguments, as the model wrote them
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif not isinstance(value, bool) and value is not None:
        yield str(value)


def _may_be_object(begin: str, names: set[str]) -> bool:
    found = _OBJECT.match(begin)
    if found is None:
        return False
    if found["key"] is None:
        return found.end() == len(begin)
    if not found["end"]:
        return found.end() == len(begin) and any(key.startswith(found["key"]) for key in KEYS)
    if found["key"] not in KEYS:
        return False
    value = found["value"]
    is_name = found["key"] not in ("id", "type") and value is not None and len(value) > 1 and value.endswith('"')
    return not is_name or value[1:-1].removeprefix("functions.") in names


def _fitted(call: WrittenCall, schemas: Mapping[str, Mapping[str, Any]]) -> ToolCall | None:
    schema = schemas.get(call.name)
    if schema is None:
        return None
    values = call.arguments
    if call.is_plain:
        properties = schema.get("properties", {})
        values = {key: _typed(text, properties.get(key, {})) for key, text in values.items()}
    if not _fits(values, {"additionalProperties": False, **schema}, schema, _DEPTH):
        return None
    try:
        arguments = json.dumps(values, ensure_ascii=False, allow_nan=False)
        arguments.encode()
    except ValueError:  # half of a sign, or no number: nothing can keep or send it
        return None
    return ToolCall(id="", name=call.name, arguments=arguments, is_written=True)


def _typed(text: str, schema: Mapping[str, Any]) -> Any:
    """A value that was written without quotes, as its schema wants it."""
    if _fits(text, schema, schema, _DEPTH) and schema.get("type", "string") == "string":
        return text
    try:
        return parsed(text)
    except ValueError:
        return text


def _fits(value: Any, schema: Any, root: Mapping[str, Any], depth: int) -> bool:  # Any: JSON
    """Tell whether a value is what a schema asks, as far as types, names and choices go: the gate checks the rest."""
    if not isinstance(schema, Mapping):
        return schema is not False
    if not depth:
        return True
    if reference := schema.get("$ref"):
        return _fits(value, _at(str(reference), root), root, depth - 1)
    for key in ("anyOf", "oneOf"):
        if (choices := schema.get(key)) and not any(_fits(value, each, root, depth - 1) for each in choices):
            return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    return _is_of(value, schema.get("type")) and _fits_inside(value, schema, root, depth)


def _is_of(value: Any, kinds: Any) -> bool:
    """Tell whether the value is of the type, or of one of the types, that a schema names."""
    if kinds is None:
        return True
    names = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _TYPES.get(name, (object,))) for name in names)


def _fits_inside(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> bool:
    if isinstance(value, list):
        return all(_fits(each, schema.get("items", True), root, depth - 1) for each in value)
    if not isinstance(value, dict):
        return True
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    return all(name in value for name in schema.get("required", ())) and all(
        _fits(each, properties.get(name, others), root, depth - 1) for name, each in value.items()
    )


def _at(reference: str, root: Mapping[str, Any]) -> Any:
    """Return what a reference within the schema names; a schema of anything where it names nothing."""
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return True if found is None else found
