"""The number on the bell, as it changes: what an open page follows. Telling is `notices.py`'s, the page is `web`'s."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from cortex.base.clock import ticks_s
from cortex.base.user import User
from cortex.services.chat import FOLLOW_S, KEEP_ALIVE_S, Chat, Tick
from cortex.services.notices import Notices
from cortex.services.tell import bell_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Bell:
    """`chat` knows whose streams must end."""

    notices: Notices
    chat: Chat
    ticks: Callable[[], float] = ticks_s

    async def follow(self, user: User, shown: int) -> AsyncIterator[int | Tick]:
        """How many notices are unread, each time something of them changed; a `Tick` every 15 quiet seconds.

        At once only when it is not what the page has `shown`. Ends after five minutes, so that the caller checks the
        login again, and as soon as the person's access ended.
        """
        rung, ends_s = -1, self.ticks() + FOLLOW_S
        with self.chat.watching(user.id, bell_of(user.id)) as is_allowed:
            while is_allowed() and self.ticks() < ends_s:
                heard = await self.notices.changed(user.id, rung, KEEP_ALIVE_S)
                if not is_allowed():
                    return
                is_first, is_quiet, rung = rung < 0, heard == rung, heard
                if is_quiet:
                    yield Tick()
                    continue
                count = await self.notices.unread(user.id)
                if not is_first or count != shown:
                    yield count
