"""Asks each mail server from time to time what came, and waits for news where a server gives them.

One process tends an account at a time: whoever moves `next_at` on. Loads nothing that speaks with servers until one is
due.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from msgspec import Struct, field
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.background import Begin, apart, crew
from cortex.base.clock import Clock, ticks_s
from cortex.base.errors import ConfigError, CortexError, DatabaseUnavailable, NotFound, ServiceDown, ToolFailed
from cortex.storage.db import Database
from cortex.storage.mail import DueMailRepository, MailAccountRow, MailAccountsRepository, MailFolderRow

if TYPE_CHECKING:
    from cortex.integrations.mail.client import MailConnection
    from cortex.services.mail.accounts import MailAccounts
    from cortex.services.mail.sync import MailSync

LEASE = timedelta(minutes=10)
EVERY, WAITED_EVERY = timedelta(minutes=5), timedelta(minutes=15)
AT_LEAST = timedelta(hours=6)  # how long a server that fails is left alone at most
LOOKED_EVERY_S = 60.0
WAITED_S = 24 * 60.0  # servers hang up on who says nothing for half an hour
PAUSE_S = 10.0  # between two looks at what came: who reads a hundred mails elsewhere makes a hundred news
EACH = 2  # servers of one person that are asked at once
BROKEN = "Its server answers in a form that cannot be read."
WAITING_MOST = 40  # connections on which news are waited for
AT_ONCE = 100

log = logging.getLogger(__name__)


class MailWatch(Struct, frozen=True, kw_only=True):
    """The mailboxes of everybody. `opened`: gives what speaks with servers, and what keeps the index."""

    db: Database
    clock: Clock
    opened: Callable[[], "tuple[MailAccounts, MailSync]"]
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _tended: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _resting: set[str] = field(default_factory=set)  # those of them that only wait for news
    _wanted: set[str] = field(default_factory=set)  # those that are to be asked once more
    _shares: WeakValueDictionary[str, asyncio.Semaphore] = field(default_factory=WeakValueDictionary)

    def wake(self) -> None:
        """Look now: an account came or went, or somebody wants one asked."""
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled: tend whoever is due. Whom we tended, the next process is to ask at once."""
        held = list[str]()
        try:
            async with crew() as begin:
                try:
                    await self._look(begin)
                finally:
                    held += self._tended
        finally:
            await self.db.repository(DueMailRepository).free(held)

    async def _look(self, begin: Begin) -> None:
        is_first = not self.db.is_postgresql  # there, others may tend beside us whom a killed process seems to hold
        while True:
            self._changed.clear()
            try:
                if is_first:
                    await self.db.repository(DueMailRepository).free()
                    is_first = False
                await self._let_go()
                await self._due(begin)
                wait_s = await self._until_next_s()
            except (DatabaseUnavailable, SQLAlchemyError) as error:
                log.warning("mail: database error, looking again: %s", error)
                wait_s = LOOKED_EVERY_S
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _let_go(self) -> None:
        """Leave the servers of accounts that were removed, and of people who were shut out."""
        if self._tended:
            for id in self._tended.keys() - await self.db.repository(DueMailRepository).standing([*self._tended]):
                self._tended[id].cancel()

    async def _due(self, begin: Begin) -> None:
        for owner_id, account_id in await self.db.repository(DueMailRepository).due(AT_ONCE):
            if not await self.db.repository(DueMailRepository).take(account_id, self.clock() + LEASE):
                continue
            before = self._tended.get(account_id)
            if before is not None and account_id not in self._resting:  # it is being asked: once more behind that
                self._wanted.add(account_id)
                continue
            if before is not None:  # it waits for news; asked anew it waits again
                before.cancel()
            task = begin(self._tend(owner_id, account_id))
            self._tended[account_id] = task
            task.add_done_callback(lambda ended, id=account_id: self._ended(id, ended))  # type: ignore[misc]

    def _ended(self, account_id: str, task: asyncio.Task[None]) -> None:
        if self._tended.get(account_id) is task:
            del self._tended[account_id]
            self._wanted.discard(account_id)

    async def _tend(self, owner_id: str, account_id: str) -> None:
        failure = await apart(self.tend(owner_id, account_id))
        if isinstance(failure, DatabaseUnavailable | SQLAlchemyError):
            log.warning("mail: database error, an account is asked again later: %s", failure)
        elif failure is not None:
            log.error("mail: an account could not be tended", exc_info=failure)
            await apart(self._fail(owner_id, account_id, BROKEN))

    async def tend(self, owner_id: str, account_id: str, *, waits: bool = True) -> None:
        """Ask one server now, and go on while it gives news. What fails is kept with the account, and tried later."""
        accounts, sync = self.opened()
        try:
            account = await self.db.repository(MailAccountsRepository, owner_id).account(account_id)
            async with AsyncExitStack() as stack:
                async with self._room(owner_id):
                    connection = await stack.enter_async_context(accounts.opened(account))
                    await sync.sync(account, connection)
                while True:
                    can_wait = waits and connection.imap.can_idle and len(self._tended) <= WAITING_MOST
                    until = await self._book(account, "", WAITED_EVERY if can_wait else EVERY)
                    if account_id not in self._wanted and not (
                        can_wait and await self._news(account, connection, until)
                    ):
                        return
                    self._wanted.discard(account_id)
                    async with self._room(owner_id):
                        await sync.sync(account, connection)
        except NotFound:
            return  # removed meanwhile
        except EOFError:
            await self._again(owner_id, account_id, LOOKED_EVERY_S)
        except (CortexError, ConfigError) as error:
            if isinstance(error, DatabaseUnavailable):
                raise
            await self._fail(owner_id, account_id, error.message)

    @asynccontextmanager
    async def _room(self, owner_id: str) -> AsyncIterator[None]:
        """Wait until a server may be asked: so many at once of one person, so many of all."""
        own = self._shares.setdefault(owner_id, asyncio.Semaphore(EACH))
        async with own, self.opened()[0].door.room:
            yield

    async def _news(self, account: MailAccountRow, connection: "MailConnection", until: datetime) -> bool:
        """Wait for news of the inbox until then, and read them; whether the whole account is to be asked now, by us."""
        accounts, looked_s = self.db.repository(MailAccountsRepository, account.owner_id), -PAUSE_S
        inboxes = [one for one in await accounts.of_account(account.id) if one.role == "inbox" and one.is_read]
        if not inboxes:
            return False
        while (left_s := (until - self.clock()).total_seconds()) > 0 and account.id not in self._wanted:
            inbox = await accounts.folder(inboxes[0].id)
            try:
                if not await self._came(account.id, inbox, connection, min(left_s, WAITED_S)):
                    continue
                await asyncio.sleep(max(looked_s + PAUSE_S - ticks_s(), 0))
            except ServiceDown:
                raise
            except ToolFailed:  # it does not let us wait
                await self._again(account.owner_id, account.id, EVERY.total_seconds())
                return False
            looked_s = ticks_s()
            async with self._room(account.owner_id):
                await self.opened()[1].look(account, connection, inbox)
        is_ours = account.id in self._wanted
        return is_ours or await self.db.repository(DueMailRepository).take(account.id, self.clock() + LEASE)

    async def _came(self, id: str, inbox: MailFolderRow, connection: "MailConnection", within_s: float) -> bool:
        """Tell whether something came into the inbox, or does in this time."""
        state = await connection.do(type(connection.imap).examine, inbox.path)
        if state.text != inbox.state:  # since it was read, and until the server listens, which nobody tells
            return True
        self._resting.add(id)
        try:
            return await connection.news(within_s)
        finally:
            self._resting.discard(id)

    async def _again(self, owner_id: str, account_id: str, in_s: float) -> None:
        """Have an account asked again soon, whose server hung up or does not tell us what comes."""
        try:
            await self.db.repository(MailAccountsRepository, owner_id).set_account(
                account_id, next_at=self.clock() + timedelta(seconds=in_s)
            )
        except NotFound:
            return

    async def _fail(self, owner_id: str, account_id: str, failure: str) -> None:
        try:
            account = await self.db.repository(MailAccountsRepository, owner_id).account(account_id)
            await self._book(account, failure, EVERY)
        except NotFound:
            log.info("mail: an account was removed while it was asked")

    async def _book(self, account: MailAccountRow, failure: str, usual: timedelta) -> datetime:
        """Keep how it went with the account; when it is asked next."""
        now = self.clock()
        failures = account.failures + 1 if failure else 0
        until: datetime = now + min(usual * 2 ** min(failures, 7), AT_LEAST)
        worked = {} if failure else {"worked_at": now}
        values = {"failure": failure, "failures": failures, "next_at": until, **worked}
        await self.db.repository(MailAccountsRepository, account.owner_id).set_account(account.id, **values)
        return until

    async def _until_next_s(self) -> float:
        at = await self.db.repository(DueMailRepository).next_at()
        return LOOKED_EVERY_S if at is None else min(max((at - self.clock()).total_seconds(), 1.0), LOOKED_EVERY_S)
