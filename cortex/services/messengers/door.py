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
from cortex.services.messengers.receiving import RENEW_S, Receiver, pause_s
from cortex.storage.messengers import AllMessengersRepository, LinkRow

OTHER_ASKS_S = 5.0  # a process that was killed has the place until its lease ends
LOOK_S = 60.0
FAULTS = (CortexError, SQLAlchemyError, OSError)  # of a database, a disk, a network: it is tried again

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
                await self._receive(begin(self._look(begin)), begin(self._hold()))
        finally:
            with suppress(*FAULTS):  # else the lease ends by itself
                await self.receiver.let_go()

    async def _hold(self) -> None:
        """Keep the place, beside whatever takes long; who cannot is no longer its holder, ahead of the lease's end."""
        while True:
            try:
                async with asyncio.timeout(RENEW_S):
                    is_ours = await self.receiver.hold()
            except FAULTS as error:  # a TimeoutError among them
                log.warning("messengers: %s: the place is not held: %s", self.receiver.name, error)
                is_ours = False
            self._mark(is_ours=is_ours)
            await asyncio.sleep(RENEW_S if is_ours else OTHER_ASKS_S)

    async def _receive(self, *beside: "asyncio.Task[None]") -> None:
        failures = 0
        while not any(one.done() for one in beside):
            try:
                if self.receiver.name not in await self.names():
                    return
                if not self._is_ours.is_set():
                    with suppress(TimeoutError):
                        async with asyncio.timeout(OTHER_ASKS_S):
                            await self._is_ours.wait()
                    continue
                await self.receiver.receive()
            except FAULTS as error:
                failures += 1
                if failures == 1:
                    log.warning("messengers: %s: %s", self.receiver.name, error)
                await asyncio.sleep(pause_s(failures, error.wait_s if isinstance(error, NotSent) else 0.0))
                continue
            failures = 0
            self.wake()

    async def _look(self, begin: Begin) -> None:
        """Begin the work on each inbox in which something waits, and follow each chat that is told there."""
        while True:
            await self._is_ours.wait()
            self._stirred.clear()
            try:
                repository = self.receiver.runtime.db.repository(AllMessengersRepository)
                for link in await repository.waiting(self.receiver.name):
                    if f"in:{link.id}" in self._at_work:
                        self._begin(begin, f"now:{link.id}", partial(self._hurry, link))
                    self._begin(begin, f"in:{link.id}", partial(self._work_off, link))
                for chat in await repository.chats(self.receiver.name):
                    self._begin(begin, f"out:{chat.conversation_id}", partial(self.following.follow, chat))
            except FAULTS as error:
                log.warning("messengers: database error, looking again: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._stirred.wait()

    def _mark(self, *, is_ours: bool) -> None:
        """Work as long as this process has the place: of two that told a chat, each would tell it whole."""
        if is_ours:
            if not self._is_ours.is_set():
                self._is_ours.set()
                self.wake()
            return
        self._is_ours.clear()
        for worker in self._at_work.values():
            worker.cancel()

    def _begin(self, begin: Begin, key: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Do this beside the rest, unless it is being done, or the place was lost since it was looked for."""
        if key not in self._at_work and self._is_ours.is_set():
            self._at_work[key] = worker = begin(self._guarded(work))
            worker.add_done_callback(lambda _: self._at_work.pop(key, None))

    async def _guarded(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Do it; what fails is begun anew at the next look, and ends nothing beside it."""
        try:
            await work()
        except FAULTS as error:
            log.warning("messengers: %s: %s", self.receiver.name, error)

    async def _work_off(self, link: LinkRow) -> None:
        async with self.receiver.clients.of_server(self.receiver.name) as messenger:
            await self.conversing.work_off(messenger, link)
        # What was stored since its last look at the inbox found this worker there.
        asyncio.get_running_loop().call_soon(self.wake)

    async def _hurry(self, link: LinkRow) -> None:
        async with self.receiver.clients.of_server(self.receiver.name) as messenger:
            await self.conversing.hurry(messenger, link)
