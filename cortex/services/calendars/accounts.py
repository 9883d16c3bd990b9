"""Connects accounts with calendars and address books: tried before they are kept; what may be done with each calendar.

Passwords and secret addresses are sealed among the person's secrets. A server inside the network is reached only where
an admin named it (`CORTEX_CALENDAR_SERVERS`); any public one may be named by everybody.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.clock import Clock
from cortex.base.crypto import Vault
from cortex.base.errors import ConfigError, Conflict, ServiceDown, UserError
from cortex.base.ids import new_id
from cortex.base.user import User
from cortex.integrations.dav.server import DavServer, server_at
from cortex.integrations.dav.values import Account, Collection, CollectionChanges, Resource
from cortex.storage.appointments import AppointmentsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.calendars import USUAL, Access, CalendarsRepository, SharedAs, account_key
from cortex.storage.calendars import CalendarAccountRow as CalendarAccountRow
from cortex.storage.calendars import CalendarRow as CalendarRow
from cortex.storage.contacts import AddressBookRow, AddressBooksRepository
from cortex.storage.db import Database
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.secrets import SecretsRepository
from cortex.storage.tool_settings import ToolSettingsRepository

ACCOUNTS_MOST = 10
TITLE_CHARACTERS = 80
LOST_KEY = "The password of this account cannot be read any more. Connect it again."
ADDRESS_KINDS = ("webcal", "webcals")


class DavConnection(Protocol):
    """A server that is spoken with: `integrations/dav/client.py`, with what it has for the person."""

    async def account(self) -> Account:
        """Everything that the person has there."""
        ...

    async def changes(self, url: str, token: str) -> CollectionChanges:
        """Return what changed in a calendar."""
        ...

    async def resources(self, url: str, kind: str, hrefs: Sequence[str]) -> Sequence[Resource]:
        """The data of these."""
        ...

    async def get(self, url: str, *, most_bytes: int = 1_000_000) -> Resource:
        """One resource."""
        ...

    async def put(self, url: str, data: str, *, media: str, etag: str) -> str:
        """Write one; its new version."""
        ...

    async def delete(self, url: str, *, etag: str) -> None:
        """Remove one."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class CalendarAccounts(Struct, frozen=True, kw_only=True):
    """The accounts of people. `connect`: opens a server; `inside`: the servers in the network that an admin named."""

    db: Database
    vault: Vault
    clock: Clock
    connect: Callable[[DavServer], DavConnection]
    inside: Callable[[], frozenset[tuple[str, int]]]
    changed: Callable[[], None]

    async def list(self, user: User) -> Sequence[tuple[CalendarAccountRow, Sequence[CalendarRow]]]:
        """Their accounts, each with its calendars."""
        repository = self.db.repository(CalendarsRepository, user.id)
        return [(one, await repository.of_account(one.id)) for one in await repository.accounts()]

    async def add_server(self, user: User, address: str, username: str, password: str) -> str:
        """Connect a server, once it has answered; the account's id. UserError, ToolFailed, in words."""
        server = server_at(address, username, password, self.inside())
        if not username.strip() or not password:
            raise UserError("Enter the name and the password, best an app password, of your account there.")
        connection = self.connect(server)
        try:
            found = await connection.account()
        finally:
            await connection.close()
        account = self._account(user, "caldav", server.host, server.url)
        addresses = ",".join(found.addresses)
        account = replace(account, username=username.strip(), addresses=addresses, schedules=found.schedules)
        await self._keep(user, account, found.collections, password)
        return account.id

    async def add_address(self, user: User, address: str, title: str) -> str:
        """Connect the address of a calendar that is only read (ICS); the account's id. UserError for what is none."""
        text = address.strip()
        scheme, mark, rest = text.partition("://")
        server = server_at(
            f"https://{rest}" if mark and scheme.lower() in ADDRESS_KINDS else text, "", "", self.inside()
        )
        name = " ".join(title.split())[:TITLE_CHARACTERS] or server.host
        account = self._account(user, "ics", name, f"{urlsplit(server.url).scheme}://{server.host}")
        await self._keep(user, account, [Collection(url="", name=name, can_write=False)], server.url)
        return account.id

    async def server(self, owner_id: str, account: CalendarAccountRow) -> DavServer:
        """The server of an account, with its key. ConfigError where that cannot be read any more."""
        sealed = await self.db.repository(SecretsRepository, owner_id).get(account_key(account.id))
        if sealed is None:
            raise ConfigError(LOST_KEY)
        key = str(json.loads(await asyncio.to_thread(self.vault.unseal, sealed)))
        url, password = (key, "") if account.kind == "ics" else (account.url, key)
        return server_at(url, account.username, password, self.inside())

    async def connection(self, owner_id: str, account_id: str) -> DavConnection:
        """A connection to the server of an account, which whoever asks for it closes. ServiceDown without its key."""
        account = await self.db.repository(CalendarsRepository, owner_id).account(account_id)
        try:
            return self.connect(await self.server(owner_id, account))
        except ConfigError as error:
            raise ServiceDown(error.message) from error

    async def set_access(self, user: User, calendar_id: str, access: Access, shared_as: SharedAs) -> None:
        """Say what Cortex may do with a calendar, and what others here see of it. UserError where it is read only."""
        async with self.db.transaction(user.id) as repository:
            row = await repository(CalendarsRepository).calendar(calendar_id)
            if access == "write" and not row.can_write:
                raise UserError("The server lets nobody write there: choose to read it.")
            shared = "" if access == "off" else shared_as
            await repository(CalendarsRepository).set_calendar(calendar_id, access=access, shared_as=shared)
            if "off" in (access, row.access):  # nothing stays here, nor what a reading that went on had left behind it
                await repository(AppointmentsRepository).forget(calendar_id)
                await repository(CalendarsRepository).set_calendar(calendar_id, token="", unfolded_until=None)
            if shared != row.shared_as:
                detail = {"calendar": calendar_id, "as": shared}
                await repository(AuditRepository).add(user.id, "calendar.shared", row.name, detail)
            await repository(ToolSettingsRepository).changed()
        if row.access == "off" != access:
            await self.refresh(user, row.account_id)

    async def set_usual(self, user: User, calendar_id: str) -> None:
        """Have new appointments go into this calendar where none is named; UserError where Cortex may not write."""
        row = await self.db.repository(CalendarsRepository, user.id).calendar(calendar_id)
        if row.access != "write":
            raise UserError("Choose one of your calendars that Cortex may write to.", field="usual")
        await self.db.repository(PreferencesRepository, user.id).set(USUAL, calendar_id)

    async def refresh(self, user: User, account_id: str) -> None:
        """Have the server asked now what changed."""
        await self.db.repository(CalendarsRepository, user.id).set_account(account_id, next_at=self.clock())
        self.changed()

    async def remove(self, user: User, account_id: str) -> None:
        """Forget an account, its key, and all that was read from it. What stands on the server stays there."""
        async with self.db.transaction(user.id) as repository:
            account = await repository(CalendarsRepository).account(account_id)
            await repository(CalendarsRepository).remove_account(account_id)
            await repository(AuditRepository).add(user.id, "calendar.removed", account.title, {"account": account_id})
            await repository(ToolSettingsRepository).changed()
            await repository(SecretsRepository).remove(account_key(account_id))

    def _account(self, user: User, kind: Literal["caldav", "ics"], title: str, url: str) -> CalendarAccountRow:
        now = self.clock()
        return CalendarAccountRow(
            id=new_id(self.clock),
            owner_id=user.id,
            kind=kind,
            title=title,
            url=url,
            username="",
            addresses="",
            schedules=False,
            created_at=now,
            next_at=now,
            worked_at=None,
            failure="",
            failures=0,
        )

    async def _keep(self, user: User, account: CalendarAccountRow, found: Sequence[Collection], key: str) -> None:
        sealed = await asyncio.to_thread(self.vault.seal, json.dumps(key))
        rows = [calendar_row(account, one, new_id(self.clock)) for one in found if not one.is_contacts]
        books = [book_row(account, one, new_id(self.clock)) for one in found if one.is_contacts]
        async with self.db.transaction(user.id) as repository:
            calendars = repository(CalendarsRepository)
            known = await calendars.accounts()
            if len(known) >= ACCOUNTS_MOST:
                raise UserError(f"You can connect {ACCOUNTS_MOST} accounts. Remove one first.")
            same = (account.kind, account.url, account.username)
            if account.kind == "caldav" and same in {(one.kind, one.url, one.username) for one in known}:
                raise Conflict("This account is connected already.")
            await calendars.add(account, rows)
            await repository(AddressBooksRepository).add(books)
            await repository(ToolSettingsRepository).changed()  # whoever has a calendar is offered its tools
            await repository(SecretsRepository).put(account_key(account.id), sealed)
            detail = {"account": account.id, "kind": account.kind}
            await repository(AuditRepository).add(user.id, "calendar.connected", account.title, detail)
        self.changed()


def calendar_row(account: CalendarAccountRow, found: Collection, id: str) -> CalendarRow:
    """A calendar as it comes to an account: read, and written where the server lets us."""
    return CalendarRow(
        id=id,
        owner_id=account.owner_id,
        account_id=account.id,
        url=found.url,
        name=found.name,
        color=found.color,
        can_write=found.can_write,
        access="write" if found.can_write else "read",
        shared_as="",
        token="",
        zone="",
        unfolded_until=None,
        worked_at=None,
    )


def book_row(account: CalendarAccountRow, found: Collection, id: str) -> AddressBookRow:
    """An address book as it comes to an account: read, and written where the server lets us."""
    return AddressBookRow(
        id=id,
        owner_id=account.owner_id,
        account_id=account.id,
        url=found.url,
        name=found.name,
        can_write=found.can_write,
        access="write" if found.can_write else "read",
        is_shared=False,
        token="",
        worked_at=None,
    )
