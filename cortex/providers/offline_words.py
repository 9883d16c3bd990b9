"""Finds dates and times in an English sentence, by dateparser. Loaded only when the offline model needs a date.

Called by `offline_arguments.py`; knows no tool and no schema.
"""

import re
from datetime import datetime

from dateparser.search import search_dates  # type: ignore[import-untyped]  # ships no types

# dateparser does not take "at 6" for a time; "at 6:00" it does.
_BARE_HOUR = re.compile(r"\bat (\d{1,2})(?!\d|:|\.\d|\s*(?:am|pm|a\.m|p\.m))", re.IGNORECASE)
_NOT_DATES = re.compile(r"^(?:\d+|may|march|mar|sun|sat|second|now|a|in|on|to)$", re.IGNORECASE)


def find_moment(sentence: str, base: datetime) -> tuple[str, datetime] | None:
    """The first date or time in the sentence: (its words as written, the moment), in the zone of `base`; or None."""
    spelled = _BARE_HOUR.sub(r"at \1:00", sentence)
    found = search_dates(
        spelled,
        languages=["en"],
        settings={
            "PREFER_DATES_FROM": "future",
            "RELATIVE_BASE": base.replace(tzinfo=None),
            "RETURN_AS_TIMEZONE_AWARE": False,
        },
    )
    for words, moment in found or ():
        as_written = words if words in sentence else words.replace(":00", "")
        if not _NOT_DATES.match(words.strip()) and as_written in sentence:
            return as_written, moment.replace(tzinfo=base.tzinfo)
    return None
