"""The socket through which jobs and approvals tell a person something, and the plain way: the list of notices alone.

What is told is written by whoever commits the thing told, in the same transaction: told once, or not at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cortex.base.ids import derived_id
from cortex.ports.channels import ChannelName
from cortex.ports.engine import Hub
from cortex.storage.db import Opener
from cortex.storage.notices import NoticesRepository, NoticeValues, Way

OUTBOX = "outbox"  # the key of the hub on which the sender waits


def bell_of(user_id: str) -> str:
    """The key of the hub under which a person's notices ring."""
    return f"notices:{user_id}"


def notice_id(user_id: str, key: str) -> str:
    """The id of what this person is told under this key."""
    return derived_id("notice", user_id, key)


def wake(hub: Hub, user_id: str = "") -> None:
    """Something new is committed: wake who sends, and this person's open pages."""
    if user_id:
        hub.announce(bell_of(user_id))
    hub.announce(OUTBOX)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingNotice:
    """A notice that is ready to be written, with the ways it will go. `is_muted`: it waits for nobody to read it."""

    id: str
    values: NoticeValues
    ways: tuple[Way, ...] = ()
    is_muted: bool = False

    async def write(self, repository: Opener) -> bool:
        """Write it with whatever else this transaction writes; False when it was told before."""
        return await repository(NoticesRepository).add(self.id, self.values, self.ways, is_read=self.is_muted)


class Notifier(Protocol):
    """Works out how a person is told, and lets what was written go out."""

    async def draft(
        self, user_id: str, key: str, values: NoticeValues, channels: Sequence[ChannelName] | None = None
    ) -> PendingNotice:
        """The notice of this key, told once; `channels` None: those that the person chose for its kind."""
        ...

    def wake(self, user_id: str = "") -> None:
        """A draft was committed: look for what is to be sent, and show it on this person's open pages."""
        ...


class PageOnlyNotifier:
    """Implements `Notifier` with no way out of the server: the notice stands in the person's list."""

    async def draft(
        self, user_id: str, key: str, values: NoticeValues, channels: Sequence[ChannelName] | None = None
    ) -> PendingNotice:
        """The notice alone."""
        return PendingNotice(id=notice_id(user_id, key), values=values)

    def wake(self, user_id: str = "") -> None:
        """Nothing is sent."""
