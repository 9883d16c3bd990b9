"""What the server throws away when its time is up: ended logins, links, forgotten facts, deleted files, old runs.

It also has the audit log verified, and its admins told of it, and people told of tokens that end soon.

Messages, events and the files that people made stay. Makes no model call. `app.py` lets it run beside the rest.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import CortexError
from cortex.base.zone import local
from cortex.services.accounts.accounts import Accounts
from cortex.services.content.file_looks import FileClearing
from cortex.services.content.notes import UNDO as NOTES_UNDO
from cortex.services.content.notes import NotesService
from cortex.services.health.audit_log import AuditLog
from cortex.services.integrations.query_results import QueryResults
from cortex.services.memory.user_memory import UNDO
from cortex.services.notifier import Notifier
from cortex.services.runtime import Runtime
from cortex.storage.accounts import AccountsRepository
from cortex.storage.api_tokens import AllApiTokensRepository, ApiTokensRepository
from cortex.storage.db import Database
from cortex.storage.devices import AllActionLinksRepository
from cortex.storage.facts import AllFactsRepository
from cortex.storage.home import Homes
from cortex.storage.jobs import AllJobsRepository
from cortex.storage.messengers import AllMessengersRepository
from cortex.storage.notices import AllNoticesRepository, NoticeValues
from cortex.storage.plans import AllPlansRepository
from cortex.storage.reminders import AllRemindersRepository
from cortex.storage.slots import AllSlotsRepository

FIRST_AFTER_S = 60.0  # the start belongs to the people
EVERY_S = 24 * 3600.0
RUNS_KEPT = timedelta(days=1)  # what they did stands in the tables

log = logging.getLogger(__name__)


class Housekeeping(Struct, frozen=True, kw_only=True):
    """The daily round. `prune` forgets the runs that ended before a moment, and says how many."""

    runtime: Runtime
    accounts: Accounts
    audit_log: AuditLog
    prune: Callable[[datetime], Awaitable[int]]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def clean_daily(self) -> None:
        """For ever: a minute after the start, then once a day. One that fails is told in the log."""
        await self.sleep(FIRST_AFTER_S)
        while True:
            try:
                await self.go_round()
            except (CortexError, SQLAlchemyError, OSError) as error:
                log.warning("housekeeping: failed, next attempt in a day: %s", error)
            await self.sleep(EVERY_S)

    async def go_round(self) -> None:
        """Throw away what is over now."""
        await self.accounts.sweep()
        await self.audit_log.notify_admins()
        db, now = self.runtime.db, self.runtime.clock()
        await tell_of_token_ends(db, self.audit_log.notifier)
        await db.repository(AllActionLinksRepository).prune()
        while await db.repository(AllNoticesRepository).prune():
            """Others write in between; so too below."""
        await db.repository(AllFactsRepository).prune(now - UNDO)
        await db.repository(AllJobsRepository).prune()
        await db.repository(AllRemindersRepository).prune()
        while await db.repository(AllSlotsRepository).prune():
            pass
        if self.runtime.settings.plans_kept_days:
            days = timedelta(days=self.runtime.settings.plans_kept_days)
            while await db.repository(AllPlansRepository).forget(now - days):
                pass
        packed: tuple[str, int] | None = ("", -1)
        while packed:
            packed = await db.repository(AllPlansRepository).pack_older(packed)
        await db.repository(AllMessengersRepository).prune()
        forgotten = await self.prune(now - RUNS_KEPT)
        if forgotten:
            log.info("housekeeping: deleted the engine's records of %d runs that ended over a day ago", forgotten)
        await self._prune_files(now)
        await FileClearing(runtime=self.runtime, homes=Homes(self.runtime.settings.home)).clear()

    async def _prune_files(self, now: datetime) -> None:
        """Delete everybody's old results of database queries, and the notes that they deleted a while ago."""
        settings = self.runtime.settings
        days = timedelta(days=settings.query_results_kept_days)
        homes = Homes(settings.home)
        notes = NotesService(homes, self.runtime.db)
        for account in await self.runtime.db.repository(AccountsRepository).list():
            try:
                await QueryResults(home=homes.home_of(account.id)).prune(now - days if days else None)
                await notes.prune(account.id, now - NOTES_UNDO)
            except (CortexError, OSError) as error:  # one person's folder keeps nobody else's from being looked at
                log.warning("housekeeping: old files of %s were not looked at: %s", account.id, error)


AHEAD = timedelta(days=14)  # who makes a token for less knows of its end
TOKENS_PAGE = "/account/tokens"


async def tell_of_token_ends(db: Database, notifier: Notifier) -> None:
    """Tell of each token that ends within 14 days. That it was told and the notice are one commit: told once."""
    for token in await db.repository(AllApiTokensRepository).ending(db.clock() + AHEAD, AHEAD):
        zone = (await db.repository(AccountsRepository).get(token.owner_id)).time_zone
        day = local(token.expires_at, zone).date().isoformat() if token.expires_at else ""
        values = NoticeValues(
            kind="system",
            title=f"The token {token.name} ends on {day}",
            text="The program that uses it is refused from then on. Extend it, or create a new one, under Tokens.",
            path=TOKENS_PAGE,
            subject_id=token.id,
            is_tainted=False,
        )
        draft = await notifier.draft(token.owner_id, f"token:{token.id}:{token.expires_at}", values)
        async with db.transaction(token.owner_id) as repository:
            is_new = await repository(ApiTokensRepository).warn(token.id) and await draft.write(repository)
        if is_new:
            notifier.wake(token.owner_id)
