"""Parts a sentence such as "call mum tomorrow at 9" into what is told and when. Times are read by the port `Timings`.

The words of time stand at the end, in front, or both; the parting that reads the most of them is taken.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from cortex.base.errors import ToolFailed, UserError
from cortex.base.time_ports import Timing, Timings

AHEAD_MOST = 8  # words of time in front
BEHIND_MOST = 14  # and at the end
WORDS_MOST = 120
LONG_AGO = datetime(1971, 1, 1, tzinfo=UTC)  # seen from there, no date that people write has passed
SUCH_AS = "Write what and when, such as 'call mum tomorrow at 9' or 'water the plants every Friday at 18:00'."
_ASKING = re.compile(r"^(?:please\s+)?(?:remind\s+me|don'?t\s+let\s+me\s+forget)\b[\s,:]*", re.IGNORECASE)
_JOINT = re.compile(r"^(?:to|that|about|of)\s+(?=\S)", re.IGNORECASE)
_EDGES = " \t,;:.\u2013\u2014-"


def parted(said: str, timings: Timings, now: datetime, time_zone: str) -> tuple[str, Timing]:
    """What is told, and when. UserError when no time is in it, or nothing but a time."""
    words = _ASKING.sub("", " ".join(said.split())).split()
    if not words:
        raise UserError(f"What shall you be reminded of? {SUCH_AS}", field="words")
    if len(words) > WORDS_MOST:
        raise UserError(f"That is too long: at most {WORDS_MOST} words.", field="words")
    if _read(words, timings, now, time_zone) is not None:
        raise UserError(f"That is a time and nothing to be told. {SUCH_AS}", field="words")
    for ahead, behind in _places(len(words)):
        time = words[:ahead] + words[len(words) - behind :]
        timing = _read(time, timings, now, time_zone)
        if timing is None and _read(time, timings, LONG_AGO, time_zone) is not None:
            raise UserError(f"{' '.join(time)!r} has passed; give a time to come.", field="words")
        if timing is None or _is_a_number_of_the_text(time, timings, now, time_zone):
            continue
        text = _text(words[ahead : len(words) - behind])
        if text:
            return text, timing
    raise UserError(f"I find no time to come in it. {SUCH_AS}", field="words")


def _places(count: int) -> Iterator[tuple[int, int]]:
    """(words ahead, words behind) that leave at least one in between: the most words first, then those behind."""
    found = [
        (ahead, behind)
        for ahead in range(min(AHEAD_MOST, count - 1) + 1)
        for behind in range(min(BEHIND_MOST, count - 1 - ahead) + 1)
        if ahead + behind
    ]
    return iter(sorted(found, key=lambda place: (-sum(place), place[0])))


def _read(words: list[str], timings: Timings, now: datetime, time_zone: str) -> Timing | None:
    try:
        timing = timings.read(" ".join(words), now, time_zone)
    except ToolFailed:
        return None
    return timing if timings.following(timing, now, 1) else None


def _is_a_number_of_the_text(words: list[str], timings: Timings, now: datetime, time_zone: str) -> bool:
    """Whether the first word is a bare number that time does not need: the 5 of "chapter 5 tomorrow"."""
    return words[0].isdigit() and (len(words) == 1 or _read(words[1:], timings, now, time_zone) is not None)


def _text(words: list[str]) -> str:
    return _JOINT.sub("", " ".join(words).strip(_EDGES)).strip(_EDGES)
