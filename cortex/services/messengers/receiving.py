"""What comes in from a messenger: asked for by one process at a time, stored, and only then confirmed.

From linked people it goes to their inbox. Whoever else writes gets one line with a code, and no word of theirs is kept.
"""

import secrets
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import ToolFailed
from cortex.ports.messengers import Incoming, Messenger, NotSent, Received
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.messengers.words import greeting, strangers_of
from cortex.services.runtime import Runtime
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Opener
from cortex.storage.messengers import AllMessengersRepository, GuestRow

WAIT_S = 25.0
LEASE = timedelta(seconds=45)
RENEW_S = 15.0
SILENT = timedelta(days=6)  # after a silent week numbers begin anew, perhaps below ours
CODE_LIFE = timedelta(minutes=10)
LINES_FREE, LINES_WINDOW = 20, timedelta(minutes=10)  # to all strangers together


BACK_OFF_S = (1.0, 2.0, 5.0, 15.0, 30.0)


def pause_s(failures: int, asked_s: float = 0.0) -> float:
    """Say how long to wait after so many failures, and at least as long as was asked for."""
    return max(asked_s, BACK_OFF_S[min(failures, len(BACK_OFF_S)) - 1])


class Receiver(Struct, frozen=True, kw_only=True):
    """Asks one messenger. `holder`: of this process, for as long as it asks."""

    runtime: Runtime
    clients: IntegrationClients
    name: str
    holder: str

    async def hold(self) -> bool:
        """Take or keep the place of the one process that asks; False where another one has it."""
        until = self.runtime.clock() + LEASE
        return await self.runtime.db.repository(AllMessengersRepository).hold(self.name, self.holder, until)

    async def receive(self, wait_s: float = WAIT_S) -> None:
        """Ask once and store what came. ToolFailed where it is off or away."""
        async with self.clients.of_server(self.name) as messenger:
            account = await messenger.account()
            position, cursor, moved_at = await self.runtime.db.repository(AllMessengersRepository).place(
                self.name, account
            )
            is_silent = not cursor and self.runtime.clock() - moved_at > SILENT
            got = await messenger.receive(0 if is_silent else position, wait_s, cursor)
        if got.items or (got.upto, got.cursor) != (position, cursor):
            await self._store(account, got)
        await self.greet()

    async def _store(self, account: str, got: Received) -> None:
        """Keep it and move on, in one commit: what is asked for next is what stands behind it."""
        async with self.runtime.db.transaction() as repository:
            spoken_to = {(item.sender, item.batch) for item in got.items if item.batch and item.is_addressed}
            for item in got.items:
                is_ours = item.is_addressed or (item.sender, item.batch) in spoken_to  # one caption stands for an album
                link = await repository(AllMessengersRepository).link_of(self.name, item.sender)
                if link is not None and is_ours:
                    await repository(AllMessengersRepository).store(account, link, item)
                elif link is None and item.kind in ("message", "invite") and not item.group:
                    await self._meet(repository, item)
            await repository(AllMessengersRepository).move(self.name, account, got.upto, got.cursor)

    async def _meet(self, repository: Opener, item: Incoming) -> None:
        """A stranger wrote: a line is due, unless they have had one, or too many had."""
        now = self.runtime.clock()
        guest = await repository(AllMessengersRepository).guest(self.name, item.sender)
        if guest is not None and now - guest.told_at < CODE_LIFE:
            return
        key = strangers_of(self.name)
        if await repository(AccountsRepository).try_now(key, LINES_FREE, LINES_WINDOW, LINES_WINDOW):
            return
        made = GuestRow(
            messenger=self.name,
            sender=item.sender,
            chat=item.chat,
            name=item.name,
            code=f"{secrets.randbelow(10**8):08d}",
            code_until=now + CODE_LIFE,
            told_at=now,
            is_due=True,
        )
        await repository(AllMessengersRepository).put_guest(made)

    async def greet(self) -> None:
        """Send the lines that are due, each once: one that may be lost is asked for by writing again later."""
        repository = self.runtime.db.repository(AllMessengersRepository)
        for guest in await repository.guests_due(self.name):
            if not await repository.greeted(self.name, guest.sender):
                continue
            async with self.clients.of_server(self.name) as messenger:
                is_refused = not await self._greeted(repository, messenger, guest)
            if is_refused:
                await repository.greeted(self.name, guest.sender, is_due=True)
                return

    async def _greeted(self, repository: AllMessengersRepository, messenger: Messenger, guest: GuestRow) -> bool:
        """Greet them, where they can be met; False where that surely did not go out, and may later."""
        try:
            chat = await messenger.enter(guest.chat)
            if chat != guest.chat:
                await repository.put_guest(replace(guest, chat=chat, is_due=False))
            for part in messenger.parts(greeting(guest.code)):
                await messenger.send(chat, part)
        except NotSent:
            return False
        except ToolFailed:  # a stranger who cannot be told is none of ours
            return True
        return True

    async def let_go(self) -> None:
        """Leave the place to another process."""
        await self.runtime.db.repository(AllMessengersRepository).let_go(self.holder)
