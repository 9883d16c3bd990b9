"""What comes in from a messenger: asked for by one process at a time, stored, and only then confirmed.

From linked people it goes to their inbox. Whoever else writes gets one line with a code, and no word of theirs is kept.
"""

import secrets
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from cortex.ports.messengers import ChatClosed, Incoming, Messenger, NotSent, Received
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.messengers.words import greeting
from cortex.services.runtime import Runtime
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Opener
from cortex.storage.messengers import AllMessengersRepository, GuestRow

WAIT_S = 25.0
LEASE = timedelta(seconds=60)
SILENT = timedelta(days=6)  # after a silent week numbers begin anew, perhaps below ours
CODE_LIFE = timedelta(minutes=10)
LINES_FREE, LINES_WINDOW = 20, timedelta(minutes=10)  # to all strangers together


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
            for item in got.items:
                link = await repository(AllMessengersRepository).link_of(self.name, item.sender)
                if link is not None and item.is_addressed:
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
        key = f"messenger:{self.name}"
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
        """Send the lines that are due, each once: one that is lost is asked for by writing again later."""
        repository = self.runtime.db.repository(AllMessengersRepository)
        for guest in await repository.guests_due(self.name):
            await repository.greeted(self.name, guest.sender)
            async with self.clients.of_server(self.name) as messenger:
                try:
                    chat = await messenger.enter(guest.chat)
                except (NotSent, ChatClosed):  # a stranger who cannot be told is none of ours
                    continue
                if chat != guest.chat:
                    guest = replace(guest, chat=chat, is_due=False)
                    await repository.put_guest(guest)
                await _said(messenger, guest)

    async def let_go(self) -> None:
        """Leave the place to another process."""
        await self.runtime.db.repository(AllMessengersRepository).let_go(self.holder)


async def _said(messenger: Messenger, guest: GuestRow) -> None:
    try:
        for part in messenger.parts(greeting(guest.code)):
            await messenger.send(guest.chat, part)
    except (NotSent, ChatClosed):
        return
