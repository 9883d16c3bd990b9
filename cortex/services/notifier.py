"""The socket through which jobs and approvals notify a person, and the plain way: the list of notices alone.

A notice is written by whoever commits what it is about, in the same transaction: once, or not at all.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from cortex.base import scan
from cortex.base.ids import derived_id
from cortex.ports.channels import ChannelName
from cortex.ports.engine import Hub
from cortex.storage.db import Database, Opener
from cortex.storage.notices import NoticesRepository, NoticeValues, Way

OUTBOX = "outbox"  # the key of the hub on which the sender waits


def notices_key(user_id: str) -> str:
    """Return the key of the hub under which a person's notices are announced."""
    return f"notices:{user_id}"


def notice_id(user_id: str, key: str) -> str:
    """Return the id of this person's notice under this key."""
    return derived_id("notice", user_id, key)


def wake(hub: Hub, user_id: str = "") -> None:
    """Something new is committed: wake who sends, and this person's open pages."""
    if user_id:
        hub.announce(notices_key(user_id))
    hub.announce(OUTBOX)


class PendingNotice(Struct, frozen=True, kw_only=True):
    """A notice that is ready to be written, with the ways it will go. `is_muted`: it waits for nobody to read it."""

    id: str
    values: NoticeValues
    ways: tuple[Way, ...] = ()
    is_muted: bool = False

    async def write(self, repository: Opener) -> bool:
        """Write it with whatever else this transaction writes; False when it was written before."""
        return await repository(NoticesRepository).add(self.id, self.values, self.ways, is_read=self.is_muted)


class Notifier(Protocol):
    """Works out how a person is notified, and lets what was written go out."""

    async def draft(
        self, user_id: str, key: str, values: NoticeValues, channels: Sequence[ChannelName] | None = None
    ) -> PendingNotice:
        """The notice of this key, written once; `channels` None: those that the person chose for its kind."""
        ...

    def wake(self, user_id: str = "") -> None:
        """A draft was committed: look for what is to be sent, and show it on this person's open pages."""
        ...


async def plain(markdown: str) -> str:
    """The words of what a model wrote, as they are sent; what reads Markdown is loaded with the first, in a thread."""
    return await asyncio.to_thread(lambda: str(scan.load("cortex.agent.plain_text").plain_text(markdown)))


async def notify(db: Database, notifier: Notifier, user_id: str, key: str, values: NoticeValues) -> None:
    """Tell a person what nothing else is committed with; told under this key before, nothing happens."""
    draft = await notifier.draft(user_id, key, values)
    async with db.transaction(user_id) as repository:
        is_new = await draft.write(repository)
    if is_new:
        notifier.wake(user_id)


class PageOnlyNotifier:
    """Implements `Notifier` with no way out of the server: the notice stands in the person's list."""

    async def draft(
        self, user_id: str, key: str, values: NoticeValues, channels: Sequence[ChannelName] | None = None
    ) -> PendingNotice:
        """The notice alone."""
        return PendingNotice(id=notice_id(user_id, key), values=values)

    def wake(self, user_id: str = "") -> None:
        """Nothing is sent."""
