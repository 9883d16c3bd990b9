"""From a harmless schema to one that every provider takes: what they refuse is said in words, or left to the check.

The least of OpenAI, Anthropic, Gemini, Mistral and llama.cpp's grammars, as of 2026-11: an object without choices at
its top, one type at each place, names of letters, digits, _ and -, choices only of words, no unlimited repetition. A
call is still checked by the whole schema, so that nothing is lost but a hint to the model. Pure.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from msgspec import Struct

from cortex.toolkit.json_schema import one_line, without_words
from cortex.toolkit.schema import canonical

NAME_CHARACTERS = 64
WIRE_CHARACTERS = 16_000
DESCRIPTION_CHARACTERS = 500
VARIANTS_MOST = 8
REPEATED_MOST = 500  # llama.cpp gives up on grammars with more
NUMBER_MOST = 2**53
SIMPLE: tuple[dict[str, Any], ...] = ({"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"})
KINDS = ("string", "integer", "number", "boolean", "null")
LENGTHS = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}
_ODD = re.compile(r"[^A-Za-z0-9_-]+")
Node = dict[str, Any]


class WireSchema(Struct, frozen=True, kw_only=True):
    """`parameters`: what goes to models. `names`: for each argument that is called otherwise there, its own name."""

    parameters: Node
    names: Mapping[str, str]

    def own(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call under the names that the tool's server knows."""
        return {self.names.get(name, name): value for name, value in arguments.items()}


def wire_schema(schema: Node) -> WireSchema:
    """The schema for models, of what `json_schema.harmless` gives."""
    whole = _flat(schema)
    names = _names(whole.get("properties", {}))
    own = {wire: name for name, wire in names.items() if wire != name}
    parameters = _object(whole, names)
    if len(canonical(parameters)) > WIRE_CHARACTERS:
        parameters = without_words(parameters)
    if len(canonical(parameters)) > WIRE_CHARACTERS:
        required = set(parameters.get("required", ()))
        kept = sorted(parameters["properties"], key=lambda name: name not in required)[: WIRE_CHARACTERS // 200]
        parameters = {"type": "object", "properties": {name: _shallow(parameters["properties"][name]) for name in kept}}
        parameters |= {"required": asked} if (asked := [name for name in kept if name in required]) else {}
    parameters.pop("description", None)
    return WireSchema(parameters=dict(sorted(parameters.items())), names=own)


def _names(properties: Iterable[str]) -> dict[str, str]:
    """Name each argument as it is called there: its own name where every provider takes it, else one made of it."""
    made = {name: name for name in properties if not _ODD.search(name) and 0 < len(name) <= NAME_CHARACTERS}
    taken = set(made)
    for name in sorted(set(properties) - taken):
        base = _ODD.sub("_", name).strip("_")[: NAME_CHARACTERS - 4] or "argument"
        numbered = (f"{base}_{number}" if number > 1 else base for number in count(1))
        made[name] = next(one for one in numbered if one not in taken)
        taken.add(made[name])
    return made


def _flat(node: Node) -> Node:
    """The top without choices: what all parts ask for, and what any of the variants knows."""
    made = _joined(node)
    variants = [_flat(one) for one in made.pop("anyOf", ())]
    properties = {name: [one] for name, one in made.get("properties", {}).items()}
    for variant in variants:
        for name, one in variant.get("properties", {}).items():
            known = properties.setdefault(name, [])
            if one not in known:
                known.append(one)
    required = list(made.get("required", ()))
    if variants:
        shared = set.intersection(*(set(one.get("required", ())) for one in variants))
        required += sorted(shared - set(required))
    made["properties"] = {name: found[0] if len(found) == 1 else {"anyOf": found} for name, found in properties.items()}
    made["required"] = [name for name in required if name in made["properties"]]
    return made


def _joined(node: Node) -> Node:
    """A node with the parts of its `allOf` in it; the first that says a thing counts."""
    made = {key: value for key, value in node.items() if key != "allOf"}
    for part in map(_joined, node.get("allOf", ())):
        properties = {**part.get("properties", {}), **made.get("properties", {})}
        required = list(dict.fromkeys([*made.get("required", ()), *part.get("required", ())]))
        made = {**part, **made}
        made |= {"properties": properties} if properties else {}
        made |= {"required": required} if required else {}
    return made


def _node(given: Node, *, is_required: bool = True) -> Node:
    """One place, with one type, or with variants that have one each."""
    node = _joined(given)
    kinds = _kinds(node)
    is_nullable = "null" in kinds
    kinds = [kind for kind in kinds if kind != "null"]
    words = str(node.get("description", ""))
    variants: list[Node] = []
    if kinds:
        variants = [_typed(node, kind) for kind in kinds]
        words = " ".join(filter(None, dict.fromkeys([words, *(one.pop("description", "") for one in variants)])))
    for part in () if kinds else node.get("anyOf", ())[:VARIANTS_MOST]:
        if _kinds(_joined(part)) == ["null"]:
            is_nullable = True
            continue
        made = _node(part)
        variants += [one for one in made.get("anyOf", [made]) if one not in variants]
    if not variants:
        return _any(words)
    if is_nullable and is_required:
        variants.append({"type": "null"})
    if len(variants) == 1:
        return _described(variants[0], words or variants[0].get("description", ""))
    return _described({"anyOf": variants[:VARIANTS_MOST]}, words)


def _kinds(node: Node) -> list[str]:
    """The types of a place, also where only what stands in it says so."""
    kind = node.get("type")
    if kind is not None:
        return [kind] if isinstance(kind, str) else list(kind)
    if "properties" in node:
        return ["object"]
    if "items" in node:
        return ["array"]
    found = [kind for kind in KINDS if any(_fits(one, kind) for one in node.get("enum", ()))]
    return [kind for kind in found if kind != "number" or "integer" not in found]


def _typed(node: Node, kind: str) -> Node:
    if kind == "object":
        return _object(node, {name: name for name in node.get("properties", {}) if not _ODD.search(name)})
    made: Node = {"type": kind}
    notes = []
    if kind == "array":
        made["items"] = _node(node["items"]) if isinstance(node.get("items"), dict) else _any("")
    choices = [one for one in node.get("enum", ()) if _fits(one, kind)]
    if kind == "string" and all(choices):
        made |= {"enum": choices} if choices else {}
    elif choices:
        notes.append(f"One of: {', '.join(canonical(one) for one in choices)}.")
    for word in LENGTHS.get(kind, ()):
        if isinstance(node.get(word), int) and 0 <= node[word] <= REPEATED_MOST:
            made[word] = node[word]
    if kind in ("number", "integer"):
        made |= _range(node, kind)
    if kind in ("string", "boolean", "number", "integer") and "default" in node:
        made |= {"default": node["default"]} if _fits(node["default"], kind) else {}
    return _described(made, " ".join(notes))


def _object(node: Node, names: Mapping[str, str]) -> Node:
    """An object; its keys that providers do not take are named in words, as they can still be given."""
    given = node.get("properties", {})
    required = [name for name in node.get("required", ()) if name in given]
    properties = {}
    for name, wire in names.items():
        made = _node(given[name], is_required=name in required)
        properties[wire] = (
            made if wire == name else _described(made, f"{name!r}. {made.get('description', '')}".strip())
        )
    unsaid = [repr(name) for name in given if name not in names]
    notes = [f"Further keys: {', '.join(unsaid)}."] if unsaid else []
    if isinstance(node.get("additionalProperties"), dict):
        notes.append("Further keys can be given.")
    made = {"type": "object", "properties": dict(sorted(properties.items()))}
    asked = [names[name] for name in required if name in names]
    return _described(made | ({"required": asked} if asked else {}), " ".join(notes))


def _range(node: Node, kind: str) -> Node:
    """The least and the most; a limit that is itself excluded only where the next one is known."""
    made = {}
    for word, excluded, step in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        value = node.get(word)
        if value is None and kind == "integer" and isinstance(node.get(excluded), int):
            value = node[excluded] + step
        if value is not None and abs(value) <= NUMBER_MOST:
            made[word] = value
    return made


def _fits(value: object, kind: str) -> bool:
    match value:
        case None:
            return kind == "null"
        case bool():
            return kind == "boolean"
        case int():
            return kind in ("integer", "number")
        case float():
            return kind == "number"
        case _:
            return kind == "string" and isinstance(value, str)


def _any(words: str) -> Node:
    listed: Node = {"type": "array", "items": {"anyOf": [dict(one) for one in SIMPLE]}}
    return _described({"anyOf": [*(dict(one) for one in SIMPLE), listed]}, words)


def _shallow(node: Node) -> Node:
    if "type" not in node:
        return _any("")
    return {"type": node["type"], **({"items": _any("")} if node["type"] == "array" else {})}


def _described(node: Node, words: str) -> Node:
    rest = {key: value for key, value in node.items() if key != "description"}
    text = one_line(words, DESCRIPTION_CHARACTERS)
    return dict(sorted({**rest, **({"description": text} if text else {})}.items()))
