"""Asks each mail server from time to time what came, and waits for news where a server gives them.

One process tends an account at a time: whoever moves `next_at` on. Loads nothing that speaks with servers until one is
due.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct, field
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.background import Begin, crew
from cortex.base.clock import Clock
from cortex.base.errors import ConfigError, CortexError, DatabaseUnavailable, NotFound
from cortex.storage.db import Database
from cortex.storage.mail import DueMailRepository, MailAccountRow, MailAccountsRepository

if TYPE_CHECKING:
    from cortex.integrations.mail.client import MailConnection
    from cortex.services.mail.accounts import MailAccounts
    from cortex.services.mail.sync import MailSync

LEASE = timedelta(minutes=10)
EVERY, WAITED_EVERY = timedelta(minutes=5), timedelta(minutes=15)
AT_LEAST = timedelta(hours=6)  # how long a server that fails is left alone at most
LOOKED_EVERY_S = 60.0
WAITED_S = 24 * 60.0  # servers hang up on who says nothing for half an hour
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

    def wake(self) -> None:
        """Look now: an account came, or somebody wants one asked."""
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled: tend whoever is due."""
        async with crew() as begin:
            while True:
                self._changed.clear()
                try:
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

    async def _due(self, begin: Begin) -> None:
        for owner_id, account_id in await self.db.repository(DueMailRepository).due(AT_ONCE):
            if not await self.db.repository(DueMailRepository).take(account_id, self.clock() + LEASE):
                continue
            before = self._tended.pop(account_id, None)
            if before is not None:  # it waits for news; asked anew it waits again
                before.cancel()
            task = begin(self._tend(owner_id, account_id))
            self._tended[account_id] = task
            task.add_done_callback(lambda ended, id=account_id: self._ended(id, ended))  # type: ignore[misc]

    def _ended(self, account_id: str, task: asyncio.Task[None]) -> None:
        if self._tended.get(account_id) is task:
            del self._tended[account_id]

    async def _tend(self, owner_id: str, account_id: str) -> None:
        try:
            await self.tend(owner_id, account_id)
        except (DatabaseUnavailable, SQLAlchemyError) as error:
            log.warning("mail: database error, an account is asked again later: %s", error)

    async def tend(self, owner_id: str, account_id: str, *, waits: bool = True) -> None:
        """Ask one server now, and go on while it gives news. What fails is kept with the account, and tried later."""
        accounts, _ = self.opened()
        try:
            account = await self.db.repository(MailAccountsRepository, owner_id).account(account_id)
            async with accounts.opened(account) as connection:
                while True:
                    await self._sync(account, connection)
                    can_wait = waits and connection.imap.can_idle and len(self._tended) <= WAITING_MOST
                    until = await self._book(account, "", WAITED_EVERY if can_wait else EVERY)
                    if not can_wait or not await self._news(account, connection, until):
                        return
        except NotFound:
            return  # removed meanwhile
        except EOFError:
            await self._again(owner_id, account_id)
        except (CortexError, ConfigError) as error:
            if isinstance(error, DatabaseUnavailable):
                raise
            await self._fail(owner_id, account_id, error.message)

    async def _sync(self, account: MailAccountRow, connection: "MailConnection") -> None:
        accounts, sync = self.opened()
        async with accounts.door.room:
            await sync.sync(account, connection)

    async def _news(self, account: MailAccountRow, connection: "MailConnection", until: datetime) -> bool:
        """Wait for news of the inbox until then; whether the account is to be asked again, by this process."""
        accounts = self.db.repository(MailAccountsRepository, account.owner_id)
        inbox = next(
            (one for one in await accounts.of_account(account.id) if one.role == "inbox" and one.is_read), None
        )
        if inbox is None:
            return False
        while (left_s := (until - self.clock()).total_seconds()) > 0:
            state = await connection.do(type(connection.imap).examine, inbox.path)
            # What came since the inbox was read, and until the server listens, is told by nobody.
            if state.text != inbox.state or await connection.news(min(left_s, WAITED_S)):
                await accounts.set_account(account.id, next_at=self.clock() + LEASE)
                return True
        return await self.db.repository(DueMailRepository).take(account.id, self.clock() + LEASE)

    async def _again(self, owner_id: str, account_id: str) -> None:
        """Have an account whose line ended while we waited asked again soon."""
        try:
            await self.db.repository(MailAccountsRepository, owner_id).set_account(
                account_id, next_at=self.clock() + timedelta(seconds=LOOKED_EVERY_S)
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
