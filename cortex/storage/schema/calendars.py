"""Calendars of people, on servers that they name, and the copy of what is in them. Columns, keys and indexes only."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


class CalendarAccountTable(Table):
    """A server or an address with calendars of one person. `kind`: caldav, or ics for an address that is only read."""

    __tablename__ = "calendar_accounts"
    __table_args__ = (Index("ix_calendar_accounts_next_at", "next_at"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    kind: Mapped[str]
    title: Mapped[str]
    url: Mapped[str]
    username: Mapped[str] = mapped_column(default="")
    addresses: Mapped[str] = mapped_column(default="")
    schedules: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    next_at: Mapped[datetime]
    worked_at: Mapped[datetime | None]
    failure: Mapped[str] = mapped_column(default="")
    failures: Mapped[int] = mapped_column(default=0)


class CalendarTable(Table):
    """One calendar of an account. `access`: off, busy, read or write; `shared_as`: "", busy or read."""

    __tablename__ = "calendars"
    __table_args__ = (UniqueConstraint("account_id", "url"), Index("ix_calendars_shared_as", "shared_as"))
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    account_id: Mapped[str] = mapped_column(ForeignKey("calendar_accounts.id", ondelete="CASCADE"))
    url: Mapped[str]
    name: Mapped[str]
    color: Mapped[str] = mapped_column(default="")
    can_write: Mapped[bool]
    access: Mapped[str]
    shared_as: Mapped[str] = mapped_column(default="")
    token: Mapped[str] = mapped_column(default="")
    zone: Mapped[str] = mapped_column(default="")
    unfolded_until: Mapped[datetime | None]
    worked_at: Mapped[datetime | None]


class AppointmentTable(Table):
    """An appointment or a series, as it was read last. `rest`: what is seldom asked for, as JSON."""

    __tablename__ = "appointments"
    __table_args__ = (UniqueConstraint("calendar_id", "href", "uid"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    calendar_id: Mapped[str] = mapped_column(ForeignKey("calendars.id", ondelete="CASCADE"))
    href: Mapped[str]
    etag: Mapped[str]
    uid: Mapped[str]
    title: Mapped[str]
    place: Mapped[str]
    rule: Mapped[str]
    is_free: Mapped[bool]
    rest: Mapped[str]


class AppointmentDateTable(Table):
    """One date of an appointment. `key`: which of its series, "" for one that stands alone; `day`: of a whole day."""

    __tablename__ = "appointment_dates"
    __table_args__ = (Index("ix_appointment_dates_calendar_id_starts_at", "calendar_id", "starts_at"),)
    appointment_id: Mapped[str] = mapped_column(ForeignKey("appointments.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    calendar_id: Mapped[str] = mapped_column(ForeignKey("calendars.id", ondelete="CASCADE"))
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    day: Mapped[str] = mapped_column(default="")
    last_day: Mapped[str] = mapped_column(default="")
    title: Mapped[str | None]
    place: Mapped[str | None]
