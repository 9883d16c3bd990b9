"""Tells people once that a token of theirs ends soon. The daily round of housekeeping calls it."""

from datetime import timedelta

from cortex.base.zone import local
from cortex.services.notifier import Notifier
from cortex.storage.accounts import AccountsRepository
from cortex.storage.api_tokens import AllApiTokensRepository, ApiTokensRepository
from cortex.storage.db import Database
from cortex.storage.notices import NoticeValues

AHEAD = timedelta(days=14)  # who makes a token for less knows of its end
PAGE = "/account/tokens"


async def tell_of_token_ends(db: Database, notifier: Notifier) -> None:
    """Tell of each token that ends within 14 days. That it was told and the notice are one commit: told once."""
    for token in await db.repository(AllApiTokensRepository).ending(db.clock() + AHEAD, AHEAD):
        zone = (await db.repository(AccountsRepository).get(token.owner_id)).time_zone
        day = local(token.expires_at, zone).date().isoformat() if token.expires_at else ""
        values = NoticeValues(
            kind="system",
            title=f"The token {token.name} ends on {day}",
            text="The program that uses it is refused from then on. Extend it, or create a new one, under Tokens.",
            path=PAGE,
            subject_id=token.id,
            is_tainted=False,
        )
        draft = await notifier.draft(token.owner_id, f"token:{token.id}:{token.expires_at}", values)
        async with db.transaction(token.owner_id) as repository:
            is_new = await repository(ApiTokensRepository).warn(token.id) and await draft.write(repository)
        if is_new:
            notifier.wake(token.owner_id)
