"""One-time links by which a person's other device is logged in: shown as a QR code, scanned, good for ten minutes.

Whoever shows one gave the password a moment ago; the page asks that. It sets no password, and what asks for the
password again asks the new device too. Invitations and links for passwords stand in `people.py`.
"""

import secrets
from datetime import timedelta

from msgspec import Struct

from cortex.base.address import network_of
from cortex.base.clock import Clock
from cortex.base.errors import NotAllowed, Throttled
from cortex.base.ids import new_id
from cortex.base.user import User
from cortex.services.accounts.accounts import LOGIN_LIFE, TRY_WINDOW
from cortex.services.accounts.people import as_user
from cortex.storage.accounts import AccountsRepository, LoginsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database

DEVICE_LINK_LIFE = timedelta(minutes=10)
TRIES_FREE = 20  # of an address within a quarter of an hour
DEAD = "This code was used already, or it is too old. Show a new one on the device where you are logged in."


class DeviceLinks(Struct, frozen=True, kw_only=True):
    """The links of everybody."""

    db: Database
    clock: Clock

    async def new(self, user: User) -> str:
        """The token of a link that logs one more device of this person in; an earlier one ends."""
        token = secrets.token_urlsafe(24)
        async with self.db.transaction() as repository:
            until = self.clock() + DEVICE_LINK_LIFE
            await repository(AccountsRepository).add_link(token, user.id, until, "device")
            await repository(AuditRepository).add(user.id, "login.link", user.name)
        return token

    async def owner(self, token: str) -> User | None:
        """Return whose link this is; None for one that is used up, too old, or of a closed account."""
        accounts = self.db.repository(AccountsRepository)
        link = await accounts.link(token, "device")
        if link is None or link.account_id is None:
            return None
        account = await accounts.get(link.account_id)
        return as_user(account) if account.is_active else None

    async def redeem(self, token: str, address: str, agent: str) -> str:
        """Use a link: the token of a login on the device that scanned it.

        NotAllowed where nobody can use it any more, Throttled after many tries from one address.
        """
        await self._count_try(address)
        user = await self.owner(token)
        if user is None:
            raise NotAllowed(DEAD)
        cookie, until = secrets.token_urlsafe(32), self.clock() + LOGIN_LIFE
        async with self.db.transaction(user.id) as repository:
            if not await repository(AccountsRepository).use_link(token, "device"):
                raise NotAllowed(DEAD)
            login = await repository(LoginsRepository).add(new_id(self.clock), cookie, address, agent, until)
            facts = {"address": address, "login": login.id, "by": "link"}
            await repository(AuditRepository).add(user.id, "login", user.name, facts)
        return cookie

    async def _count_try(self, address: str) -> None:
        async with self.db.transaction() as repository:
            wait_s = await repository(AccountsRepository).try_now(
                f"device:{network_of(address)}", TRIES_FREE, TRY_WINDOW, timedelta(minutes=15)
            )
        if wait_s:
            raise Throttled(f"Too many tries. Wait {int(wait_s) + 1} seconds, then try again.", wait_s=wait_s)
