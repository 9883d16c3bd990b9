"""Writes a contact, and changes one: only lines that say something new become others. Runs in `program.py` only."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.cards.lines import CardLine, escaped, joined, lines_of, made
from cortex.integrations.foreign.cards.reading import NO_YEAR, end_of, value_of

PROGRAM = "-//Cortex//Contacts//EN"
NO_CARD = "What the server has of this contact cannot be read, so it is not changed here."
_SINGLE = {"name": "FN", "nickname": "NICKNAME", "organization": "ORG", "role": "TITLE", "note": "NOTE"}
_SEVERAL = {"emails": "EMAIL", "phones": "TEL", "addresses": "ADR"}
Order = Mapping[str, Any]


def written(order: Order) -> str:
    """The resource after the edit: `{"data", "uid", "fields", "now"}`. UnreadableError where it cannot be made."""
    now = datetime.fromisoformat(order["now"]).astimezone(UTC)
    lines = lines_of(order["data"]) if order["data"] else _empty(order["uid"])
    end = end_of(lines)
    if end is None:
        raise UnreadableError(NO_CARD)
    card, rest = lines[:end], lines[end:]
    for field, value in order["fields"].items():
        if field in _SEVERAL:
            card = _several(card, _SEVERAL[field], value)
        elif field == "birthday":
            card = _birthday(card, value)
        else:
            card = _single(card, _SINGLE[field], escaped(value))
        if field == "name":
            card = _single(card, "N", _structured(value))
    return joined([*_single(card, "REV", f"{now:%Y%m%dT%H%M%SZ}"), *rest])


def _empty(uid: str) -> list[CardLine]:
    heads = (("BEGIN", "VCARD"), ("VERSION", "3.0"), ("PRODID", PROGRAM), ("UID", escaped(uid)), ("END", "VCARD"))
    return [made(head, value) for head, value in heads]


def _single(card: Sequence[CardLine], name: str, value: str) -> list[CardLine]:
    """The card with this line in place of the first of its name; "" takes all of them away."""
    if not value:
        return [line for line in card if line.name != name]
    at = next((at for at, line in enumerate(card) if line.name == name), len(card))
    return [*card[:at], made(name, value), *card[at + 1 :]]


def _several(card: Sequence[CardLine], name: str, wanted: Sequence[str]) -> list[CardLine]:
    """The card with these values: those that stand keep their lines, with label and all."""
    keys = {_key(one): one for one in wanted}
    gone = [line for line in card if line.name == name and _key(value_of(line)) not in keys]
    known = {_key(value_of(line)) for line in card if line.name == name}
    groups = {line.group for line in gone if line.group}
    kept = [line for line in card if line not in gone and not (line.group in groups and line.name.startswith("X-AB"))]
    return [*kept, *(_LINES[name](one) for key, one in keys.items() if key not in known)]


def _birthday(card: Sequence[CardLine], value: str) -> list[CardLine]:
    bare = [line for line in card if line.name != "BDAY"]
    if not value:
        return bare
    if not value.startswith("--"):
        return [*bare, made("BDAY", value)]
    is_new = any(line.name == "VERSION" and line.value.strip() == "4.0" for line in card)
    day = made("BDAY", value.replace("-", "").rjust(6, "-"))
    return [*bare, day if is_new else made(f"BDAY;X-APPLE-OMIT-YEAR={NO_YEAR}", f"{NO_YEAR}{value[1:]}")]


def _address(text: str) -> CardLine:
    return made("ADR", f";;{escaped(text)};;;;")


def _key(value: str) -> str:
    return " ".join(value.split()).casefold()


def _structured(name: str) -> str:
    """The name in its parts: the last word is taken for the family's."""
    given, _, family = " ".join(name.split()).rpartition(" ")
    return f"{escaped(family)};{escaped(given)};;;" if given else f";{escaped(family)};;;"


_LINES: Mapping[str, Callable[[str], CardLine]] = {
    "EMAIL": lambda value: made("EMAIL;TYPE=INTERNET", escaped(value)),
    "TEL": lambda value: made("TEL", escaped(value)),
    "ADR": _address,
}
