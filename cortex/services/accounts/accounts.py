"""Who may come in: set-up links, sign-in, logins, passwords. Who there is at all stands in `people.py`.

Throttling counts a try before its password is looked at, by account and by address, and never touches a live login.
"""

import asyncio
import logging
import secrets
from collections.abc import Collection, Sequence
from datetime import timedelta

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.address import network_of
from cortex.base.clock import Clock, now
from cortex.base.errors import DatabaseUnavailable, NotAllowed, NotFound, Throttled
from cortex.base.ids import new_id
from cortex.base.settings import Settings
from cortex.base.user import User
from cortex.services.accounts.credentials import KINDS as KINDS
from cortex.services.accounts.credentials import Credential, credentials_of, end_credentials
from cortex.services.accounts.passwords import Passwords, refuse_weak
from cortex.services.accounts.people import INVITED_BY, Listener, People, as_user, refuse_odd_name
from cortex.storage import accounts as rows
from cortex.storage.accounts import AccountRow, AllLoginsRepository, LoginsRepository, name_key, token_hash
from cortex.storage.accounts import LoginRow as LoginRow
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database, Opener
from cortex.storage.preferences import PreferencesRepository

LOGIN_LIFE = timedelta(days=30)
CONFIRMED_FOR = timedelta(minutes=10)
SLIDE_EVERY = timedelta(minutes=5)
TRY_WINDOW = timedelta(minutes=15)
WRONG = "The name or the password is wrong."
DEAD_LINK = "This link was already used or has expired. `cortex user setup-link` prints a new one."

log = logging.getLogger(__name__)


class LoginView(Struct, frozen=True, kw_only=True):
    """A signed-in browser and its user. `is_confirmed`: the password was given within the last 10 minutes."""

    user: User
    login_id: str
    is_confirmed: bool


class Guest(Struct, frozen=True, kw_only=True):
    """Whose a one-time link is. `invited_by`: a name, "" where that is not known; `is_invited`: not a reset."""

    name: str
    is_invited: bool
    invited_by: str


class Accounts(People):
    """Sign-in for the accounts of the server, besides all that `People` knows of them."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        clock: Clock = now,
        *,
        passwords: Passwords | None = None,
        access_ended: Sequence[Listener] = (),
        logged_out: Sequence[Listener] = (),
    ) -> None:
        """logged_out: called with the id of a user one of whose browsers logged out; their work goes on."""
        super().__init__(db, settings.time_zone, clock, passwords or Passwords(), access_ended)
        self._logged_out = logged_out
        self._seen: set[str] = set()
        self._was_seen = asyncio.Event()

    # --- set-up links

    async def has_users(self) -> bool:
        """Tell whether set-up is over."""
        return await self._db.repository(rows.AccountsRepository).count() > 0

    async def setup_link(self) -> str:
        """The token of a link that makes the first admin, good for 15 minutes; earlier ones end. NotAllowed later."""
        if await self.has_users():
            raise NotAllowed("An account already exists. `cortex user reset NAME` creates a link for a new password.")
        return await self._new_link(None)

    async def check_setup(self, token: str) -> None:
        """NotAllowed unless this is the link of the first start, unused, and there is no account yet. It stays good."""
        link = await self._db.repository(rows.AccountsRepository).link(token)
        if link is None or link.account_id is not None or await self.has_users():
            raise NotAllowed(DEAD_LINK)

    async def guest(self, token: str) -> Guest | None:
        """Return whose link this is; None for one that makes the first admin, or that nobody can use any more."""
        accounts = self._db.repository(rows.AccountsRepository)
        link = await accounts.link(token)
        if link is None or link.account_id is None:
            return None
        account = await accounts.get(link.account_id)
        by = await self._db.repository(PreferencesRepository, account.id).get(INVITED_BY, "")
        hosts = {one.id: one.name for one in await accounts.list()} if by else {}
        return Guest(name=account.name, is_invited=account.is_invited, invited_by=hosts.get(str(by), ""))

    async def redeem_setup(self, token: str, name: str, password: str, *, keep: Collection[str] = ()) -> User:
        """Use a link: make the first admin, or give the account it was made for this password (`name` is unread then).

        keep: kinds of what lets somebody in as this person (`credentials.py`) that do not end with the old password.
        NotAllowed for a link that is used up; UserError, with the link still good, for a poor name or password.
        """
        link = await self._db.repository(rows.AccountsRepository).link(token)
        if link is None:
            raise NotAllowed(DEAD_LINK)
        if link.account_id is not None:
            return await self._redeem_reset(token, link.account_id, password, keep)
        refuse_odd_name(name)
        refuse_weak(password, name)
        hashed = await self._passwords.hash(password)
        async with self._db.transaction() as repository:
            accounts = repository(rows.AccountsRepository)
            if not await accounts.use_link(token) or await accounts.count():
                raise NotAllowed(DEAD_LINK)
            account = await accounts.add(new_id(self._clock), name, "admin", hashed, self._time_zone)
            await repository(AuditRepository).add(account.id, "user.setup", account.name)
        return as_user(account)

    async def _redeem_reset(self, token: str, account_id: str, password: str, keep: Collection[str]) -> User:
        account = await self._db.repository(rows.AccountsRepository).get(account_id)
        refuse_weak(password, account.name)
        hashed = await self._passwords.hash(password)
        async with self._db.transaction(account.id) as repository:
            if not await repository(rows.AccountsRepository).use_link(token):
                raise NotAllowed(DEAD_LINK)
            await repository(rows.AccountsRepository).set_password(account.id, hashed)
            await end_credentials(repository, by=account.id, keep=({*keep} & {*KINDS}) - {"login"})
            await repository(AuditRepository).add(account.id, "user.password_by_link", account.name)
        await self.end_access(account.id)
        return as_user(account)

    # --- signing in and out

    async def login(self, name: str, password: str, address: str, agent: str, *, time_zone: str = "") -> str:
        """The token of a new login. NotAllowed when name or password are wrong, Throttled after too many tries.

        `time_zone`: as the browser names it; it becomes the person's while they have none of their own.
        """
        account = await self._db.repository(rows.AccountsRepository).named(name)
        account_key = f"account:{token_hash(name_key(name))}"
        if account and any(
            login.address == address for login in await self._db.repository(LoginsRepository, account.id).list()
        ):
            account_key += f":{address}"  # strangers' tries do not hold up the owner where the owner is signed in
        address_key = f"address:{network_of(address)}"
        async with self._db.transaction() as repository:
            accounts = repository(rows.AccountsRepository)
            wait_s = await accounts.try_now(address_key, 20, TRY_WINDOW, timedelta(minutes=15))
            wait_s = wait_s or await accounts.try_now(account_key, 6, TRY_WINDOW, timedelta(minutes=1))
        _refuse_while_waiting(wait_s)
        is_open = account is not None and account.is_active
        is_right = await self._passwords.check(account.password_hash if account and is_open else None, password)
        if account is None or not is_right:
            subject = account.name if account else "(no such account)"
            await self._db.repository(AuditRepository).add("", "login.failed", subject, {"address": address})
            raise NotAllowed(WRONG)
        await self._refresh_hash(account, password)
        await self._take_browsers_zone(account, time_zone)
        token, at = secrets.token_urlsafe(32), self._clock()
        async with self._db.transaction(account.id) as repository:
            login = await repository(LoginsRepository).add(new_id(self._clock), token, address, agent, at + LOGIN_LIFE)
            await repository(LoginsRepository).confirm(login.id, at + CONFIRMED_FOR)
            await repository(rows.AccountsRepository).forget_tries(account_key)
            await repository(rows.AccountsRepository).give_try_back(address_key)
            await repository(AuditRepository).add(
                account.id, "login", account.name, {"address": address, "login": login.id}
            )
        return token

    async def who(self, token: str) -> LoginView | None:
        """Return whose login this token opens, None for none; using it keeps it alive for another 30 days.

        That is written by `note_seen`: who reads a page waits for no writer.
        """
        at = self._clock()
        async with self._db.session_scope(reading=True) as session:
            login = await AllLoginsRepository(session, clock=self._clock).of_token(token)
            if login is None:
                return None
            account = await rows.AccountsRepository(session, clock=self._clock).get(login.owner_id)
        if at - login.seen_at > SLIDE_EVERY:
            self._seen.add(login.id)
            self._was_seen.set()
        is_confirmed = login.confirmed_until is not None and login.confirmed_until > at
        return LoginView(user=as_user(account), login_id=login.id, is_confirmed=is_confirmed)

    async def keep_logins(self) -> None:
        """Until cancelled: write down which logins are used. A database that does not answer hears of the next use."""
        while True:
            await self._was_seen.wait()
            self._was_seen.clear()
            try:
                await self.note_seen()
            except (DatabaseUnavailable, SQLAlchemyError) as error:
                log.warning("logins: cannot note which are used: %s", error)

    async def note_seen(self) -> None:
        """Let the logins that were used since the last time live for another 30 days."""
        seen, self._seen = self._seen, set()
        if seen:
            await self._db.repository(AllLoginsRepository).slide(seen, self._clock() + LOGIN_LIFE)

    async def logout(self, token: str) -> None:
        """End this login, and what is open by it; a token that opens none is no error."""
        view = await self.who(token)
        if view is not None:
            await self._end(view.user, view.login_id, "logout")
            for listener in self._logged_out:
                await listener(view.user.id)

    async def confirm(self, token: str, password: str) -> None:
        """Note for 10 minutes that the person at this login knows the password. NotAllowed, Throttled like `login`."""
        view = await self._signed_in(token)
        await self._check_again(view, password)
        until = self._clock() + CONFIRMED_FOR
        async with self._db.transaction(view.user.id) as repository:
            await repository(LoginsRepository).confirm(view.login_id, until)
            await repository(AuditRepository).add(
                view.user.id, "login.confirmed", view.user.name, {"login": view.login_id}
            )

    async def logins(self, user: User) -> Sequence[LoginRow]:
        """The user's signed-in browsers, the latest seen first."""
        return await self._db.repository(LoginsRepository, user.id).list()

    async def revoke(self, user: User, login_id: str) -> None:
        """End one of the user's logins; NotFound when it is not there."""
        if not await self._end(user, login_id, "login.revoked"):
            raise NotFound("This login does not exist; it may have ended already.")
        await self.end_access(user.id)

    async def credentials(self, user: User) -> Sequence[Credential]:
        """All that lets somebody in as this user now, logins first."""
        async with self._db.read_transaction(user.id) as repository:
            return await credentials_of(repository)

    async def sign_out_everywhere(self, token: str) -> str:
        """End all that lets somebody in as this user, but for the login of this token; its new token.

        The old one opens nothing any more: somebody may have copied it.
        """
        view = await self._signed_in(token)
        async with self._db.transaction(view.user.id) as repository:
            await end_credentials(repository, by=view.user.id, keep={f"login:{view.login_id}"})
            renewed = await self._renewed(repository, view)
        await self.end_access(view.user.id)
        return renewed

    async def change_password(self, token: str, old: str, new: str, *, keep: Collection[str] = ()) -> str:
        """Take another password, known the old one; all else that lets somebody in ends, but this login and `keep`.

        keep: keys of credentials (`credentials.py`). The login's new token, as of `sign_out_everywhere`.
        """
        view = await self._signed_in(token)
        refuse_weak(new, view.user.name)
        await self._check_again(view, old)
        hashed = await self._passwords.hash(new)
        async with self._db.transaction(view.user.id) as repository:
            await repository(rows.AccountsRepository).set_password(view.user.id, hashed)
            await end_credentials(repository, by=view.user.id, keep={*keep, f"login:{view.login_id}"} - set(KINDS))
            renewed = await self._renewed(repository, view)
            await repository(AuditRepository).add(view.user.id, "user.password", view.user.name)
        await self.end_access(view.user.id)
        return renewed

    async def sweep(self) -> None:
        """Forget logins, links and counts whose time is up; once a day is enough."""
        await self._db.repository(AllLoginsRepository).sweep()

    async def _signed_in(self, token: str) -> LoginView:
        view = await self.who(token)
        if view is None:
            raise NotAllowed("You are logged out. Log in again.")
        return view

    async def _renewed(self, repository: Opener, view: LoginView) -> str:
        token = secrets.token_urlsafe(32)
        await repository(LoginsRepository).renew(view.login_id, token)
        return token

    async def _check_again(self, view: LoginView, password: str) -> None:
        key = f"confirm:{view.login_id}"
        accounts = self._db.repository(rows.AccountsRepository)
        _refuse_while_waiting(await accounts.try_now(key, 5, TRY_WINDOW, timedelta(minutes=1)))
        account = await accounts.get(view.user.id)
        if not await self._passwords.check(account.password_hash, password):
            await self._db.repository(AuditRepository).add(view.user.id, "login.confirm_failed", view.user.name)
            raise NotAllowed("The password is wrong.")
        await accounts.forget_tries(key)

    async def _refresh_hash(self, account: AccountRow, password: str) -> None:
        if account.password_hash and self._passwords.is_outdated(account.password_hash):
            await self._db.repository(rows.AccountsRepository).set_password(
                account.id, await self._passwords.hash(password)
            )

    async def _end(self, user: User, login_id: str, action: str) -> bool:
        async with self._db.transaction(user.id) as repository:
            was_there = await repository(LoginsRepository).end(login_id)
            if was_there:
                await repository(AuditRepository).add(user.id, action, user.name, {"login": login_id})
        return was_there


def _refuse_while_waiting(wait_s: float) -> None:
    if wait_s:
        raise Throttled(f"Too many tries. Wait {int(wait_s) + 1} seconds, then try again.", wait_s=wait_s)
