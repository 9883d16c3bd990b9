"""Finds times of day in a phrase: `7:30`, `7pm`, `half past 7`, `1930`, `noon`, and `at 7` with `in the evening`."""

import re

from cortex.schedule.phrase import Clock, DayPart, UnreadPhrase

_AMPM = r"(?: ?(am|pm)\b)?"
_PAST = re.compile(
    rf"\b(half|quarter|\d{{1,2}})(?: minutes?)? (past|after|to|before) (noon|midnight|\d{{1,2}})(?!\d|[:.]\d)"
    rf"(?: oclock)?{_AMPM}"
)
_HALF = re.compile(r"\bhalf (\d{1,2})\b(?! minutes?| hours?)")
_COLON = re.compile(rf"(?<![\d:.])(\d{{1,2}}) ?[:.h] ?(\d{{2}})(?::00)?(?![\d:]|\.\d){_AMPM}(?: hours?| h)?")
_AM = re.compile(r"(?<![\d:.])(\d{1,2}) ?(am|pm)\b")
_OCLOCK = re.compile(r"(?<![\d:.])(\d{1,2}) ?(?:oclock|hundred(?: hours)?|h|uhr)\b")
_PAIR = re.compile(rf"(?<![\d:.])(\d{{1,2}}) ([0-5]\d)\b(?![:.]\d|st|nd|rd|th){_AMPM}")
_FOUR = re.compile(r"(?<![\d:.-])([01]\d|2[0-3])([0-5]\d)\b(?:h| hours)?")
_NAMED = re.compile(r"\b(noon|midnight)\b")
_BARE = re.compile(r"(?<![\d:./+-])(\d{1,2})\b(?![\d:./]|st|nd|rd|th)")
_PART = re.compile(r"\b(?:(?:in the|at|of the|during the) )?(morning|afternoon|evening|night)(s?)\b")
_WINDOW = re.compile(
    r"\b(?:between|from) (.{1,24}?) (?:and|to|until|-) (.{1,24}?)(?= ~|$| on| every| each| ,|(?: \w+)?days?\b)"
)
_BARE_WINDOW = re.compile(r"(?<![\d:])(\d{1,2}(?::\d{2})?(?:am|pm)?) ?(?:-|to|until) ?(\d{1,2}(?::\d{2})?(?:am|pm)?)\b")
_PARTS: tuple[DayPart, ...] = ("morning", "afternoon", "evening", "night")
NAMED = {"noon": 12, "midnight": 0}


def take_window(phrase: UnreadPhrase, is_short: bool) -> tuple[Clock, Clock] | None:
    """`between 9 and 17`, `from 8am to 6pm`, `9-17`: its two ends; None when there is none.

    `is_short`: it stands beside `every 15 minutes` or the like, the only place where it has a meaning.
    """
    found = phrase.take(_WINDOW) or (phrase.take(_BARE_WINDOW) if is_short else None)
    if not found:
        return None
    if not is_short:
        raise phrase.refusal(f"'{found[0]}' needs an interval, such as every hour between 9:00 and 17:00.")
    first, last = _only(phrase, found[1]), _only(phrase, found[2])
    if first.is_bare and not last.is_bare and "pm" in found[2] and first.hour < 12 and first.hour + 12 < last.hour:
        raise phrase.refusal(f"{found[1]!r} may mean the morning or the afternoon; write it with am or pm.")
    if last.is_bare and last.hour <= first.hour <= 12:
        raise phrase.refusal(
            f"'{found[1]} to {found[2]}' may mean day or night; write such as 9:00 to 17:00 or 9am to 5pm."
        )
    return first, last


def take_parts(phrase: UnreadPhrase) -> tuple[tuple[DayPart, ...], bool]:
    """The parts of the day that are named, in their order, and whether a plural says that they come again."""
    found = phrase.take_all(_PART)
    named = {one[1] for one in found}
    return tuple(part for part in _PARTS if part in named), any(one[2] for one in found)


def take_clocks(phrase: UnreadPhrase, part: DayPart) -> tuple[Clock, ...]:
    """All times of day that are left, the earliest first; the part of the day settles bare ones."""
    clocks = [_before_or_past(phrase, one[1], one[2], one[3], one[4], part) for one in phrase.take_all(_PAST)]
    if found := phrase.take(_HALF):
        hour = int(found[1])
        both = f"{hour}:30, in English, or {(hour - 1) % 24}:30, as in other languages"
        raise phrase.refusal(f"'half {hour}' may mean {both}. Write the one you mean.")
    for pattern in (_COLON, _PAIR):
        clocks += [_clock(phrase, one[1], one[2], one[3], part) for one in phrase.take_all(pattern)]
    clocks += [_clock(phrase, one[1], "0", one[2], part) for one in phrase.take_all(_AM)]
    clocks += [_clock(phrase, one[1], "0", None, part) for one in phrase.take_all(_OCLOCK)]
    clocks += [_clock(phrase, one[1], one[2], None, "") for one in phrase.take_all(_FOUR)]
    clocks += [Clock(hour=NAMED[one[1]], minute=0) for one in phrase.take_all(_NAMED)]
    clocks += [_clock(phrase, one[1], "0", None, part) for one in phrase.take_all(_BARE)]
    return tuple(sorted(set(clocks), key=lambda clock: (clock.hour, clock.minute)))


def _only(phrase: UnreadPhrase, words: str) -> Clock:
    """One end of a window; the phrase is refused when it is no time of day."""
    inner = UnreadPhrase(phrase.words, words)
    parts, _ = take_parts(inner)
    clocks = take_clocks(inner, parts[0] if parts else "")
    inner.done()
    if len(clocks) != 1:
        raise phrase.refusal(f"{words!r} is no one time of day; write between 9:00 and 17:00.")
    return clocks[0]


def _before_or_past(phrase: UnreadPhrase, minutes: str, way: str, hour: str, ampm: str | None, part: DayPart) -> Clock:
    """`quarter to 9`: 8:45."""
    count = {"half": 30, "quarter": 15}.get(minutes) or int(minutes)
    if count > 59 or (minutes == "half" and way in ("to", "before")):
        raise phrase.refusal(f"'{minutes} {way} {hour}' is no time of day; write it such as 8:45.")
    base = Clock(hour=NAMED[hour], minute=0) if hour in NAMED else _clock(phrase, hour, "0", ampm, part)
    shifted = (base.hour * 60 + (count if way in ("past", "after") else -count)) % (24 * 60)
    return Clock(hour=shifted // 60, minute=shifted % 60, is_bare=base.is_bare)


def _clock(phrase: UnreadPhrase, hour_said: str, minute_said: str, ampm: str | None, part: DayPart) -> Clock:
    """The time as said; refused when no clock shows it."""
    hour, minute = int(hour_said), int(minute_said)
    if hour == 24 and minute == 0:
        hour = 0
    if minute > 59 or hour > 23 or (ampm and not 1 <= hour <= 12):
        shown = f"{hour_said}{'' if minute_said == '0' else ':' + minute_said}{ampm or ''}"
        raise phrase.refusal(f"{shown} is no time of day; write it such as 7:30, 19:30 or 7:30pm.")
    if ampm:
        return Clock(hour=hour % 12 + (12 if ampm == "pm" else 0), minute=minute)
    if part:
        return Clock(hour=_in_part(hour, part), minute=minute)
    return Clock(hour=hour, minute=minute, is_bare=1 <= hour <= 12 and not hour_said.startswith("0"))


def _in_part(hour: int, part: DayPart) -> int:
    """The hour as it is meant in that part of the day: 8 in the evening is 20, 2 at night is 2, 12 at night 0."""
    if part == "night":
        return 0 if hour == 12 else hour + 12 if 6 <= hour < 12 else hour
    return hour + 12 if part in ("afternoon", "evening") and hour < 12 else hour
