"""Finds the first date or time in an English sentence: the longest run of its words that the grammar of times reads.

Called by `offline_arguments.py`; knows no tool and no schema. What may well mean something else is left alone: a lone
number, a month without a day, "sun" and "sat".
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from cortex.base.errors import ToolFailed
from cortex.ports.schedule import Timings

WORDS_MOST = 9
_UNIT = r"(?:sec(?:ond)?s?|min(?:ute)?s?|hours?|hrs?|days?|weeks?|months?|years?|fortnights?)\b"
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:[a-z]{2,6})?\b"
_CLOCK = r"\d{1,2}(?::\d\d|(?:[:.]\d\d)? ?(?:[ap]m\b|[ap]\.m|h\b|o'clock))"
_DATE = rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}(?:/\d|\.\d{{1,2}}\.)|(?:first|\d{{1,2}}(?:st|nd|rd|th)?)(?: of)? {_MONTH}"
_DAY = r"(?:today|tonight|tomorrow|(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tue|wed|thu|fri)\b"
_TIME = re.compile(
    rf"\b(?:{_DAY}|{_CLOCK}|{_DATE}|{_MONTH} (?:the )?\d|\d+ ?{_UNIT}|(?:in|after) .*{_UNIT}|next (?:week|month|year)\b"
    r"|at \S|the \d{1,2}(?:st|nd|rd|th)\b|this (?:morning|afternoon|evening)|(?:noon|midday|midnight)\b"
    r"|half past |quarter (?:past|to) |from now\b)",
    re.IGNORECASE,
)
_NO_START = re.compile(
    r"(?:and|please|also|for|of|an?|about|around|once|the(?! \d| day| first))\b"
    rf"|\d+ (?!{_UNIT}|{_MONTH}|[ap]\.?m|o'|of )",
    re.IGNORECASE,
)
_NO_END = re.compile(r"\b(?:and|please|also|for|of|an?|the|about|around|once|on|at|in|to)$", re.IGNORECASE)
_LONE_NUMBER = re.compile(rf"^\d+$|\b(?!(?:at|past|to|{_MONTH}|the) )\S+ \d{{1,2}}$", re.IGNORECASE)
_PAST = re.compile(r"\b(?:yesterday|last week|(\d{1,3}) (minute|hour|day|week)s? ago)\b", re.IGNORECASE)
_AGO = {"yesterday": timedelta(days=1), "last week": timedelta(weeks=1)}


_SHOWN = re.compile(  # as base/zone.py has days for models; a day alone only where it can be nothing of a text's own
    r"\b(?:(?P<near>\d{4}-\d\d-\d\d) \((?P<word>[^()]*)\)|(?:(?<=due )|(?<=\())(?P<far>\d{4}-\d\d-\d\d))"
    r"(?: (?P<time>\d\d:\d\d)\b)?"
)
_NEAR = {-1: "yesterday", 0: "today", 1: "tomorrow"}


def in_words(text: str, today: date) -> str:
    """The text with its days as people say them: tomorrow at 09:00, Friday, 24 December."""
    return _SHOWN.sub(lambda shown: _said(shown, today), text)


def _said(shown: re.Match[str], today: date) -> str:
    day = date.fromisoformat(shown["near"] or shown["far"])
    days = (day - today).days
    words = _NEAR.get(days) or (f"{day:%A}" if 1 < days < 7 else f"{day.day} {day:%B}")
    if day.year != today.year and days not in _NEAR and not 1 < days < 7:
        words += f" {day.year}"
    late = f", {shown['word']}" if (shown["word"] or "").startswith("overdue") else ""
    at = f" at {shown['time']}" if shown["time"] else ""
    return f"{words}{at}{late}"


def find_moment(sentence: str, base: datetime, timings: Timings) -> tuple[str, datetime] | None:
    """The first date or time in the sentence: (its words as written, the moment), in the zone of `base`; or None."""
    if past := _PAST.search(sentence):
        ago = _AGO.get(past[0].lower()) or timedelta(**{f"{past[2].lower()}s": int(past[1])})
        return past[0], base - ago
    if not _TIME.search(sentence):
        return None
    for words in _runs(sentence):
        if moment := _moment(words, base, timings):
            return words, moment
    return None


def _runs(sentence: str) -> Iterator[str]:
    """The runs of words that may be a time: from the left, the longest first."""
    words = list(re.finditer(r"\S+", sentence))
    for start in range(len(words)):
        for end in range(min(start + WORDS_MOST, len(words)), start, -1):
            run = sentence[words[start].start() : words[end - 1].end()].rstrip(".,;:!?")
            if _TIME.search(run) and not (_NO_START.match(run) or _NO_END.search(run) or _LONE_NUMBER.search(run)):
                yield run


def _moment(words: str, base: datetime, timings: Timings) -> datetime | None:
    """Give what the words mean; seen from the day's beginning where that has passed: "today" is a day until its end."""
    here = base.replace(tzinfo=UTC)  # a clock without a zone, which is that of `base`
    for now in (here, datetime.combine(here, time.min, UTC)):
        try:
            timing = timings.read(words, now, "UTC")
        except ToolFailed:
            continue
        if timing.kind == "at":
            return datetime.fromisoformat(timing.expression).replace(tzinfo=base.tzinfo)
    return None
