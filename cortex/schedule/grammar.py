"""Takes a phrase apart: what it says of rhythm, days and times of day. `once.py` and `again.py` make a timing of it."""

import re

from cortex.schedule.clock_words import take_clocks, take_parts, take_window
from cortex.schedule.day_words import take_days
from cortex.schedule.lines import OF_PART
from cortex.schedule.phrase import SUCH_AS, DayPart, Days, Parts, UnreadPhrase
from cortex.schedule.rhythm_words import take_delay, take_every, take_mark, take_times_in
from cortex.schedule.spoken import WEEKDAYS, plain

_DAY = rf"\b(?:{'|'.join(WEEKDAYS)}|\d{{1,2}}(?:st|nd|rd|th))"
_EACH_ITS_OWN = re.compile(
    rf"{_DAY}s?\b(?: at)? \d{{1,2}}\b(?!st|nd|rd|th).* {_DAY}s?\b(?: at)? \d{{1,2}}\b(?!st|nd|rd|th)"
)


def taken_apart(words: str) -> Parts:
    """All that the words say; ToolFailed when a word means nothing here, or it can't be meant.

    The order matters: what is longer goes first, and bare numbers are hours in the end.
    """
    phrase = UnreadPhrase(words, plain(words))
    if _EACH_ITS_OWN.search(phrase.text):
        raise phrase.refusal("its days have times of their own; make one for each.")
    times_in = take_times_in(phrase)
    delay = take_delay(phrase)
    every, is_nightly = (None, False) if times_in else take_every(phrase)
    days = take_days(phrase)
    is_short = every is not None and every[1] in ("minute", "hour")
    window = take_window(phrase, is_short)
    mark = take_mark(phrase) if is_short else None
    if found := re.search(r"\b(?:in|after) (\d{1,2})(?![\d:.]| ?[ap]m)", phrase.text):
        raise phrase.refusal(f"say {found[1]} what, such as 'in {found[1]} minutes', or 'at {found[1]}:00'.")
    parts, is_plural = take_parts(phrase)
    part: DayPart = parts[0] if parts else "night" if is_nightly else ""
    clocks = take_clocks(phrase, part)
    if len(parts) > 1:
        if clocks:
            raise phrase.refusal("it names several parts of the day beside a time; write the times alone.")
        clocks = tuple(OF_PART[one] for one in parts)
    phrase.done()
    is_repeating = bool(every or times_in or is_plural or days.is_repeating)
    if not (delay or is_repeating or part or clocks or _names_a_day(days)):
        raise phrase.refusal("it names a month and no day." if days.months else f"it says no time. {SUCH_AS}")
    return Parts(
        every=every,
        times_in=times_in,
        delay=delay,
        window=window,
        mark=mark,
        days=days,
        part=part,
        clocks=clocks,
        is_repeating=is_repeating,
    )


def _names_a_day(days: Days) -> bool:
    return bool(days.date or days.offset is not None or days.ahead or days.weekdays or days.nths or days.monthdays)
