"""What the reader of calendars says of a resource, and the rows of the local copy that it becomes.

The reader is `integrations/foreign/readers/calendar.py`; its answers are checked here, field by field.
"""

import io
import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from cortex.base.errors import UserError
from cortex.base.ids import derived_id
from cortex.integrations.dav.values import Resource
from cortex.ports.foreign import ForeignReader, NotReadNowError, all_of
from cortex.storage.appointments import AppointmentDateRow, AppointmentRow, Read

PAST, AHEAD, AT_LEAST_AHEAD = timedelta(days=400), timedelta(days=800), timedelta(days=430)
READ_AT_ONCE_BYTES = 1_500_000
_STRICT = ConfigDict(extra="forbid", strict=False)


class DateRead(BaseModel):
    """One date."""

    model_config = _STRICT
    key: str = Field(max_length=60)
    starts_at: AwareDatetime
    ends_at: AwareDatetime
    day: str = Field(max_length=10)
    last_day: str = Field(max_length=10)
    is_off: bool
    title: str | None = Field(default=None, max_length=500)
    place: str | None = Field(default=None, max_length=500)


class PersonRead(BaseModel):
    """Somebody who is invited."""

    model_config = _STRICT
    address: str = Field(max_length=500)
    name: str = Field(max_length=500)
    answer: str = Field(max_length=20)


class AppointmentRest(BaseModel):
    """The part of the local copy that is kept as JSON."""

    model_config = _STRICT
    note: str = Field(default="", max_length=200)
    text: str = Field(default="", max_length=4_000)
    starts: str = Field(default="", max_length=40)
    is_all_day: bool = False
    zone: str = Field(default="", max_length=80)
    is_zone_unknown: bool = False
    sequence: int = 0
    organizer: str = Field(default="", max_length=500)
    people: list[PersonRead] = Field(default_factory=list, max_length=100)
    is_private: bool = False
    is_tentative: bool = False


class AppointmentRead(AppointmentRest):
    """An appointment with its dates. `fault`: why it cannot be read; then the rest is empty."""

    uid: str = Field(max_length=500)
    fault: str = Field(default="", max_length=200)
    title: str = Field(default="", max_length=500)
    place: str = Field(default="", max_length=500)
    rule: str = Field(default="", max_length=500)
    is_free: bool = False
    dates: list[DateRead] = Field(default_factory=list, max_length=2_500)


class ResourceRead(BaseModel):
    """A resource as it was read. `fault`: why nothing of it can be read."""

    model_config = _STRICT
    href: str = Field(max_length=4_000)
    fault: str = Field(default="", max_length=200)
    appointments: list[AppointmentRead] = Field(default_factory=list, max_length=2_000)


class CopyWindow(BaseModel):
    """From when to when series are unfolded, and in which zone floating times are meant."""

    since: AwareDatetime
    until: AwareDatetime
    zone: str


def window_at(now: datetime, zone: str) -> CopyWindow:
    """The window of a copy that is made now."""
    return CopyWindow(since=now - PAST, until=now + AHEAD, zone=zone or "UTC")


async def read_resources(
    foreign: ForeignReader, resources: Sequence[Resource], window: CopyWindow
) -> list[ResourceRead]:
    """Each resource as the reader understands it, several at once; one that breaks a reading is read alone, then told.

    NotReadNowError where another try may do better.
    """
    found: list[ResourceRead] = []
    for part in _parts(resources):
        try:
            found += await _read(foreign, part, window)
        except NotReadNowError:
            raise
        except UserError as error:
            if len(part) == 1:
                found.append(ResourceRead(href=part[0].href, fault=error.message[:200]))
                continue
            for one in part:
                found += await read_resources(foreign, [one], window)
    return found


async def _read(foreign: ForeignReader, part: Sequence[Resource], window: CopyWindow) -> Sequence[ResourceRead]:
    order = {
        "since": window.since.isoformat(),
        "until": window.until.isoformat(),
        "zone": window.zone,
        "resources": [[one.href, one.data] for one in part],
    }
    return await all_of(foreign, "calendar", io.BytesIO(json.dumps(order).encode()), ResourceRead)


def _parts(resources: Sequence[Resource]) -> list[list[Resource]]:
    """Portions of a bounded size, so that one reading ends within its limits."""
    parts: list[list[Resource]] = []
    size = READ_AT_ONCE_BYTES
    for one in resources:
        size += len(one.data)
        if size >= READ_AT_ONCE_BYTES or len(parts[-1]) >= 100:
            parts.append([])
            size = len(one.data)
        parts[-1].append(one)
    return parts


def rows_of(owner_id: str, calendar_id: str, etag: str, read: ResourceRead) -> list[Read]:
    """The rows of the copy; none of what could not be read."""
    made: list[Read] = []
    for one in read.appointments:
        if one.fault:
            continue
        id = derived_id("appointment", calendar_id, read.href, one.uid)
        rest = AppointmentRest(**one.model_dump(include=set(AppointmentRest.model_fields)))
        row = AppointmentRow(
            id=id,
            owner_id=owner_id,
            calendar_id=calendar_id,
            href=read.href,
            etag=etag,
            uid=one.uid,
            title=one.title,
            place=one.place,
            rule=one.rule,
            is_free=one.is_free,
            rest=rest.model_dump_json(exclude_defaults=True),
        )
        dates = {date.key: _date(row, date) for date in one.dates}
        made.append((row, list(dates.values())))
    return made


def _date(row: AppointmentRow, date: DateRead) -> AppointmentDateRow:
    return AppointmentDateRow(
        appointment_id=row.id,
        key=date.key,
        owner_id=row.owner_id,
        calendar_id=row.calendar_id,
        starts_at=date.starts_at,
        ends_at=date.ends_at,
        day=date.day,
        last_day=date.last_day,
        title=date.title,
        place=date.place,
    )
