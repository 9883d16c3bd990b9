"""Finds days in a phrase: dates, `tomorrow`, `next Tuesday`, `the 1st and 15th`, `last Friday of the month`."""

import re
from datetime import date
from typing import Literal

from cortex.base.errors import ToolFailed
from cortex.schedule.phrase import YEARS, Days, OnDate, UnreadPhrase
from cortex.schedule.spoken import MONTHS, WEEKDAYS

_DAY = rf"(?:{'|'.join(WEEKDAYS)})"
_MONTH = rf"(?:{'|'.join(MONTHS)})"
_YEAR = r"((?:19|20|21)\d{2})"
_NUMBER = r"(?:\d{1,2}(?:st|nd|rd|th)|second|last)"
_AND = r"(?: ?(?:,|and|&|, and|or) ?(?:the )?)"
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})(?:t(?=\d))?")
_DOTTED = re.compile(rf"(?<![\d.])(\d{{1,2}})\.(\d{{1,2}})\.{_YEAR}\b")
_SLASHED = re.compile(r"(?<![\d/*])(\d{1,2})/(\d{1,2})(?:/(\d{4}))?(?![\d/])")
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: day)?(?: of)? ({_MONTH})\b(?: ?,? {_YEAR}\b)?")
_MONTH_DAY = re.compile(
    rf"\b({_MONTH}) (?:the )?(\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d| ?[ap]m\b| oclock| ?h\b)(?: ?,? {_YEAR}\b)?"
)
_MONTH_YEAR = re.compile(rf"\b({_MONTH}) {_YEAR}\b")
_RELATIVE = re.compile(r"\b(?:the )?(day after tomorrow|tomorrow|today|tonight)\b|\bthis (?=morning|afternoon|evening)")
_NEXT_UNIT = re.compile(rf"\b(next) (week|month|year)\b|\b(this|next|coming) (?={_DAY}\b)")
_NTH = re.compile(
    rf"\b((?:{_NUMBER}{_AND})*{_NUMBER})(?: (?:working|business))? ({_DAY}|weekday|day)s?\b(?! (?:after|week))"
)
_END = re.compile(r"\b(?:end|last) of (?:the|each|every|~)(?: months?)?(?= |$)")
_MONTHDAYS = re.compile(rf"\b((?:\d{{1,2}}(?:st|nd|rd|th){_AND})*\d{{1,2}}(?:st|nd|rd|th))\b(?: day)?")
_NUMBERED = re.compile(r"\bday (\d{1,2})(?= of\b)")
_OF_MONTH = re.compile(r"\b(?:of|in) (?:(?:the|each|every|a) )?months?\b")
_EXCEPT = re.compile(rf"\b(?:except|but not|but|without|not)(?: on| the)* ((?:(?:weekends?|{_DAY}s?){_AND}?)+)")
_RANGE = re.compile(rf"\b(?:from )?({_DAY})s? ?(?:-|to|until) ?({_DAY})s?\b")
_UNJOINED = re.compile(rf"\b{_DAY}(?: at)?(?: [\d:]+(?:am|pm)?)? (?:on|for) {_DAY}\b")
_WORKDAYS = re.compile(r"\b(?:weekdays?|(?:working|business) days?)\b")
_WEEKEND = re.compile(r"\b(this )?weekend(s?)\b")
_NAME = re.compile(rf"\b({_DAY})(s?)\b")
_MONTH_NAME = re.compile(rf"\b({_MONTH})\b")
_EVERY = re.compile(r"\b(?:every|each|all|always)\b")
_UNITS: dict[str, Literal["", "week", "month", "year"]] = {"": "", "week": "week", "month": "month", "year": "year"}
WORKDAYS = frozenset(range(1, 6))
WEEKEND = frozenset((6, 0))


def take_days(phrase: UnreadPhrase) -> Days:
    """All days that the phrase names; refused when it names a day that no calendar has."""
    dated = _take_date(phrase)
    offset = _take_offset(phrase)
    if phrase.take(_END):
        return Days(date=dated, offset=offset, nths=((-1, "day"),), is_repeating=True)
    unsure = re.search(rf"\b(?:every|each) (second|2nd|3rd|4th) ({_DAY})\b(?! of| in)", phrase.text)
    if unsure:
        raise _every_nth(phrase, unsure[1], unsure[2].capitalize())
    nths = _take_nths(phrase)
    monthdays = _take_monthdays(phrase)
    if found := phrase.take(_MONTH_YEAR):
        dated, monthdays = _in_month(phrase, MONTHS.index(found[1]) + 1, int(found[2]), monthdays), ()
    is_of_month = bool(phrase.take(_OF_MONTH))
    ahead: Literal["", "this", "next"] = ""
    unit = _UNITS[""]
    if found := phrase.take(_NEXT_UNIT):
        ahead = "next" if "next" in (found[1], found[3]) else "this"
        unit = _UNITS[found[2] or ""]
    weekdays, is_plural = _take_weekdays(phrase)
    months = tuple(sorted({MONTHS.index(one[1]) + 1 for one in phrase.take_all(_MONTH_NAME)}))
    said_every = bool(phrase.take_all(_EVERY))
    is_repeating = any((said_every, is_of_month, is_plural, len(monthdays) > 1, len(nths) > 1, len(months) > 1))
    return Days(
        date=dated,
        offset=offset,
        ahead=ahead,
        ahead_unit=unit,
        weekdays=weekdays,
        nths=nths,
        monthdays=monthdays,
        months=months,
        is_repeating=is_repeating,
    )


def _every_nth(phrase: UnreadPhrase, nth: str, day: str) -> ToolFailed:
    """`every second Friday` may count weeks or the Fridays of a month."""
    word = {"2nd": "second", "3rd": "third", "4th": "fourth"}.get(nth, nth)
    weeks = "other" if word == "second" else f"{nth[0]} weeks on"
    return phrase.refusal(f"write 'every {weeks} {day}' or 'the {word} {day} of the month'.")


def _take_date(phrase: UnreadPhrase) -> OnDate | None:
    """The one date; refused for two, and for what may be day/month or month/day."""
    found: list[OnDate] = []
    for one in phrase.take_all(_ISO):
        found.append(OnDate(year=int(one[1]), month=int(one[2]), day=int(one[3])))
    for one in phrase.take_all(_DOTTED):
        found.append(OnDate(year=int(one[3]), month=int(one[2]), day=int(one[1])))
    for one in phrase.take_all(_SLASHED):
        found.append(_slashed(phrase, int(one[1]), int(one[2]), int(one[3]) if one[3] else None))
    for one in phrase.take_all(_DAY_MONTH):
        found.append(OnDate(year=int(one[3]) if one[3] else None, month=MONTHS.index(one[2]) + 1, day=int(one[1])))
    for one in phrase.take_all(_MONTH_DAY):
        found.append(OnDate(year=int(one[3]) if one[3] else None, month=MONTHS.index(one[1]) + 1, day=int(one[2])))
    if len(found) > 1:
        raise phrase.refusal("it names several dates; make one for each.")
    if found:
        _checked(phrase, found[0])
    return found[0] if found else None


def _in_month(phrase: UnreadPhrase, month: int, year: int, monthdays: tuple[int, ...]) -> OnDate:
    """`in March 2027 on the 1st`."""
    if len(monthdays) != 1:
        raise phrase.refusal(f"write a date such as 5 {MONTHS[month - 1].capitalize()} {year}.")
    on = OnDate(year=year, month=month, day=monthdays[0])
    _checked(phrase, on)
    return on


def _slashed(phrase: UnreadPhrase, first: int, second: int, year: int | None) -> OnDate:
    if first <= 12 and second <= 12 and first != second:
        raise phrase.refusal(f"{first}/{second} may be day/month or month/day; write such as 2027-12-03 or 3 December.")
    day, month = (first, second) if second <= 12 else (second, first)
    return OnDate(year=year, month=month, day=day)


def _checked(phrase: UnreadPhrase, on: OnDate) -> None:
    """Refused when no calendar has the day; 29 February is looked at in a leap year where no year was said."""
    if on.year is not None and on.year not in YEARS:
        raise phrase.refusal(f"write a year from {YEARS[0]} to {YEARS[-1]}.")
    try:
        date(on.year or 2028, on.month, on.day)
    except ValueError as error:
        if not 1 <= on.month <= 12:
            raise phrase.refusal(f"there is no month {on.month}.") from error
        year = f" {on.year}" if on.year else ""
        raise phrase.refusal(f"there is no {on.day} {MONTHS[on.month - 1].capitalize()}{year}.") from error


def _take_offset(phrase: UnreadPhrase) -> int | None:
    """Return how many days from today: 1 for tomorrow; None when nothing of the kind is said."""
    found = phrase.take(_RELATIVE)
    if not found:
        return None
    if found[1] == "tonight":
        phrase.text += " night"
    return {"tomorrow": 1, "day after tomorrow": 2}.get(found[1] or "today", 0)


def _take_nths(phrase: UnreadPhrase) -> tuple[tuple[int, int | str], ...]:
    """`last Friday of the month`: ((-1, 5),)."""
    out: list[tuple[int, int | str]] = []
    for one in phrase.take_all(_NTH):
        numbers = [_number(phrase, word) for word in re.findall(_NUMBER, one[1])]
        workdays = "working" in one[0] or "business" in one[0] or one[2] == "weekday"
        day: int | str = WEEKDAYS.index(one[2]) if one[2] in WEEKDAYS else "weekday" if workdays else "day"
        out += [(number, day) for number in numbers]
    return tuple(out)


def _number(phrase: UnreadPhrase, word: str) -> int:
    number = {"last": -1, "second": 2}.get(word) or int(word[:-2])
    if not (number == -1 or 1 <= number <= 31):
        raise phrase.refusal(f"no month has a {word} of anything.")
    return number


def _take_monthdays(phrase: UnreadPhrase) -> tuple[int, ...]:
    """Days of the month by number."""
    days = {int(one[1]) for one in phrase.take_all(_NUMBERED)}
    for one in phrase.take_all(_MONTHDAYS):
        days |= {int(number) for number in re.findall(r"\d+", one[1])}
    if days and not all(1 <= day <= 31 for day in days):
        raise phrase.refusal(f"no month has a day {max(days)}.")
    return tuple(sorted(days))


def _take_weekdays(phrase: UnreadPhrase) -> tuple[frozenset[int], bool]:
    """Weekdays by number (0 is Sunday), and whether they come again by the way they were said."""
    out: set[int] = set()
    left_out: set[int] = set()
    is_plural = False
    if _UNJOINED.search(phrase.text):
        raise phrase.refusal("it names two days; write 'and' between them, or one alone.")
    for one in phrase.take_all(_EXCEPT):
        left_out |= set(WEEKEND) if "weekend" in one[1] else set()
        left_out |= {WEEKDAYS.index(name) for name in re.findall(_DAY, one[1])}
    for one in phrase.take_all(_RANGE):
        first, last = WEEKDAYS.index(one[1]), WEEKDAYS.index(one[2])
        out |= {(first + away) % 7 for away in range((last - first) % 7 + 1)}
    if phrase.take_all(_WORKDAYS):
        out, is_plural = out | WORKDAYS, True
    for one in phrase.take_all(_WEEKEND):
        out, is_plural = out | ({6} if one[1] else WEEKEND), is_plural or not one[1]
    for one in phrase.take_all(_NAME):
        out, is_plural = out | {WEEKDAYS.index(one[1])}, is_plural or bool(one[2])
    if left_out:
        out, is_plural = (out or set(range(7))) - left_out, True
    return frozenset(out), is_plural or len(out) > 1
