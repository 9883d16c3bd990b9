"""The sockets of the tools that deal in time: reading words such as "every Friday at 9", reminders, scheduled jobs.

Reminders and jobs are opened by `ctx.use` for one user; another user's ids are unknown to them (NotFound).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct


class Timing(Struct, frozen=True, kw_only=True):
    """When something is due. `expression`: an ISO moment (at), a cron line in `time_zone` (cron), an interval (every).

    An interval is "900 from 2026-11-21T09:15+00:00", seconds of real time from its first moment, or "14 days from
    2026-11-27T09:00", by the calendar of `time_zone`. `called` has no time of its own: a person or a web address begins
    it. `appointment` is "-3600 start dentist": so many seconds after that edge of each one with these words in its
    title; when that is, only who sees the calendars knows. `words`: the same for a person, such as "every Friday at
    09:00"; `typed`: a repeating time as it was written, "" where a form shows the words. `is_day`: read of words that
    name a day alone, whose hour is the usual one.
    """

    kind: Literal["at", "every", "cron", "called", "appointment"]
    expression: str
    time_zone: str
    words: str
    typed: str = ""
    is_day: bool = False

    def words_in(self, time_zone: str) -> str:
        """The words beside moments of this zone: they name their own where it is another."""
        return self.words if self.time_zone == time_zone else f"{self.words}, {self.time_zone}"


class Timings(Protocol):
    """Reads times as people and crontabs write them."""

    def read(self, words: str, now: datetime, time_zone: str) -> Timing:
        """Read the words, seen from `now` in that zone; ToolFailed says what could not be read, and what can."""
        ...

    def by_appointments(self, words: str, time_zone: str) -> Timing | None:
        """The timing of words such as "an hour before each appointment named dentist"; None for any other."""
        ...

    def following(self, timing: Timing, after: datetime, count: int) -> tuple[datetime, ...]:
        """The next moments after this one, aware UTC, at most `count`; () when it is never due again."""
        ...


class Reminder(Struct, frozen=True, kw_only=True):
    """A text that is told at `next_at`. `is_tainted`: it holds words from outside; `version` guards changes."""

    id: str
    text: str
    timing: Timing
    next_at: datetime
    is_tainted: bool
    version: int


class Reminders(Protocol):
    """One user's reminders that are not over. Being due makes no model call."""

    async def list(self) -> Sequence[Reminder]:
        """All that are to come or wait for an answer, the next first."""
        ...

    async def add(
        self, id: str, text: str, timing: Timing, next_at: datetime, is_tainted: bool, for_id: str = ""
    ) -> Reminder:
        """A new one; the one that stands under this id already is handed back. `for_id`: told to this other person.

        NotFound when they have no open account.
        """
        ...

    async def take_back(self, id: str, for_id: str, version: int) -> bool:
        """Take away what the user gave this person; False when it was told, changed or removed since."""
        ...

    async def remove(self, ids: Sequence[str]) -> int:
        """Take them off in one step, kept for `restore` a day long; how many there were."""
        ...

    async def restore(self, ids: Sequence[str]) -> int:
        """Put removed ones back; how many. Those whose time has passed come due at once."""
        ...


class Job(Struct, frozen=True, kw_only=True):
    """A prompt that runs by itself. `last`: how its newest slot ended, in a few words, or ""."""

    id: str
    name: str
    prompt: str
    timing: Timing
    role: str
    is_enabled: bool
    next_at: datetime | None
    last: str
    is_tainted: bool
    version: int


class Jobs(Protocol):
    """One user's scheduled jobs."""

    async def list(self) -> Sequence[Job]:
        """All of them, by name."""
        ...

    async def add(
        self, id: str, name: str, prompt: str, timing: Timing, role: str, *, is_tainted: bool, is_private: bool
    ) -> Job:
        """A new job, switched on; the one that stands under this id already is handed back."""
        ...

    async def following(self, timing: Timing, count: int) -> Sequence[datetime]:
        """The next moments of a timing beside appointments; ToolFailed where no calendar is seen."""
        ...

    async def enable(self, id: str, is_enabled: bool, expected_version: int) -> Job:
        """Switch it on or off; Conflict when it no longer stands at that version."""
        ...

    async def remove(self, id: str, expected_version: int) -> None:
        """Take it off with its coming slots, kept for `restore` a day long; Conflict as above."""
        ...

    async def restore(self, id: str) -> Job:
        """Put a removed job back as it was; slots that were missed meanwhile stay missed."""
        ...
