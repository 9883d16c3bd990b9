"""Who there is: accounts, their ranks, how one comes to be. The admin's page and the command line call it."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from msgspec import Struct

from cortex.base.clock import Clock
from cortex.base.errors import Conflict, NotAllowed, NotFound, UserError
from cortex.base.ids import new_id
from cortex.base.user import Rank, User
from cortex.services.accounts.credentials import end_credentials
from cortex.services.accounts.passwords import Passwords, refuse_weak
from cortex.services.zones import is_zone, zone_named
from cortex.storage import accounts as rows
from cortex.storage.accounts import AccountRow as AccountRow
from cortex.storage.accounts import LoginsRepository, name_key
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.tool_settings import ToolSettingsRepository

LINK_LIFE = timedelta(minutes=15)
INVITATION_LIFE = timedelta(days=1)  # it is handed on, and whoever gets it may be asleep
DELETED_BY = "account.deleted_by"  # among the preferences of who is to go: the id of who ordered it
INVITED_BY = "account.invited_by"  # the id of who did, for the page of the invitation
OWN_ZONE = "time_zone.own"  # the time zone was chosen, or taken from the browser: no login changes it any more

Listener = Callable[[str], Awaitable[None]]


class Invitation(Struct, frozen=True, kw_only=True):
    """A new account, and the token of the link that sets its password ("" when it has one)."""

    user: User
    token: str


class People:
    """The people of the server. `by` is everywhere the id of the acting user, "" for the command line."""

    def __init__(
        self, db: Database, time_zone: str, clock: Clock, passwords: Passwords, access_ended: Sequence[Listener] = ()
    ) -> None:
        """`access_ended`: called with the id of a user whose logins ended or whose rank changed."""
        self._db = db
        self._time_zone = time_zone
        self._clock = clock
        self._passwords = passwords
        self._listeners = access_ended

    async def user(self, user_id: str) -> User:
        """The user of this id; NotFound when there is none or the account is closed."""
        account = await self._db.repository(rows.AccountsRepository).get(user_id)
        if not account.is_active:
            raise NotFound("This account is closed.")
        return as_user(account)

    async def named(self, name: str) -> User:
        """The user of this name, in any spelling; NotFound when there is none."""
        return as_user(await self._account(name))

    async def users(self) -> Sequence[User]:
        """Everybody whose account is open, by name."""
        return [
            as_user(account)
            for account in await self._db.repository(rows.AccountsRepository).list()
            if account.is_active
        ]

    async def all_accounts(self) -> Sequence[AccountRow]:
        """Every account, closed ones too, for the admin's page and the command line."""
        return await self._db.repository(rows.AccountsRepository).list()

    async def add_user(self, name: str, rank: Rank, password: str | None = None, *, by: str = "") -> Invitation:
        """A new account; without a password comes the token of a link that sets one, good for a day. `by`: who acts."""
        refuse_odd_name(name)
        hashed = None
        if password is not None:
            refuse_weak(password, name)
            hashed = await self._passwords.hash(password)
        async with self._db.transaction() as repository:
            account = await repository(rows.AccountsRepository).add(
                new_id(self._clock), name, rank, hashed, self._time_zone
            )
            await repository(AuditRepository).add(by, "user.added", account.name, {"rank": rank})
        if by:
            await self._db.repository(PreferencesRepository, account.id).set(INVITED_BY, by)
        return Invitation(
            user=as_user(account), token="" if hashed else await self._new_link(account.id, INVITATION_LIFE)
        )

    async def reset(self, name: str, *, by: str = "") -> str:
        """The token of a link, good for 15 minutes, that gives this account another password.

        When it is used, all ends that lets somebody in as this person, but what they choose to keep.
        """
        account = await self._account(name)
        token = await self._new_link(account.id)
        await self._db.repository(AuditRepository).add(by, "user.reset", account.name)
        return token

    async def set_rank(self, name: str, rank: Rank, *, by: str = "") -> User:
        """Make it an admin or a member; its logins end. NotAllowed for the last admin."""
        return await self._alter(name, "user.rank", by, rank=rank)

    async def set_active(self, name: str, on: bool, *, by: str = "") -> User:
        """Open or close an account; its data stays. NotAllowed to close the last admin's.

        Closed, all ends that lets somebody in as this person (`credentials.py`); opened again, they begin with a login.
        """
        return await self._alter(name, "user.opened" if on else "user.closed", by, is_active=on)

    async def set_time_zone(self, user: User, time_zone: str) -> User:
        """Say where the user lives: an IANA name or a city. UserError when it names no zone, or several."""
        await self._keep_time_zone(user.id, zone_named(time_zone))
        return await self.user(user.id)

    async def _take_browsers_zone(self, account: AccountRow, time_zone: str) -> None:
        """Take the zone a browser names for an account that still has the default; a name that is none is ignored."""
        is_default = account.time_zone == self._time_zone
        if (
            not is_zone(time_zone)
            or not is_default
            or await self._db.repository(PreferencesRepository, account.id).get(OWN_ZONE)
        ):
            return
        await self._keep_time_zone(account.id, time_zone)

    async def _keep_time_zone(self, user_id: str, time_zone: str) -> None:
        async with self._db.transaction(user_id) as repository:
            await repository(rows.AccountsRepository).set_time_zone(user_id, time_zone)
            await repository(PreferencesRepository).set(OWN_ZONE, True)

    async def _alter(
        self, name: str, action: str, by: str, *, rank: Rank | None = None, is_active: bool | None = None
    ) -> User:
        account = await self._account(name)
        async with self._db.transaction(account.id) as repository:
            accounts = repository(rows.AccountsRepository)
            if is_active and await repository(PreferencesRepository).get(DELETED_BY):
                raise Conflict(f"{account.name!r} is being deleted and part of it is gone. Delete it again to finish.")
            is_leaving = account.rank == "admin" and account.is_active and (rank == "member" or is_active is False)
            if is_leaving and not await accounts.other_admins(account.id):
                raise NotAllowed(f"{account.name!r} is the last admin. Make someone else an admin first.")
            if rank is not None:
                await accounts.set_rank(account.id, rank)
            if is_active is not None:
                await accounts.set_active(account.id, is_active)
                await repository(ToolSettingsRepository).changed()  # others may have tools for what this person shares
            if is_active is False:
                await end_credentials(repository, by=by)
            else:
                await repository(LoginsRepository).end_all()
            await repository(AuditRepository).add(by, action, account.name, {"rank": rank} if rank else None)
            changed = await accounts.get(account.id)
        await self.end_access(account.id)
        return as_user(changed)

    async def _account(self, name: str) -> AccountRow:
        account = await self._db.repository(rows.AccountsRepository).named(name)
        if account is None:
            raise NotFound(f"There is no account named {name[:60]!r}.")
        return account

    async def _new_link(self, account_id: str | None, life: timedelta = LINK_LIFE) -> str:
        token = secrets.token_urlsafe(32)
        await self._db.repository(rows.AccountsRepository).add_link(token, account_id, self._clock() + life)
        return token

    async def end_access(self, user_id: str) -> None:
        """Tell whoever holds streams and work of this account that its logins ended."""
        for listener in self._listeners:
            await listener(user_id)


def as_user(account: AccountRow) -> User:
    """The account as the rest of the server sees it."""
    return User(id=account.id, name=account.name, rank=account.rank, time_zone=account.time_zone)


def refuse_odd_name(name: str) -> None:
    """UserError for a name that is empty, too long or cannot be shown."""
    if not 1 <= len(name.strip()) <= 60 or not name_key(name).isprintable():
        raise UserError("A name has 1 to 60 letters, digits or symbols.", field="name")
