"""A JSON schema from outside, made harmless: what is left checks a call in bounded time and can be sent to a model.

Its references are written out, regular expressions and unknown words are left out, its texts are cut and show what
hides in them. The server behind the schema checks by its own, so that leaving out only lets more through to it. Pure.
"""

import re
from typing import Any

from cortex.base.hidden import show_hidden
from cortex.toolkit.schema import minify

NODES_MOST = 400
PROPERTIES_MOST = 200
DEPTH_MOST = 8
CHOICES_MOST = 100
TEXT_CHARACTERS, NAME_CHARACTERS = 300, 100
NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
FINITE_MOST = 1e300
TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
ANYTHING: dict[str, Any] = {}
_NAME = re.compile(r"[A-Za-z0-9_.$@/-]{1,64}")


def harmless(schema: object) -> dict[str, Any]:
    """The parameters of a tool, as an object schema; an empty one for what is no object schema at all."""
    cut = _Cut(schema if isinstance(schema, dict) else {})
    made = cut.node(cut.root, 0)
    made["type"] = "object"
    made.pop("enum", None)  # of objects none is kept, and of others no call could be one
    return minify(made)


class _Cut:
    """One walk through a schema, with what it may still take."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self._left = NODES_MOST

    def node(self, given: object, depth: int) -> dict[str, Any]:
        """One level; anything goes where the schema is too deep, too large, or none."""
        self._left -= 1
        if not isinstance(given, dict) or depth > DEPTH_MOST or self._left < 0:
            return dict(ANYTHING)
        given = self._followed(given)
        made = _plain_words(given)
        is_whole = True
        if isinstance(properties := given.get("properties"), dict):
            required = given.get("required")
            wanted = {one for one in required if isinstance(one, str)} if isinstance(required, list) else set()
            known = [name for name in properties if _is_name(name)]
            kept = sorted(known, key=lambda name: name not in wanted)[:PROPERTIES_MOST]
            made["properties"] = {name: self.node(properties[name], depth + 1) for name in kept}
            made["required"] = [name for name in kept if name in wanted]
            is_whole = len(kept) == len(properties)
        if isinstance(given.get("items"), dict) and "prefixItems" not in given:
            made["items"] = self.node(given["items"], depth + 1)
        if is_whole and "patternProperties" not in given:
            more = given.get("additionalProperties")
            if more is False or isinstance(more, dict):
                made["additionalProperties"] = more and self.node(more, depth + 1)
        for word in ("anyOf", "oneOf", "allOf"):
            parts = given.get(word)
            if isinstance(parts, list) and 0 < len(parts) <= CHOICES_MOST:
                made["anyOf" if word == "oneOf" else word] = [self.node(part, depth + 1) for part in parts]
        return made

    def _followed(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return what a reference within the schema leads to, with what stands beside it; nothing is fetched."""
        for _ in range(DEPTH_MOST):
            reference = given.get("$ref")
            if not isinstance(reference, str):
                return given
            rest = {key: value for key, value in given.items() if key != "$ref"}
            target = self._target(reference)
            given = {**target, **rest}
            if isinstance(target.get("properties"), dict) and isinstance(rest.get("properties"), dict):
                given["properties"] = {**target["properties"], **rest["properties"]}
        return dict(ANYTHING)

    def _target(self, reference: str) -> dict[str, Any]:
        found: object = self.root
        if not reference.startswith("#/"):
            return dict(ANYTHING)
        for part in reference[2:].split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else dict(ANYTHING)


def _plain_words(given: dict[str, Any]) -> dict[str, Any]:
    """The words of one level that hold no schema themselves."""
    made: dict[str, Any] = {}
    kind = given.get("type")
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    known = [one for one in kinds if isinstance(one, str) and one in TYPES]
    if known and len(known) == len(kinds):
        made["type"] = known[0] if len(known) == 1 else known
    if isinstance(given.get("description"), str):
        made["description"] = one_line(given["description"], TEXT_CHARACTERS)
    choices = given.get("enum", [given["const"]] if "const" in given else None)
    if isinstance(choices, list) and 0 < len(choices) <= CHOICES_MOST and all(map(_is_plain, choices)):
        made["enum"] = choices
    if "default" in given and _is_plain(given["default"]):
        made["default"] = given["default"]
    for word in NUMBERS:
        if _is_number(given.get(word)):
            made[word] = given[word]
    for word in COUNTS:
        if _is_number(given.get(word)) and given[word] >= 0:
            made[word] = int(given[word])
    return made


def _is_plain(value: object) -> bool:
    """Tell whether it can stand in a list of choices; what hides in a text would be shown, and so another one."""
    if isinstance(value, str):
        return len(value) <= TEXT_CHARACTERS and show_hidden(value) == value
    return value is None or isinstance(value, bool) or _is_number(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= FINITE_MOST


def _is_name(name: object) -> bool:
    """Tell whether it can be a parameter's name; a longer or odder one still goes through to the server, unseen."""
    return isinstance(name, str) and 0 < len(name) <= NAME_CHARACTERS and name.isprintable()


def without_words(node: dict[str, Any]) -> dict[str, Any]:
    """The schema without any text of its author: no descriptions, no defaults, no choices but single short words."""
    made = {key: value for key, value in node.items() if key not in ("description", "default")}
    if any(isinstance(one, str) and not _NAME.fullmatch(one) for one in made.get("enum", ())):
        del made["enum"]
    if "properties" in made:
        own = {name: one for name, one in made["properties"].items() if _NAME.fullmatch(name)}
        made["properties"] = {name: without_words(one) for name, one in own.items()}
        if "required" in made:
            made["required"] = [name for name in made["required"] if name in own]
    for word in ("items", "additionalProperties"):
        if isinstance(made.get(word), dict):
            made[word] = without_words(made[word])
    for word in ("anyOf", "allOf"):
        if word in made:
            made[word] = [without_words(one) for one in made[word]]
    return made


def one_line(words: str, most: int) -> str:
    """The words on one line, what hides in them written out, cut at `most` characters."""
    shown = show_hidden(" ".join(words.split()))
    return shown if len(shown) <= most else shown[: most - 1].rstrip() + "…"
