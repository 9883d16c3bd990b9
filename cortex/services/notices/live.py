"""Unread notices as they change, their number and the new ones: what an open page follows.

Writing notices is `notices.py`'s, the page is `web`'s.
"""

import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct

from cortex.base.errors import DatabaseUnavailable
from cortex.base.user import User
from cortex.services.chat.chat import LOOK_AGAIN_S
from cortex.services.chat.streams import OpenStreams
from cortex.services.notices.notices import NoticeFilter, NoticeRow, Notices
from cortex.services.notifier import notices_key

AWAY_S = 1.0  # between two looks at a database that is away


class NoticeUpdate(Struct, frozen=True, kw_only=True):
    """The count of unread ones; `news`: those since the last update, oldest first; `over`: ids sent, and read since."""

    unread: int
    news: tuple[NoticeRow, ...] = ()
    over: tuple[str, ...] = ()


class LiveNotices(Struct, frozen=True, kw_only=True):
    """`streams` knows whose must end."""

    notices: Notices
    streams: OpenStreams

    async def follow(self, user: User, shown: int) -> AsyncIterator[NoticeUpdate]:
        """An update each time something of the person's notices changed, until the person's access ends.

        At once only when the number is not what was `shown`; what is older is no news.
        """
        rung = -1
        wanted, shown_ids = NoticeFilter(is_unread=True, since=self.notices.clock()), frozenset[str]()
        with self.streams.watching(user.id, notices_key(user.id)) as is_allowed:
            while is_allowed():
                heard = await self.notices.changed(user.id, rung, LOOK_AGAIN_S)
                if not is_allowed():
                    return
                if heard == rung:
                    continue
                try:
                    count = await self.notices.unread(user.id)
                    page = await self.notices.page(user.id, wanted)
                except DatabaseUnavailable:
                    await asyncio.sleep(AWAY_S)
                    continue
                is_first, rung = rung < 0, heard
                if is_first and count == shown:
                    continue
                rows = {one.row.id: one.row for one in page.notices}
                news = tuple(rows[id] for id in reversed(rows) if id not in shown_ids)
                yield NoticeUpdate(unread=count, news=news, over=tuple(shown_ids - rows.keys()))
                shown_ids = frozenset(rows)
