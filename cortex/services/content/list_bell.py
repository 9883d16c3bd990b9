"""Implements the `ListBell` port over the hub: each reader of a list has a key that their open pages follow."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from cortex.ports.engine import Hub
from cortex.storage.db import Database
from cortex.storage.shared_lists import SharedListsRepository
from cortex.storage.tasks import INBOX


def lists_of(user_id: str) -> str:
    """The key of the hub under which the lists that a person sees ring."""
    return f"lists:{user_id}"


def tell(hub: Hub, user_ids: Iterable[str]) -> None:
    """Let the open pages of these people look at their lists again."""
    for user_id in user_ids:
        hub.announce(lists_of(user_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class UserListBell:
    """The bell in one user's hand."""

    db: Database
    hub: Hub
    user_id: str

    async def ring(self, *places: tuple[str, str], is_shared: bool = True) -> None:
        """Tell all who see these lists, the user's own other pages too; not `is_shared`: those alone."""
        lists = self.db.repository(SharedListsRepository, self.user_id)
        may_be_shared = {place for place in places if is_shared and place[1] != INBOX}  # nobody shares an inbox
        readers = await asyncio.gather(*(lists.readers(*place) for place in may_be_shared))
        tell(self.hub, {self.user_id, *(id for ids in readers for id in ids)})
