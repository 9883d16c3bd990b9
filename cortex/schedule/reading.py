"""The port `Timings`: reads words and cron lines to a timing and follows it. `Reader` holds nothing; share one."""

import re
from datetime import UTC, datetime

from msgspec.structs import replace

from cortex.base.errors import ToolFailed
from cortex.ports.schedule import Timing
from cortex.schedule import moments
from cortex.schedule.again import again, timing_of
from cortex.schedule.appointment_words import by_appointments
from cortex.schedule.cron import is_cron
from cortex.schedule.grammar import taken_apart
from cortex.schedule.once import once, timing_at
from cortex.schedule.phrase import SUCH_AS, YEARS

CHARACTERS = 200
_QUOTES = "\"'`\u201c\u201d\u2018\u2019 \t\n"


class Reader:
    """Reads times as people and crontabs write them."""

    def read(self, words: str, now: datetime, time_zone: str) -> Timing:
        """Read the words, seen from `now` in that zone; ToolFailed says what could not be read, and what can."""
        zone = moments.zone_of(time_zone)
        said = " ".join(words.strip(_QUOTES).split())
        if not said:
            raise ToolFailed(f"Nothing is said of a time. {SUCH_AS}")
        if len(said) > CHARACTERS:
            raise ToolFailed(f"A time in words has {CHARACTERS} characters at most. {SUCH_AS}")
        line = re.sub(r"^cron(?:tab)?:? ", "", said, flags=re.IGNORECASE)
        if is_cron(line):
            return replace(timing_of(line, zone), typed=line)
        if at := _iso(said):
            return timing_at(said, at, at.astimezone(zone).replace(tzinfo=None), now, zone)
        if by_appointments(said, zone.key):
            raise ToolFailed("Only a job can follow appointments. Make it one on the page Jobs.")
        parts = taken_apart(said)
        timing = (again if parts.is_repeating else once)(said, parts, now.astimezone(UTC), zone)
        return replace(timing, typed=said if parts.is_repeating else "", is_day=parts.is_day)

    def by_appointments(self, words: str, time_zone: str) -> Timing | None:
        """The timing of words such as "an hour before each appointment named dentist"; None for any other."""
        return by_appointments(words, moments.zone_of(time_zone).key)

    def following(self, timing: Timing, after: datetime, count: int) -> tuple[datetime, ...]:
        """The next moments after this one, aware UTC, at most `count`; () when it is never due again."""
        return moments.following(timing, after, count)


def _iso(said: str) -> datetime | None:
    """A moment in ISO's form with its offset; None for any other."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)", said, re.IGNORECASE):
        return None
    try:
        found = datetime.fromisoformat(said.upper())
    except ValueError as error:
        raise ToolFailed(f"There is no moment {said!r}.") from error
    if found.year not in YEARS:
        raise ToolFailed(f"I can't take {said!r}: write a year from {YEARS[0]} to {YEARS[-1]}.")
    return found.astimezone(UTC)
