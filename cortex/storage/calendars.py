"""The calendars of people: accounts on servers, and each calendar there with what may be done with it.

Keys of accounts stand among the person's secrets (`storage/secrets.py`), under `account_key`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, cast

from msgspec import Struct
from sqlalchemy import Select, and_, or_, select, update

from cortex.storage.jobs import AllJobsRepository
from cortex.storage.repository import Repository, SharedRepository, as_row, reading
from cortex.storage.schema import AccountTable, CalendarAccountTable, CalendarTable, PreferenceTable

Access = Literal["off", "busy", "read", "write"]  # what Cortex may do with a calendar: nothing, see when one is busy, …
SharedAs = Literal["", "busy", "read"]  # what the others of the household see of it
USUAL = "calendar.usual"  # the preference that names the calendar into which new appointments go
NO_ACCOUNT = "There is no such calendar account."
NO_CALENDAR = "There is no such calendar."


class CalendarAccountRow(Struct, frozen=True, kw_only=True):
    """An account. `next_at`: when it is asked again what changed; `failures`: in a row, in whose words `failure`.

    `schedules`: its server sends the invitations.
    """

    id: str
    owner_id: str
    kind: Literal["caldav", "ics"]
    title: str
    url: str
    username: str
    addresses: str
    schedules: bool
    created_at: datetime
    next_at: datetime
    worked_at: datetime | None
    failure: str
    failures: int


class CalendarRow(Struct, frozen=True, kw_only=True):
    """A calendar. `token`: from where it is asked what changed; `unfolded_until`: how far its series are unfolded.

    `zone`: in which days and floating times are meant in its copy.
    """

    id: str
    owner_id: str
    account_id: str
    url: str
    name: str
    color: str
    can_write: bool
    access: Access
    shared_as: SharedAs
    token: str
    zone: str
    unfolded_until: datetime | None
    worked_at: datetime | None


class SeenCalendar(Struct, frozen=True, kw_only=True):
    """A calendar as one person sees it. `owner`: whose it is, "" for their own; `access`: what they may do with it.

    `kind`: of its account; `worked_at`: as of when its local copy is; `failure`: why it is no newer, or "". `is_usual`:
    the person chose it for new appointments.
    """

    id: str
    owner_id: str
    owner: str
    account_id: str
    account: str
    kind: Literal["caldav", "ics"]
    url: str
    name: str
    color: str
    can_write: bool
    access: Access
    shared_as: SharedAs
    worked_at: datetime | None
    schedules: bool
    failure: str
    is_usual: bool = False


def account_key(account_id: str) -> str:
    """Under which name an account's password or secret address stands among its person's secrets."""
    return f"calendar:{account_id}"


class CalendarsRepository(Repository):
    """The calendars of one person, and those that others let them see."""

    @reading
    async def accounts(self) -> Sequence[CalendarAccountRow]:
        """The person's accounts, the oldest first."""
        return await self._where(CalendarAccountRow, CalendarAccountTable, "created_at")

    @reading
    async def account(self, id: str) -> CalendarAccountRow:
        """One of theirs; NotFound."""
        return await self._get(CalendarAccountRow, CalendarAccountTable, id, NO_ACCOUNT)

    @reading
    async def of_account(self, account_id: str) -> Sequence[CalendarRow]:
        """The calendars of an account, by name."""
        return await self._where(CalendarRow, CalendarTable, "name", account_id=account_id)

    @reading
    async def calendar(self, id: str) -> CalendarRow:
        """One of theirs; NotFound."""
        return await self._get(CalendarRow, CalendarTable, id, NO_CALENDAR)

    @reading
    async def seen(self) -> Sequence[SeenCalendar]:
        """Every calendar that they may see: their own that are on, the usual one first, then others', by owner."""
        made: list[SeenCalendar] = []
        for row in (await self.session.execute(self._seen())).mappings():
            values = {name: row[name] for name in SeenCalendar.__struct_fields__ if name in row}
            is_own, usual = row["owner_id"] == self.owner_id, (row["usual"] or {}).get("value")
            values |= {"owner": "" if is_own else row["owner"], "is_usual": is_own and usual == row["id"]}
            made.append(SeenCalendar(**values))
        ranked = sorted(made, key=lambda one: (one.owner != "", one.owner, not one.is_usual, one.name.casefold()))
        return [self._as_seen(one) for one in ranked]

    async def add(self, account: CalendarAccountRow, calendars: Sequence[CalendarRow]) -> None:
        """Keep an account with its calendars."""
        await self._add(CalendarAccountTable, [as_row(account)])
        await self._add(CalendarTable, [as_row(one) for one in calendars])

    async def add_calendars(self, calendars: Sequence[CalendarRow]) -> None:
        """Keep calendars that came to an account of theirs."""
        await self._add(CalendarTable, [as_row(one) for one in calendars])

    async def set_account(self, id: str, **values: Any) -> None:
        """Change an account; NotFound."""
        change = self._change(CalendarAccountTable).where(CalendarAccountTable.id == id).values(**values)
        await self._must_touch(change, CalendarAccountTable.id, NO_ACCOUNT)

    async def set_calendar(self, id: str, **values: Any) -> None:
        """Change a calendar; NotFound."""
        change = self._change(CalendarTable).where(CalendarTable.id == id).values(**values)
        await self._must_touch(change, CalendarTable.id, NO_CALENDAR)
        if values.keys() & {"access", "shared_as"}:  # others see it from now on, or no more
            await AllJobsRepository(self.session, clock=self.clock).look_again()

    async def remove_account(self, id: str) -> None:
        """Forget an account with all that was read from it; NotFound."""
        remove = self._remove(CalendarAccountTable).where(CalendarAccountTable.id == id)
        await self._must_touch(remove, CalendarAccountTable.id, NO_ACCOUNT)
        await AllJobsRepository(self.session, clock=self.clock).look_again()

    async def remove_calendar(self, id: str) -> None:
        """Forget a calendar that the server has no more; NotFound."""
        remove = self._remove(CalendarTable).where(CalendarTable.id == id)
        await self._must_touch(remove, CalendarTable.id, NO_CALENDAR)
        await AllJobsRepository(self.session, clock=self.clock).look_again()

    def _seen(self) -> Select[Any]:
        columns = [
            getattr(CalendarTable, name) for name in SeenCalendar.__struct_fields__ if hasattr(CalendarTable, name)
        ]
        is_usual = and_(PreferenceTable.owner_id == self.owner_id, PreferenceTable.key == USUAL)
        is_own, is_given = self._reach(CalendarTable), and_(CalendarTable.shared_as != "", AccountTable.is_active)
        return (
            select(
                *columns,
                AccountTable.name.label("owner"),
                CalendarAccountTable.title.label("account"),
                CalendarAccountTable.schedules,
                CalendarAccountTable.kind,
                CalendarAccountTable.failure,
                PreferenceTable.value.label("usual"),
            )
            .join(CalendarAccountTable, CalendarAccountTable.id == CalendarTable.account_id)
            .join(AccountTable, AccountTable.id == CalendarTable.owner_id)
            .outerjoin(PreferenceTable, is_usual)
            .where(CalendarTable.access != "off", or_(is_own, is_given))
        )

    def _as_seen(self, row: SeenCalendar) -> SeenCalendar:
        """With what this person may do: of another's no more than it is shared for, and no word of its server."""
        if not row.owner:
            return row
        is_busy = "busy" in (row.shared_as, row.access)
        values = {name: getattr(row, name) for name in SeenCalendar.__struct_fields__}
        return SeenCalendar(
            **{**values, "access": "busy" if is_busy else "read", "can_write": False, "url": "", "account": ""}
        )


class DueCalendarsRepository(SharedRepository):
    """The accounts of everybody: whose calendars are to be asked what changed, and whose cannot be."""

    @reading
    async def next_at(self) -> datetime | None:
        """When the first account is due; None where there is none."""
        statement = self._of_active(CalendarAccountTable.next_at).order_by(CalendarAccountTable.next_at).limit(1)
        return cast("datetime | None", (await self.session.execute(statement)).scalar_one_or_none())

    @reading
    async def due(self, most: int) -> Sequence[tuple[str, str]]:
        """Owner and id of accounts that are due now, the longest first."""
        statement = (
            self._of_active(CalendarAccountTable.owner_id, CalendarAccountTable.id)
            .where(CalendarAccountTable.next_at <= self.clock())
            .order_by(CalendarAccountTable.next_at)
            .limit(most)
        )
        return [(row[0], row[1]) for row in (await self.session.execute(statement)).all()]

    async def take(self, id: str, until: datetime) -> bool:
        """Take a due account for oneself until then, so that no other process asks it as well; whether it was free."""
        change = (
            update(CalendarAccountTable)
            .execution_options(synchronize_session=False)
            .where(CalendarAccountTable.id == id, CalendarAccountTable.next_at <= self.clock())
            .values(next_at=until)
        )
        return bool(await self._touched(change, CalendarAccountTable.id))

    @reading
    async def failing(self) -> tuple[int, Sequence[str]]:
        """Return how many accounts there are, and the people of those that failed twice or more in a row."""
        owner, failures = AccountTable.name, CalendarAccountTable.failures
        rows = (await self.session.execute(self._of_active(owner, failures).order_by(owner))).all()
        return len(rows), sorted({row[0] for row in rows if row[1] > 1})

    def _of_active(self, *columns: Any) -> Select[Any]:
        joined = select(*columns).join(AccountTable, AccountTable.id == CalendarAccountTable.owner_id)
        return joined.where(AccountTable.is_active)


class CalendarSeersRepository(SharedRepository):
    """The people who see a calendar here at all."""

    @reading
    async def addresses(self, account_id: str) -> frozenset[str]:
        """The e-mail addresses by which the person of an account is invited there, in small letters."""
        table = CalendarAccountTable
        statement = select(table.addresses, table.username).where(table.id == account_id)
        row = (await self.session.execute(statement)).first()
        named = [*row[0].split(","), row[1] if "@" in row[1] else ""] if row else []
        return frozenset(one.lower() for one in named if one)

    @reading
    async def owners(self) -> tuple[frozenset[str], bool]:
        """Return whoever has a calendar that is on; and whether one of them is shared, which everybody sees."""
        statement = (
            select(CalendarTable.owner_id, CalendarTable.shared_as)
            .join(AccountTable, AccountTable.id == CalendarTable.owner_id)
            .where(CalendarTable.access != "off", AccountTable.is_active)
            .distinct()
        )
        rows = (await self.session.execute(statement)).all()
        return frozenset(row[0] for row in rows), any(row[1] for row in rows)
