"""The digest: once a day, at the hour that the person chose, what was of low urgency in one notice. No model call.

Its id holds the day, so that it is sent once however often this runs and in however many processes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.clock import Clock
from cortex.base.errors import CortexError
from cortex.services.notices.notices import NoticeDraft, NoticeFilter, NoticeRow, Notices
from cortex.services.notices.preferences import KEY
from cortex.storage import notices as rows
from cortex.storage.db import Database
from cortex.storage.preferences import AllPreferencesRepository

FIRST_AFTER_S = 2.0  # the start belongs to the people
QUARTER_S = 900  # every hour of every zone begins at one
REACHES_BACK = timedelta(days=7)
A_DAY = timedelta(days=1)
LOOKED_AT = 500
LINES = 20

log = logging.getLogger(__name__)


class Digests(Struct, frozen=True, kw_only=True):
    """Sends digests when they are due."""

    db: Database
    notices: Notices
    clock: Clock
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def send_digests(self) -> None:
        """Until cancelled: soon after the start, then at each quarter of an hour."""
        await self.sleep(FIRST_AFTER_S)
        while True:
            try:
                await self.go_round()
            except (CortexError, SQLAlchemyError) as error:
                log.warning("digests: database error, retrying: %s", error)
            await self.sleep(QUARTER_S - self.clock().timestamp() % QUARTER_S + 1)

    async def go_round(self) -> None:
        """Send the digest of everybody whose hour has come and who has not got it yet."""
        # Back to where a digest of now can reach: everybody else has nothing that would stand in one.
        waiting = await self.db.repository(rows.AllNoticesRepository).low_since(self.clock() - REACHES_BACK - A_DAY)
        chosen = await self.db.repository(AllPreferencesRepository).owners(KEY) if waiting else ()
        for user_id in (one for one in chosen if one in waiting):
            due_at = (await self.notices.preferences.choices_of(user_id)).last_digest(self.clock())
            if due_at is not None:
                await self._send_digest(user_id, due_at)

    async def _send_digest(self, user_id: str, due_at: datetime) -> None:
        table = self.db.repository(rows.NoticesRepository, user_id)
        last = await table.list(NoticeFilter(kinds=("digest",)), limit=1)
        since = max([due_at - REACHES_BACK, *(datetime.fromisoformat(digest.subject_id) for digest in last)])
        if since >= due_at:
            return
        found = await table.list(NoticeFilter(is_unread=True, since=since), limit=LOOKED_AT)
        quiet = [row for row in found if row.urgency == "low" and row.kind != "digest" and row.created_at < due_at]
        if quiet:
            await self.notices.notify(user_id, _digest(quiet, due_at))


def _digest(found: list[NoticeRow], due_at: datetime) -> NoticeDraft:
    """The oldest first, as they happened. Its subject is until when it reaches: the next one begins there."""
    lines = [f"• {row.title}" for row in reversed(found)]
    more = [f"and {len(lines) - LINES} more"] if len(lines) > LINES else []
    return NoticeDraft(
        key=f"digest:{due_at.isoformat()}",
        kind="digest",
        title=f"{len(found)} thing{'' if len(found) == 1 else 's'} in your digest",
        text="\n".join([*lines[:LINES], *more]),
        path="/notifications",
        tag="digest",
        subject_id=due_at.isoformat(),
        is_tainted=any(row.is_tainted for row in found),
    )
