"""Finds rhythms and delays in a phrase: `every 15 minutes`, `every other day`, `twice a day`, `in an hour`."""

import re
from fractions import Fraction

from cortex.schedule.phrase import Delay, Unit, UnreadPhrase

_UNIT = r"(minute|hour|day|week|month|year)s?"
_EVERY = r"\b(?:every|each|once every|once each)"
_PART_HOUR = re.compile(rf"{_EVERY} (?:a )?(half|quarter)(?: of)?(?: an?)?[ -]hour\b")
_HOUR_AND_HALF = re.compile(rf"{_EVERY} hour and a half\b")
_COUNTED = re.compile(rf"{_EVERY} (other|second|\d+(?:st|nd|rd|th|\.\d+)?)[ -]?{_UNIT}\b(?! of)")
_LETTER = re.compile(rf"{_EVERY} (\d+) ?([mhdw])\b")
_OTHER_WEEKDAY = re.compile(r"\b(?:every|each) other (?=\w+day\b)")
_SINGLE = re.compile(rf"(?:{_EVERY}|\bonce an?) {_UNIT}\b")
_NAMED = re.compile(r"\b(hourly|daily|nightly|weekly|fortnightly|monthly|yearly)\b")
_UNCLEAR = re.compile(r"\b(bi-?(?:weekly|monthly))\b")
_SECONDS = re.compile(rf"{_EVERY} (?:\d+ ?)?(?:seconds?|s)\b(?! (?:\w*day|week|month|hour))")
_TIMES = re.compile(
    r"\b(once|twice|\d+ ?(?:x|times))(?: (?:an?|every|each|in a))? (hour|day|week|month|daily|weekly|hourly|monthly)\b"
)
_MARK = re.compile(
    r"\bat :(\d{2})\b"
    r"|\b(?:at )?(\d{1,2}|quarter|half)(?: minutes?)? past(?: (?:the|each|every) hour)?(?! ?(?:\d|noon|mid))"
    r"|\bon the (half )?hour\b"
)
_LENGTH = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|[mhdw])(?![a-z])"
_PIECE = (
    rf"(?:\d+h\d\d|\d+ and a half {_LENGTH}|half an hour|(?:a |\d )?quarters? (?:of an )?hour"
    rf"|(?:an? |\d+(?:\.\d+)? ?){_LENGTH}(?: and a (?:half|quarter))?)"
)
_PIECES = rf"{_PIECE}(?:(?: and| ,)? ?{_PIECE})*"
_DELAY = re.compile(
    rf"\b(?:in|after) ({_PIECES})(?: time)?(?! (?:ago|before))|\b({_PIECES}) (?:from (?:now|today)|later)\b"
    rf"|^(?:for )?({_PIECES})$"
)
_NAMES: dict[str, tuple[int, Unit]] = {
    "hourly": (1, "hour"),
    "daily": (1, "day"),
    "nightly": (1, "day"),
    "weekly": (1, "week"),
    "fortnightly": (2, "week"),
    "monthly": (1, "month"),
    "yearly": (1, "year"),
}
_UNITS: dict[str, Unit] = {
    "m": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
    **{name: name for name in ("minute", "hour", "day", "week", "month", "year")},
}
SECONDS = {"minute": 60, "hour": 3600}
LONGEST = 3660  # days that a delay or a rhythm may have: ten years
Rhythm = tuple[int, Unit]


def take_every(phrase: UnreadPhrase) -> tuple[Rhythm | None, bool]:
    """The rhythm, such as (15, `minute`), or None; and whether its name says night."""
    if found := phrase.take(_UNCLEAR):
        raise phrase.refusal(
            f"{found[1]!r} may mean twice in one or once in two; write 'every 2 weeks' or 'twice a week'."
        )
    if phrase.take(_SECONDS):
        raise phrase.refusal("a minute is the shortest interval.")
    if found := phrase.take(_PART_HOUR):
        return (30 if found[1] == "half" else 15, "minute"), False
    if phrase.take(_HOUR_AND_HALF):
        return (90, "minute"), False
    if found := phrase.take(_COUNTED) or phrase.take(_LETTER):
        return _counted(phrase, found[1], _UNITS[found[2]]), False
    if phrase.take(_OTHER_WEEKDAY):
        return (2, "week"), False
    if found := phrase.take(_SINGLE):
        return (1, _UNITS[found[1]]), False
    found = phrase.take(_NAMED)
    return (_NAMES[found[1]], found[1] == "nightly") if found else (None, False)


def take_times_in(phrase: UnreadPhrase) -> Rhythm | None:
    """(2, `day`) for `twice a day`; None when nothing of the kind is said."""
    found = phrase.take(_TIMES)
    if not found:
        return None
    count = {"once": 1, "twice": 2}.get(found[1]) or int(found[1].rstrip("xtimes "))
    units: dict[str, Unit] = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month"}
    return count, units.get(found[2]) or _UNITS[found[2]]


def take_mark(phrase: UnreadPhrase) -> int | None:
    """The minute of each hour: `at :15`, `at quarter past`, `on the hour`; None when none is said."""
    found = phrase.take(_MARK)
    if not found:
        return None
    if found[1] or found[2]:
        minute = {"quarter": 15, "half": 30}.get(found[2] or "") or int(found[1] or found[2])
        if minute > 59:
            raise phrase.refusal(f"an hour has no minute {minute}.")
        return minute
    return 30 if found[3] else 0


def take_delay(phrase: UnreadPhrase) -> Delay | None:
    """Take how long from now: `in 20 minutes`, `in an hour and a half`, `2 weeks from now`; None for none."""
    found = phrase.take(_DELAY)
    if not found:
        return None
    months, days, seconds = 0, Fraction(), Fraction()
    for piece in re.finditer(_PIECE, found[1] or found[2] or found[3]):
        count, unit = _amount(piece[0])
        match unit:
            case "minute" | "hour":
                seconds += count * SECONDS[unit]
            case "day" | "week":
                days += count * (7 if unit == "week" else 1)
            case _:
                months += _whole(phrase, count) * (12 if unit == "year" else 1)
    if days.denominator != 1:
        seconds += (days - int(days)) * 24 * 3600
    if months * 31 + days + seconds / 86400 > LONGEST:
        raise phrase.refusal("that is more than ten years ahead.")
    return Delay(months=months, days=int(days), seconds=int(seconds))


def _amount(piece: str) -> tuple[Fraction, Unit]:
    """A piece of a delay, such as (3/2, `hour`) for `an hour and a half`."""
    if clock := re.fullmatch(r"(\d+)h(\d\d)", piece):
        return Fraction(int(clock[1]) * 60 + int(clock[2]), 60), "hour"
    if "quarter" in piece and "hour" in piece and "and a quarter" not in piece:
        return Fraction(int(piece[0]) if piece[0].isdigit() else 1, 4), "hour"
    if piece.startswith("half"):
        return Fraction(1, 2), "hour"
    found = re.match(r"(an?|\d+(?:\.\d+)?) ?(?:(and a half) )?([a-z]+?)s?(?: and a (half|quarter))?$", piece)
    if not found:  # the pattern of a piece and this one are written for each other
        raise ValueError(piece)
    count = Fraction(1) if found[1] in ("a", "an") else Fraction(found[1])
    more = {"half": Fraction(1, 2), "quarter": Fraction(1, 4)}.get("half" if found[2] else found[4] or "", Fraction())
    if found[3] == "second":
        return (count + more) / 60, "minute"
    return count + more, _UNITS[found[3]]


def _counted(phrase: UnreadPhrase, said: str, unit: Unit) -> Rhythm:
    """So many units; a fraction of an hour as minutes."""
    count = Fraction(2) if said in ("other", "second") else Fraction(said.rstrip("stndrh"))
    if unit == "hour" and count.denominator != 1:
        count, unit = count * 60, "minute"
    whole = _whole(phrase, count)
    if (
        not 0
        < whole * {"minute": 1, "hour": 60, "day": 1440, "week": 10080, "month": 44640, "year": 527040}[unit]
        <= LONGEST * 1440
    ):
        raise phrase.refusal("an interval is from one minute to ten years long.")
    return whole, unit


def _whole(phrase: UnreadPhrase, count: Fraction) -> int:
    if count.denominator != 1:
        raise phrase.refusal("only hours can be halved; write whole numbers.")
    return int(count)
