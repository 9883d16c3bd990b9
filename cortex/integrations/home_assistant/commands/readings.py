"""What a message may order: `heard` makes it comparable, `readings` finds each phrase that uses all of its words. Pure.

Wrong is the worst that it can be: a word that takes back, puts off or narrows is no name, so that nothing is meant.
"""

import re
import unicodedata
from collections.abc import Iterator

from msgspec import Struct

from cortex.integrations.home_assistant.commands import phrases
from cortex.integrations.home_assistant.words import normal

CHARACTERS_MAX = 140
WORDS_MAX = 16
EXTREMES = {"full": 100.0, "least": 1.0}
_UNITS = {
    "percent": r"%|percent\b|per cent\b|prozent\b",
    "degrees": r"°\s*c?\b|°|degrees?\b(?: c(?:elsius)?\b)?|grad\b(?: celsius\b)?",
    "kelvin": r"k\b|kelvin\b",
}
_SPELLED = str.maketrans({"\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{EN DASH}": "-"})
_SIGNS = r".,!?¿¡'°%·\uff1f\uff01\u3002\u3001\u060c\u061f\u0964\0-"  # the last ones are those of Asia
_STRANGE = re.compile(rf"[^\w\s{_SIGNS}]|_|--|\n|(?:^|\s)'|(?<!s)'(?=\s|$)|n't\b|[.!?]\s*[^\s.!?]*\w")
_BARE = re.compile(r"(\btemperatur\w*\b.* (?:to|auf) \d+(?:\0\d+)?)$")
_DECIMAL = re.compile(r"(?<=\d)[.,](?=\d)")
_COMMA = re.compile(r",(?=\s*(?:please|thanks|thank you|bitte|danke)\W*$)|(?<=please),|(?<=bitte),", re.IGNORECASE)
_CAN = re.compile(r"(?:\w+ ){0,2}(?:can|could|will|would|may|kannst|konntest|konnen|konnten)\b")


class HomeMessage(Struct, frozen=True, kw_only=True):
    """A message that may be about the house. `line`: its words; a number with its unit is one word of them, `#unit`.

    `is_order`: nothing in it asks, and it is one sentence; only then a phrase may order something.
    """

    text: str
    line: str
    is_asked: bool
    is_order: bool
    number: float | None = None


class OrderReading(Struct, frozen=True, kw_only=True):
    """One way to read a message. `kind`: a word for what is meant, "" = anything that can do it."""

    intent: str
    target: str = ""
    kind: str = ""
    number: float | None = None
    colour: str = ""


def heard(text: str) -> HomeMessage | None:
    """The message as one line; None where it may be more, or less, than one plain order or question."""
    if len(text) > CHARACTERS_MAX:
        return None
    text = unicodedata.normalize("NFC", text.strip()).translate(_SPELLED)
    plain = _DECIMAL.sub("\0", text)
    letters = "".join(letter for letter in plain if not unicodedata.category(letter).startswith("M"))
    line, number = _numbered(plain.casefold())
    words = line.split()
    if _STRANGE.search(letters) or not words or len(text.split()) > WORDS_MAX:
        return None
    is_asked = "?" in text
    is_order = (
        phrases.EVERYTHING.isdisjoint(words) and (not is_asked or _CAN.match(line)) and "," not in _COMMA.sub("", plain)
    )
    return HomeMessage(text=text, line=line, is_asked=is_asked, is_order=bool(is_order), number=number)


def may_be_command(text: str) -> bool:
    """Tell whether the text may be for a house, whatever stands in it; fast, and the same for ever."""
    return heard(text) is not None


def _numbered(text: str) -> tuple[str, float | None]:
    """The words, and the one number that has a unit; more than one is none."""
    number = None
    text = _BARE.sub(r"\1 degrees", text.rstrip(" .!"))
    for unit, ways in _UNITS.items():
        found = list(re.finditer(rf"(\d{{1,4}}(?:\0\d{{1,2}})?)\s*(?:{ways})", text))
        if len(found) > 1 or (found and number is not None):
            return "", None
        for one in found:
            number = float(one[1].replace("\0", "."))
            text = f"{text[: one.start()]} unit{unit} {text[one.end() :]}"
    return re.sub(r"\bunit(percent|degrees|kelvin)\b", r"#\1", normal(text)), number


def readings(said: HomeMessage) -> Iterator[OrderReading]:
    """Every way in which the phrases read the message."""
    line = said.line
    for pattern in _COURTESY:
        line = " ".join(pattern.sub(" ", line).split())
    for pattern in _WISHES:
        line = pattern.sub(r"\1 =\2", line)
    for intent, kind, expression in _PATTERNS if said.is_order else ():
        found = expression.fullmatch(line)
        if found is None:
            continue
        slots = found.groupdict()
        unit, colour = slots.pop("n", ""), slots.pop("c", "")
        if intent == "volume" and unit != "percent":
            continue
        yield OrderReading(
            intent=unit if intent == "level" else "percent" if intent in EXTREMES else intent,
            target=" ".join(filter(None, slots.values())),
            kind=kind or {"degrees": "heating", "kelvin": "lights"}.get(unit, ""),
            number=EXTREMES.get(intent, said.number),
            colour=colour,
        )


def _compiled() -> Iterator[tuple[str, str, re.Pattern[str]]]:
    """Intent, kind and expression of each phrase; the gaps are the groups g0, g1, ..."""
    for row in phrases.PHRASES.strip().splitlines():
        head, _, written = row.partition(": ")
        intent, _, kind = head.partition(" ")
        for phrase in written.split(" | "):
            yield intent, kind, re.compile(_expression(re.sub(r"<(\w+)>", lambda part: phrases.PARTS[part[1]], phrase)))


def _expression(phrase: str) -> str:
    """The phrase with its gaps, number and colour as groups."""
    gaps = iter(range(9))

    def gap(found: re.Match[str]) -> str:
        """One between two words may be empty, and does not begin with the other word of a verb."""
        return f"{'(?: | (?!(?:on|off|up|down) )' if found[1] else '(?:'}(?P<g{next(gaps)}>.+?) )"

    text = re.sub(r"(^| )\* ", gap, phrase)
    text = re.sub(r" \*$", lambda _: f"(?: (?P<g{next(gaps)}>.+))?", text)
    text = text.replace("#", "#(?P<n>percent|degrees|kelvin)")
    return text.replace("@", f"(?P<c>{'|'.join([*phrases.WHITES, *phrases.COLOURS])})")


_COURTESY = [re.compile(pattern) for pattern in phrases.COURTESY]
_WISHES = [re.compile(pattern) for pattern in phrases.WISHES]
_PATTERNS = tuple(_compiled())
