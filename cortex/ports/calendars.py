"""Calendars as tools see them: one person's, with what others let them see. Implemented in `services/calendars/`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from msgspec import Struct, field

Answer = Literal["accepted", "tentative", "declined"]


class CalendarName(Struct, frozen=True, kw_only=True):
    """A calendar. `owner`: whose it is, "" for one's own; `access`: busy, read or write.

    `readers`: a key of it with those of the household who read what is written there, "" for nobody. `is_stale`: why
    its copy is old, in words. `invites`: its server sends invitations; else those who are named are told by nobody.
    `is_outside`: others write it, and it is read from an address.
    """

    id: str
    name: str
    owner: str = ""
    access: str = "read"
    account: str = ""
    readers: str = ""
    is_stale: str = ""
    invites: bool = False
    is_outside: bool = False

    @property
    def label(self) -> str:
        """Return what it is called: its name, and whose it is."""
        return f"{self.name} ({self.owner})" if self.owner else self.name


class Occasion(Struct, frozen=True, kw_only=True):
    """One date of an appointment. `key`: which date of its series, "" for one that stands alone.

    `day`, `last_day`: of a whole day, its days as ISO dates, else "". Of a calendar where only busy times are seen the
    title is "Busy", the place "" and `id` "". `has_organizer`: it names who invites to it, who may be another person.
    """

    id: str
    key: str
    calendar: CalendarName
    starts_at: datetime
    ends_at: datetime
    title: str
    day: str = ""
    last_day: str = ""
    place: str = ""
    repeats: bool = False
    is_free: bool = False
    has_organizer: bool = False


class Person(Struct, frozen=True, kw_only=True):
    """Somebody who is invited. `answer`: accepted, tentative, declined or needs-action."""

    address: str
    name: str = ""
    answer: str = "needs-action"


class Details(Struct, frozen=True, kw_only=True):
    """The rest of an appointment. `is_invitation`: another person made it and invited this one."""

    text: str = ""
    rule: str = ""
    zone: str = ""
    starts: str = ""
    note: str = ""
    organizer: str = ""
    people: Sequence[Person] = ()
    is_private: bool = False
    is_tentative: bool = False
    is_invitation: bool = False
    is_foreign: bool = False


class Draft(Struct, frozen=True, kw_only=True):
    """An appointment to be written. Times in the wall time of `zone`; of whole days `starts` and `ends` are ISO days.

    None: as it is. `people`: who is invited.
    """

    title: str | None = None
    place: str | None = None
    text: str | None = None
    starts: str | None = None
    ends: str | None = None
    zone: str = ""
    is_all_day: bool = False
    rule: str | None = None
    people: Sequence[Person] | None = None


class Written(Struct, frozen=True, kw_only=True):
    """A change, made ready against the version that stands on the server, so that a second try does the same.

    `data`: the whole resource as it will be, "" to remove it; `before`: as it is, "" where there is none yet.
    """

    calendar_id: str
    url: str
    etag: str
    data: str
    before: str
    stamp: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


class Calendars(Protocol):
    """The calendars of one person. ToolFailed, in words, where a server cannot be asked."""

    async def names(self) -> Sequence[CalendarName]:
        """Every calendar that they may see, their own first."""
        ...

    async def between(self, since: datetime, until: datetime, *, words: str = "") -> Sequence[Occasion]:
        """The dates in this time, by their begin, from the local copy."""
        ...

    async def details(self, occasion: Occasion) -> Details:
        """Return what else it says; nothing of one that is only seen as busy."""
        ...

    async def ready_new(self, calendar_id: str, uid: str, draft: Draft) -> Written:
        """A new appointment, ready to be written."""
        ...

    async def ready_change(self, occasion: Occasion, draft: Draft, *, all_dates: bool) -> Written:
        """A change of one date, or of the whole series, which moves by as much as this date; ready to be written."""
        ...

    async def ready_removal(self, occasion: Occasion, *, all_dates: bool) -> Written:
        """Taking away one date, or the whole of it, ready to be written."""
        ...

    async def ready_answer(self, occasion: Occasion, answer: Answer) -> Written:
        """The answer to an invitation, ready to be written."""
        ...

    async def write(self, written: Written) -> str:
        """Write it, once however often it is called; the version that stands there then."""
        ...

    async def put_back(self, written: Written, version: str) -> str:
        """Have it as it was before; the version then. Conflict where it was changed since `version`."""
        ...
