"""Parts a sentence such as "call mum tomorrow at 9" into what is told and when, for the page of reminders.

The words of time stand at the end, in front, or both; the parting that reads the most of them is taken. A word that is
also a name is the text's ("lunch with May on Sunday"), and of two days the one at the end counts.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from cortex.base.errors import ToolFailed, UserError
from cortex.ports.schedule import Timing, Timings
from cortex.schedule.spoken import MONTHS, WEEKDAYS, plain

AHEAD_MOST = 8  # words of time in front
BEHIND_MOST = 14  # and at the end
WORDS_MOST = 120
LONG_AGO = datetime(1971, 1, 1, tzinfo=UTC)  # seen from there, no date that people write has passed
SUCH_AS = "Write what and when, such as 'call mum tomorrow at 9' or 'water the plants every Friday at 18:00'."
_ASKING = re.compile(r"^(?:please\s+)?(?:remind\s+me|don'?t\s+let\s+me\s+forget)\b[\s,:]*", re.IGNORECASE)
_JOINT = re.compile(r"^(?:to|that|about|of)\s+(?=\S)", re.IGNORECASE)
_DEADLINE = re.compile(r"\s+by$", re.IGNORECASE)  # "pay it by Friday" is told on Friday
_EDGES = " \t,;:.\u2013\u2014-"

_MONTH = rf"(?:{'|'.join(MONTHS)})"
_DATED = rf"(?:\d\w*(?: of)? {_MONTH}|{_MONTH} (?:the )?\d\w*)"
_LIST = rf"{_MONTH}(?:(?: , (?:and )?| and | or | ?- ?| to | until ){_MONTH})*"
_OF_TIME = rf"(?:in|of|every|each|next|this|last|until) {_LIST}"
_LONE_MONTH = re.compile(rf"\b{_MONTH}\b")
_MEANT_MONTH = re.compile(rf"\b(?:{_DATED}|{_OF_TIME})\b")
_DAY = re.compile(
    rf"\b(?:{'|'.join(WEEKDAYS)}|weekday|weekend|today|tomorrow|tonight)s?\b|\b\d{{1,2}}(?:st|nd|rd|th)\b"
    rf"|\b\d+[-./]\d+|{_DATED}"
)
_RHYTHM = re.compile(
    rf"\b(?:every|each|(?:{'|'.join(WEEKDAYS)}|weekday|weekend)s|weekday|(?:dai|week|month|year|hour|night|quarter)ly)\b"
)
_ADJECTIVE = re.compile(r"morning|afternoon|evening|night")  # "evening class on Tuesday"
_DANGLING = re.compile(r".*\b(?:the|an?|on|at|of|in|and|for)")  # "tomorrow at the office …"
_PARTS = r"(?:morning|afternoon|evening|night)\b"
_NO_START = re.compile(rf"time\b|and\b|{_PARTS}(?! and| , (?:noon|{_PARTS}))")  # "film night at 20:00"
_MARK = re.compile(r".*[:;]|[\u2013\u2014-]+")  # a word that ends what was said so far

_PAST_DAY = r"\b(?:yesterday|last night)\b(?!['\u2019])(?: (?:morning|afternoon|evening|night)\b)?"
_ENDS_IN_PAST = re.compile(rf"{_PAST_DAY}(?= ?,?$)")
_FROM_NOW = re.compile(r"(?:in|after|within)\b")


def parted(said: str, timings: Timings, now: datetime, time_zone: str) -> tuple[str, Timing]:
    """Return what is told, and when. UserError when no time is in it, or nothing but a time."""
    words = _ASKING.sub("", " ".join(said.replace("\u2014", " \u2014 ").split())).split()
    if not words:
        raise UserError(f"Enter what to remind you of. {SUCH_AS}", field="words")
    if len(words) > WORDS_MOST:
        raise UserError(f"That is too long: at most {WORDS_MOST} words.", field="words")
    if _read(words, timings, now, time_zone) is not None:
        raise UserError(f"That is only a time: add what to remind you of. {SUCH_AS}", field="words")
    for ahead, behind in _places(words):
        time = words[:ahead] + words[len(words) - behind :]
        timing = _read(time, timings, now, time_zone)
        if timing is None and _read(time, timings, LONG_AGO, time_zone) is not None:
            raise UserError(f"{' '.join(time)!r} has passed; enter a time in the future.", field="words")
        if timing is None or _is_a_number_of_the_text(time, timings, now, time_zone) or _ends_in_text(time[:ahead]):
            continue
        text = _text(words[ahead : len(words) - behind], has_end=behind > 0)
        if text:
            _refuse_past(text, words[:ahead], words[len(words) - behind :], timing)
            return text, timing
    raise UserError(f"It has no time in the future. {SUCH_AS}", field="words")


def _refuse_past(text: str, front: list[str], end: list[str], timing: Timing) -> None:
    """Refuse a past day beside a time of day that names no day itself: "call mum yesterday at 9"."""
    ahead, behind = plain(" ".join(front)), plain(" ".join(end))
    if timing.kind != "at" or any(_DAY.search(time) or _FROM_NOW.match(time) for time in (ahead, behind)):
        return
    past = (behind and _ENDS_IN_PAST.search(text.casefold())) or (ahead and re.match(_PAST_DAY, text.casefold()))
    if past:
        hint = "enter a time in the future, or its day too, such as 'today at 18:00', if that belongs to the text."
        raise UserError(f"{past[0]!r} has passed; {hint}", field="words")


def _places(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(words ahead, words behind) that may be of time and leave one in between: the most first, then those behind."""
    count = len(words)
    found = [
        (ahead, behind)
        for ahead in range(min(AHEAD_MOST, count - 1) + 1)
        for behind in range(min(BEHIND_MOST, count - 1 - ahead) + 1)
        if ahead + behind
    ]

    def rank(place: tuple[int, int]) -> tuple[bool, int, int]:
        is_count = not place[1] and plain(words[0])[:1].isdigit()  # "one hour photo tomorrow"
        return is_count, -sum(place), place[0]

    for ahead, behind in sorted(found, key=rank):
        if _may_be_time(plain(" ".join(words[:ahead])), plain(" ".join(words[count - behind :]))):
            yield ahead, behind


def _may_be_time(front: str, end: str) -> bool:
    """Tell whether neither holds a person's name nor breaks off, and not both say the day or how often."""
    if any(_LONE_MONTH.search(_MEANT_MONTH.sub(" ", text)) for text in (front, end)):
        return False  # "with May", not "in May", "5 May" or "May the 5th"
    if _DANGLING.fullmatch(front) or _NO_START.match(end):
        return False
    says_twice = any(pattern.search(front) and pattern.search(end) for pattern in (_DAY, _RHYTHM))
    return not says_twice and not (end and _ADJECTIVE.fullmatch(front))


def _read(words: list[str], timings: Timings, now: datetime, time_zone: str) -> Timing | None:
    try:
        timing = timings.read(" ".join(words), now, time_zone)
    except ToolFailed:
        return None
    return timing if timings.following(timing, now, 1) else None


def _is_a_number_of_the_text(words: list[str], timings: Timings, now: datetime, time_zone: str) -> bool:
    """Tell whether the first word is a bare number that time does not need: the 5 of "chapter 5 tomorrow"."""
    is_number = plain(words[0]).isdigit()
    return is_number and (len(words) == 1 or _read(words[1:], timings, now, time_zone) is not None)


def _ends_in_text(front: list[str]) -> bool:
    """Tell whether its last word is a bare number behind a mark: the 30 of "every day at 7: 30 minutes of yoga"."""
    return len(front) > 1 and plain(front[-1]).isdigit() and _MARK.fullmatch(front[-2]) is not None


def _text(words: list[str], *, has_end: bool) -> str:
    text = _JOINT.sub("", " ".join(words).strip(_EDGES)).strip(_EDGES)
    return _DEADLINE.sub("", text) if has_end else text
