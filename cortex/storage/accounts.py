"""People, their signed-in browsers, one-time links and the count of tries. Rules about passwords are the service's."""

import hashlib
import unicodedata
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import Select, case, delete, func, insert, select, update

from cortex.base.errors import Conflict, NotFound
from cortex.base.user import Rank
from cortex.storage import kept
from cortex.storage.repository import Repository, SharedRepository, reading, selected
from cortex.storage.schema import (
    AccountTable,
    AttemptTable,
    BudgetTable,
    HaltTable,
    LoginTable,
    SetupLinkTable,
    SharedModelTable,
)


class AccountRow(Struct, frozen=True, kw_only=True):
    """A person's account; without `password_hash` nobody can sign in until a link was used."""

    id: str
    name: str
    name_key: str
    rank: Rank
    password_hash: str | None
    time_zone: str
    is_active: bool
    created_at: datetime

    @property
    def is_invited(self) -> bool:
        """Tell whether its person has not used the invitation yet."""
        return self.password_hash is None


class LoginRow(Struct, frozen=True, kw_only=True):
    """A signed-in browser. `confirmed_until`: the password was given again, good until then."""

    id: str
    owner_id: str
    address: str
    agent: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    confirmed_until: datetime | None


LinkPurpose = Literal["password", "device"]


class SetupLinkRow(Struct, frozen=True, kw_only=True):
    """The purpose of a one-time link: `account_id` None makes the first admin."""

    account_id: str | None
    expires_at: datetime


_ACCOUNTS = selected(AccountRow, AccountTable)
_GONE = "This account does not exist."


@cache
def _account() -> Select[Any]:
    return kept.whole(AccountRow, AccountTable).where(kept.columns(AccountTable).id == kept.given("id"))


@cache
def _login() -> Select[Any]:
    login, account = kept.columns(LoginTable), kept.columns(AccountTable)
    found = kept.whole(LoginRow, LoginTable).join(AccountTable.__table__, account.id == login.owner_id)
    is_it = (login.token_hash == kept.given("token_hash"), login.expires_at > kept.given("now"), account.is_active)
    return found.where(*is_it).limit(1)


def name_key(name: str) -> str:
    """The name as it must be unique: compatibility forms, case and surrounding blanks folded away."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def token_hash(token: str) -> str:
    """Return what is stored of a random token: SHA-256 is enough for 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class AccountsRepository(SharedRepository):
    """The accounts of the server."""

    @reading
    async def count(self) -> int:
        """Return how many accounts there are, inactive ones included."""
        return (await self.session.execute(select(func.count()).select_from(AccountTable))).scalar_one()

    @reading
    async def get(self, id: str) -> AccountRow:
        """The account; NotFound when there is none."""
        found = await self._row_of(AccountRow, _account(), id=id)
        if found is None:
            raise NotFound(_GONE)
        return found

    @reading
    async def named(self, name: str) -> AccountRow | None:
        """The account of this name, in any spelling of it."""
        return await self._first(AccountRow, _ACCOUNTS.where(AccountTable.name_key == name_key(name)))

    @reading
    async def list(self) -> Sequence[AccountRow]:
        """All accounts, by name."""
        return await self._all(AccountRow, _ACCOUNTS.order_by(AccountTable.name_key))

    async def add(self, id: str, name: str, rank: Rank, password_hash: str | None, time_zone: str) -> AccountRow:
        """A new account; Conflict when the name is taken."""
        values = {
            "id": id,
            "name": unicodedata.normalize("NFC", name).strip(),
            "name_key": name_key(name),
            "rank": rank,
            "password_hash": password_hash,
            "time_zone": time_zone,
            "created_at": self.clock(),
        }
        statement = self._upsert(AccountTable, values).on_conflict_do_nothing().returning(AccountTable.id)
        if (await self.session.execute(statement)).first() is None:
            raise Conflict(f"There is an account named {name!r} already.")
        return await self.get(id)

    async def set_password(self, id: str, password_hash: str | None) -> None:
        """Give it another password hash."""
        await self._set(id, password_hash=password_hash)

    async def set_rank(self, id: str, rank: Rank) -> None:
        """Make it an admin's or a member's."""
        await self._set(id, rank=rank)

    async def set_time_zone(self, id: str, time_zone: str) -> None:
        """Say which zone the person lives in."""
        await self._set(id, time_zone=time_zone)

    async def set_active(self, id: str, on: bool) -> None:
        """Let the person sign in, or no longer."""
        await self._set(id, is_active=on)

    @reading
    async def other_admins(self, id: str) -> int:
        """Return how many active admins there are besides this account."""
        statement = select(func.count()).where(
            AccountTable.id != id, AccountTable.rank == "admin", AccountTable.is_active
        )
        return (await self.session.execute(statement)).scalar_one()

    async def remove(self, id: str) -> None:
        """Delete the account with every row that is its own; what names it without being its own goes too."""
        await self.session.execute(delete(BudgetTable).where(BudgetTable.subject == id))
        await self.session.execute(delete(HaltTable).where(HaltTable.scope == id))
        await self.session.execute(delete(SharedModelTable).where(SharedModelTable.person_id == id))
        await self.session.execute(delete(AccountTable).where(AccountTable.id == id))

    # --- one-time links

    async def add_link(
        self, token: str, account_id: str | None, expires_at: datetime, purpose: LinkPurpose = "password"
    ) -> None:
        """Keep a link; older ones for the same purpose end with it."""
        same = (self._purpose(account_id), SetupLinkTable.purpose == purpose)
        await self.session.execute(delete(SetupLinkTable).where(*same))
        values = {"token_hash": token_hash(token), "account_id": account_id, "expires_at": expires_at}
        await self.session.execute(insert(SetupLinkTable), {**values, "purpose": purpose})

    async def forget_links(self, account_id: str) -> None:
        """Let no link for this account be used any more."""
        await self.session.execute(delete(SetupLinkTable).where(SetupLinkTable.account_id == account_id))

    @reading
    async def link(self, token: str, purpose: LinkPurpose = "password") -> SetupLinkRow | None:
        """Return whose an unused link in time is, None for any other, and for one of another purpose."""
        statement = selected(SetupLinkRow, SetupLinkTable).where(
            SetupLinkTable.purpose == purpose,
            SetupLinkTable.token_hash == token_hash(token),
            SetupLinkTable.used_at.is_(None),
            SetupLinkTable.expires_at > self.clock(),
        )
        return await self._first(SetupLinkRow, statement)

    async def use_link(self, token: str, purpose: LinkPurpose = "password") -> bool:
        """Use it up; False when it was used, is too old, for another purpose, or never was."""
        at = self.clock()
        change = (
            update(SetupLinkTable)
            .where(
                SetupLinkTable.token_hash == token_hash(token),
                SetupLinkTable.purpose == purpose,
                SetupLinkTable.used_at.is_(None),
                SetupLinkTable.expires_at > at,
            )
            .values(used_at=at)
        )
        return bool(await self._touched(change, SetupLinkTable.token_hash))

    # --- the count of tries

    async def try_now(self, key: str, free: int, window: timedelta, longest: timedelta) -> float:
        """Count a try under `key`; the seconds to wait when it is not to be heard (then it isn't counted), else 0.

        `free` tries pass at once; each further one within `window` doubles the wait before the next, up to `longest`.
        The count comes before the check of a password, so that many tries at one moment gain nothing.
        """
        at = self.clock()
        fresh = {"key": key, "count": 0, "last_at": at, "not_before": at}
        # The row must stand before it can be locked: else many first tries at one moment would all pass.
        await self.session.execute(self._upsert(AttemptTable, fresh).on_conflict_do_nothing())
        statement = select(AttemptTable.count, AttemptTable.last_at, AttemptTable.not_before)
        count, last_at, not_before = (
            await self.session.execute(statement.where(AttemptTable.key == key).with_for_update())
        ).one()
        if at < not_before:
            return float((not_before - at).total_seconds())
        count = count + 1 if at - last_at < window else 1
        wait = min(timedelta(seconds=2 ** min(count - free, 30)), longest) if count >= free else timedelta()
        await self.session.execute(
            update(AttemptTable).where(AttemptTable.key == key).values(count=count, last_at=at, not_before=at + wait)
        )
        return 0.0

    @reading
    async def has_to_wait(self, key: str) -> bool:
        """Tell whether a try under `key` would not be heard now."""
        statement = select(AttemptTable.key).where(AttemptTable.key == key, AttemptTable.not_before > self.clock())
        return (await self.session.execute(statement)).first() is not None

    async def give_try_back(self, key: str) -> None:
        """Uncount one try: it was a good one."""
        less = case((AttemptTable.count > 0, AttemptTable.count - 1), else_=0)
        change = update(AttemptTable).where(AttemptTable.key == key)
        await self.session.execute(change.values(count=less, not_before=self.clock()))

    async def forget_tries(self, key: str) -> None:
        """Begin to count anew: the right password came."""
        await self.session.execute(delete(AttemptTable).where(AttemptTable.key == key))

    def _purpose(self, account_id: str | None) -> Any:
        column = SetupLinkTable.account_id
        return column.is_(None) if account_id is None else column == account_id

    async def _set(self, id: str, **values: Any) -> None:  # Any: one of the columns' own types each
        change = update(AccountTable).where(AccountTable.id == id).values(**values)
        await self._must_touch(change, AccountTable.id, _GONE)


class LoginsRepository(Repository):
    """One user's signed-in browsers."""

    async def add(self, id: str, token: str, address: str, agent: str, expires_at: datetime) -> LoginRow:
        """Keep a new login under the hash of its token."""
        at = self.clock()
        values = {
            "id": id,
            "token_hash": token_hash(token),
            "address": address[:100],
            "agent": agent[:300],
            "created_at": at,
            "seen_at": at,
            "expires_at": expires_at,
        }
        await self.session.execute(self._insert(LoginTable, values))
        return await self._get(LoginRow, LoginTable, id, "This login does not exist.")

    @reading
    async def list(self) -> Sequence[LoginRow]:
        """The logins in force, the latest seen first."""
        statement = self._mine(LoginRow, LoginTable).where(LoginTable.expires_at > self.clock())
        return await self._all(LoginRow, statement.order_by(LoginTable.seen_at.desc(), LoginTable.id))

    async def confirm(self, id: str, until: datetime) -> None:
        """Note that the password was given again."""
        change = self._change(LoginTable).where(LoginTable.id == id)
        await self.session.execute(change.values(confirmed_until=until))

    async def renew(self, id: str, token: str) -> None:
        """Let this token alone open it from now on: a copy of the one before is worth nothing."""
        change = self._change(LoginTable).where(LoginTable.id == id)
        await self.session.execute(change.values(token_hash=token_hash(token)))

    async def end(self, id: str) -> bool:
        """Sign it out; whether it was there."""
        return bool(await self._touched(self._remove(LoginTable).where(LoginTable.id == id), LoginTable.id))

    async def end_all(self, *, but: Collection[str] = ()) -> int:
        """Sign all out, except these; how many."""
        return len(await self._touched(self._remove(LoginTable).where(LoginTable.id.not_in(but)), LoginTable.id))


class AllLoginsRepository(SharedRepository):
    """Whose a token is: the one question asked before the user is known. And what is done for the logins of all."""

    async def slide(self, ids: Collection[str], expires_at: datetime) -> None:
        """Note that these were seen, and let them live on."""
        change = update(LoginTable).where(LoginTable.id.in_(ids))
        await self.session.execute(change.values(seen_at=self.clock(), expires_at=expires_at))

    @reading
    async def of_token(self, token: str) -> LoginRow | None:
        """The login in force of an active account that this token opens."""
        return await self._row_of(LoginRow, _login(), token_hash=token_hash(token), now=self.clock())

    @reading
    async def newest_but_from(self, addresses: Collection[str]) -> LoginRow | None:
        """The login in force of anybody that was seen last and came from none of these addresses."""
        statement = selected(LoginRow, LoginTable).where(
            LoginTable.address.not_in([*addresses]), LoginTable.expires_at > self.clock()
        )
        return await self._first(LoginRow, statement.order_by(LoginTable.seen_at.desc()).limit(1))

    async def sweep(self) -> int:
        """Forget logins, links and tries whose time is long up; how many logins."""
        at = self.clock()
        ended = await self._touched(delete(LoginTable).where(LoginTable.expires_at < at), LoginTable.id)
        await self.session.execute(delete(SetupLinkTable).where(SetupLinkTable.expires_at < at - timedelta(days=1)))
        await self.session.execute(delete(AttemptTable).where(AttemptTable.last_at < at - timedelta(days=1)))
        return len(ended)
