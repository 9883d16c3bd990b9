"""One messenger at work: what comes in is stored, taken to its chats, and what is said there goes out."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct, field
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.background import Begin, crew
from cortex.base.errors import CortexError
from cortex.ports.messengers import NotSent
from cortex.services.messengers.conversing import Conversing
from cortex.services.messengers.following import Following
from cortex.services.messengers.receiving import Receiver
from cortex.storage.messengers import AllMessengersRepository, LinkRow

OTHER_ASKS_S = 5.0
BACK_OFF_S = (1.0, 2.0, 5.0, 15.0, 30.0)
LOOK_S = 60.0

log = logging.getLogger(__name__)


class MessengerDoor(Struct, frozen=True, kw_only=True):
    """The parts of one messenger. `names`: gives those that are still set up."""

    receiver: Receiver
    conversing: Conversing
    following: Following
    names: Callable[[], Awaitable[Sequence[str]]]
    _is_ours: asyncio.Event = field(default_factory=asyncio.Event)
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)
    _at_work: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)

    def wake(self) -> None:
        """Look now."""
        self._stirred.set()

    async def run(self) -> None:
        """Until it is switched off, or cancelled."""
        try:
            async with crew() as begin:
                await self._receive(begin(self._look(begin)))
        finally:
            with suppress(CortexError, SQLAlchemyError):  # else the lease ends by itself
                await self.receiver.let_go()

    async def _receive(self, looking: "asyncio.Task[None]") -> None:
        failures = 0
        while not looking.done() and self.receiver.name in await self.names():
            try:
                is_ours = await self.receiver.hold()
                self._mark(is_ours=is_ours)
                if is_ours:
                    await self.receiver.receive()
            except (CortexError, SQLAlchemyError) as error:
                failures += 1
                wait_s = BACK_OFF_S[min(failures, len(BACK_OFF_S)) - 1]
                if failures == 1:
                    log.warning("messengers: %s: %s", self.receiver.name, error)
                await asyncio.sleep(max(wait_s, error.wait_s if isinstance(error, NotSent) else 0.0))
                continue
            failures = 0
            if not is_ours:
                await asyncio.sleep(OTHER_ASKS_S)
            self.wake()

    async def _look(self, begin: Begin) -> None:
        """Begin the work on each inbox in which something waits, and follow each chat that is told there."""
        while True:
            await self._is_ours.wait()
            self._stirred.clear()
            try:
                repository = self.receiver.runtime.db.repository(AllMessengersRepository)
                for link in await repository.waiting(self.receiver.name):
                    self._begin(begin, f"in:{link.id}", partial(self._work_off, link))
                for chat in await repository.chats(self.receiver.name):
                    self._begin(begin, f"out:{chat.conversation_id}", partial(self.following.follow, chat))
            except (CortexError, SQLAlchemyError) as error:
                log.warning("messengers: database error, looking again: %s", error)
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._stirred.wait()
            except TimeoutError:
                continue

    def _mark(self, *, is_ours: bool) -> None:
        """Work as long as this process has the place: of two that told a chat, each would tell it whole."""
        if is_ours:
            self._is_ours.set()
            return
        self._is_ours.clear()
        for worker in self._at_work.values():
            worker.cancel()

    def _begin(self, begin: Begin, key: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Do this beside the rest, unless it is being done."""
        if key not in self._at_work:
            self._at_work[key] = worker = begin(self._guarded(work))
            worker.add_done_callback(lambda _: self._at_work.pop(key, None))

    async def _guarded(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Do it; what fails is begun anew at the next look."""
        try:
            await work()
        except (CortexError, SQLAlchemyError) as error:
            log.warning("messengers: %s: %s", self.receiver.name, error)

    async def _work_off(self, link: LinkRow) -> None:
        async with self.receiver.clients.of_server(self.receiver.name) as messenger:
            await self.conversing.work_off(messenger, link)
