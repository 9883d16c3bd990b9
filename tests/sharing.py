"""A task list that people share: offered by its owner, and accepted."""

from collections.abc import Sequence

from cortex.storage.db import Database
from cortex.storage.shared_lists import SharedListsRepository


async def share(db: Database, owner_id: str, name: str, people: Sequence[str]) -> Sequence[str]:
    """Offer the list to exactly these people and have each accept it; ids of those who did not have it before."""
    added = await db.repository(SharedListsRepository, owner_id).share(name, people)
    for person in added:
        lists = db.repository(SharedListsRepository, person)
        for offered in await lists.invitations():
            await lists.accept(offered.id)
    return added
