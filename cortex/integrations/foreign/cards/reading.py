"""From one resource of an address book to its contact, in versions 3 and 4. Runs in `program.py` only."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from cortex.integrations.foreign.cards.lines import CardLine, lines_of, parts_of, text_of

NAME_CHARACTERS, TEXT_CHARACTERS, VALUE_CHARACTERS, UID_CHARACTERS = 300, 4_000, 300, 500
VALUES_MOST = 20  # of one kind
LINES_MOST = 5_000
NO_YEAR = "1604"  # as Apple's programs write a birthday without its year
_USUAL = frozenset({"internet", "pref", "voice", "x400", "text"})
_DAY = re.compile(r"(\d{4}|--)-?(\d{2})-?(\d{2})(?:$|[T ])")
_APPLE = re.compile(r"_\$!<(.*)>!\$_")


def contact_of(data: str) -> dict[str, Any] | None:
    """The contact of a resource; None for a group of contacts. ValueError for what is no vCard."""
    lines = lines_of(data)[:LINES_MOST]
    end = end_of(lines)
    if end is None:
        raise ValueError("no card")
    lines = lines[:end]
    if _first(lines, "KIND", "X-ADDRESSBOOKSERVER-KIND").lower() == "group":
        return None
    labels = {line.group: text_of(line.value) for line in lines if line.group and line.name == "X-ABLABEL"}
    emails = list(_values(lines, "EMAIL", labels))
    organization = ", ".join(filter(None, _parts(lines, "ORG")))[:VALUE_CHARACTERS]
    phones = list(_values(lines, "TEL", labels))
    name = _name(lines) or organization or next((value for _, value in [*emails, *phones]), "")
    return {
        "uid": _first(lines, "UID")[:UID_CHARACTERS],
        "name": name[:NAME_CHARACTERS],
        "nickname": ", ".join(_parts(lines, "NICKNAME", ","))[:VALUE_CHARACTERS],
        "organization": organization,
        "role": _first(lines, "TITLE", "ROLE")[:VALUE_CHARACTERS],
        "emails": emails,
        "phones": phones,
        "addresses": list(_values(lines, "ADR", labels)),
        "birthday": birthday_of(lines),
        "note": _first(lines, "NOTE")[:TEXT_CHARACTERS],
    }


def end_of(lines: Sequence[CardLine]) -> int | None:
    """Where the first card of a resource ends; None where there is no whole one."""
    marks = [(line.name, line.value.strip().upper()) for line in lines]
    return marks.index(("END", "VCARD")) if {("BEGIN", "VCARD"), ("END", "VCARD")} <= {*marks} else None


def birthday_of(lines: Sequence[CardLine]) -> str:
    """The day as 1980-12-24, or --12-24 without a year; "" where none is said as a day."""
    for line in lines:
        found = (
            _DAY.match(line.value.strip()) if line.name == "BDAY" and line.param("VALUE").lower() != "text" else None
        )
        if found is None:
            continue
        year = found[1]
        is_bare = year in ("--", NO_YEAR, "0000") or year == line.param("X-APPLE-OMIT-YEAR")
        try:
            day = date(2000 if is_bare else int(year), int(found[2]), int(found[3]))
        except ValueError:
            continue
        return f"--{day:%m-%d}" if is_bare else day.isoformat()
    return ""


def value_of(line: CardLine) -> str:
    """The value of an address, a number or a mail address as it is shown."""
    if line.name == "ADR":
        return "\n".join(_lines_of_address(parts_of(line.value, ";")))[:VALUE_CHARACTERS]
    text = text_of(line.value)
    for scheme in ("tel:", "mailto:"):
        if text.lower().startswith(scheme):
            text = text[len(scheme) :]
    return " ".join(text.split())[:VALUE_CHARACTERS]


def _lines_of_address(parts: Sequence[str]) -> Iterator[str]:
    box, more, street, place, region, code, country = [*parts, *[""] * 7][:7]
    for one in (box, more, street):
        yield from filter(None, (" ".join(piece.split()) for piece in one.split("\n")))
    yield from filter(None, (" ".join(filter(None, (code, place))), region, country))


def _values(lines: Sequence[CardLine], name: str, labels: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Each with its label, what is preferred first."""
    found = [line for line in lines if line.name == name and line.value.strip(" ;")]
    for line in sorted(found, key=lambda line: 0 if "pref" in line.types or line.param("PREF") == "1" else 1)[
        :VALUES_MOST
    ]:
        own = _APPLE.sub(r"\1", labels.get(line.group, "")).strip().lower()
        label = own or ", ".join(dict.fromkeys(one for one in line.types if one not in _USUAL))
        if value := value_of(line):
            yield label[:60], value


def _name(lines: Sequence[CardLine]) -> str:
    if whole := " ".join(_first(lines, "FN").split()):
        return whole
    family, given, more, *_ = [*_parts(lines, "N"), "", "", ""]
    return " ".join(" ".join(filter(None, (given, more, family))).split())


def _parts(lines: Sequence[CardLine], name: str, mark: str = ";") -> list[str]:
    return next((parts_of(line.value, mark) for line in lines if line.name == name and line.value), [])


def _first(lines: Sequence[CardLine], *names: str) -> str:
    return next((text_of(line.value) for name in names for line in lines if line.name == name and line.value), "")
