"""The alarm clock: fires each armed row of a table at its time. Keeps nothing that the tables do not have.

Several processes may run one: whoever fires decides by compare-and-set who was first. `scheduler.py` lets it run.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field
from sqlalchemy.exc import SQLAlchemyError

from cortex.base import scan
from cortex.base.clock import Clock, now
from cortex.base.errors import CortexError

if TYPE_CHECKING:
    from cortex.services.jobs.timers import Timers  # loaded late

LOOK_EVERY_S = 2.0
ARMED_AHEAD = timedelta(seconds=60)  # of a thousand jobs a day, one or none: the look stays cheap
STILL_AHEAD = timedelta(seconds=30)  # so far everything has to be armed while the tables are not read
AT_ONCE = 8

log = logging.getLogger(__name__)


class ArmedRow(Protocol):
    """A row that waits for its time."""

    @property
    def id(self) -> str:
        """Of the row."""
        ...

    @property
    def next_at(self) -> datetime:
        """When it is due."""
        ...

    @property
    def version(self) -> int:
        """Another one, and it is armed anew."""
        ...


# Of a long line the first ones, those that are due first of all: the others are asked for once these were fired.
Rows = Callable[[datetime], Awaitable[Sequence[Any]]]  # Any: rows of one kind, handed back to that kind's `fire`
Fire = Callable[[Any], Awaitable[None]]
Pulse = Callable[[datetime], Awaitable[frozenset[str]]]
IsStill = Callable[[], Awaitable[bool]]


class _Kind(Struct, kw_only=True):
    name: str
    rows: Rows
    fire: Fire
    armed: dict[str, tuple[datetime, int]] = field(default_factory=dict)
    firing: set[str] = field(default_factory=set)


class Alarm:
    """Kinds of rows, each with what fires them. `add` them, then `fire_due`."""

    def __init__(self, clock: Clock = now, pulse: Pulse | None = None, is_still: IsStill | None = None) -> None:
        """Nothing is armed before `fire_due` looks.

        pulse: which kinds have anything due by then; None asks them all. is_still: whether the tables are as they were
        when it was last asked; None reads them at each look.
        """
        self._clock = clock
        self._pulse = pulse
        self._is_still = is_still
        self._armed_until: datetime | None = None
        self._firing: set[asyncio.Task[None]] = set()
        self._kinds: list[_Kind] = []
        self._woken = asyncio.Event()
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._timers: Timers | None = None

    def add(self, kind: str, rows: Rows, fire: Fire) -> None:
        """One more kind: `rows(until)` gives what is due by then, with id, next_at and version."""
        self._kinds.append(_Kind(name=kind, rows=rows, fire=fire))

    def wake(self) -> None:
        """Something was changed here: look now."""
        self._woken.set()

    async def fire_due(self) -> None:
        """Until cancelled: look every 2 s, and fire what is due."""
        try:
            while True:
                await self.rearm()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY_S):
                        await self._woken.wait()
                self._woken.clear()
        finally:
            if self._timers is not None:
                self._timers.cancel_all()
            for firing in self._firing:
                firing.cancel()
            if self._firing:
                await asyncio.wait(self._firing)

    async def rearm(self) -> None:
        """Arm what is new or another, disarm what is gone. A database that does not answer is asked again."""
        until = self._clock() + ARMED_AHEAD
        if await self._is_armed(until - STILL_AHEAD):
            return
        try:
            stirring = None if self._pulse is None else await self._pulse(until)
            self._armed_until = until
            for kind in self._kinds:
                if stirring is None or kind.name in stirring:
                    await self._arm(kind, await kind.rows(until))
                elif kind.armed:
                    await self._arm(kind, ())
        except (CortexError, SQLAlchemyError) as error:
            self._armed_until = None
            log.warning("alarm: database error, retrying: %s", error)

    async def _is_armed(self, until: datetime) -> bool:
        """Tell whether the last look armed everything up to then, and the tables have not changed since."""
        is_still = self._is_still is not None and await self._is_still()
        return is_still and self._armed_until is not None and self._armed_until >= until

    async def _arm(self, kind: _Kind, rows: Sequence[ArmedRow]) -> None:
        if rows and self._timers is None:
            loaded = await asyncio.to_thread(scan.load, "cortex.services.jobs.timers")
            self._timers = self._timers or loaded.Timers()
        wanted = {row.id: row for row in rows if row.id not in kind.firing}
        for id in kind.armed.keys() - wanted.keys() - kind.firing:
            del kind.armed[id]
            if self._timers is not None:
                self._timers.drop(_name(kind, id))
        for id, row in wanted.items():
            if self._timers is not None and kind.armed.get(id) != (row.next_at, row.version):
                kind.armed[id] = (row.next_at, row.version)
                self._timers.set(_name(kind, id), row.next_at, self._begin, kind, row)

    async def _begin(self, kind: _Kind, row: ArmedRow) -> None:
        """Fire it in a worker of our own, which ends with `fire_due`; the library would log its end as a fault."""
        kind.firing.add(row.id)
        firing = asyncio.create_task(self._fire(kind, row))  # noqa: TID251 - ended by `fire_due`, heard by `_fire`
        self._firing.add(firing)
        firing.add_done_callback(self._firing.discard)

    async def _fire(self, kind: _Kind, row: ArmedRow) -> None:
        """Once at a time for each row; afterwards it is armed anew, wherever its table then says."""
        try:
            async with self._gate:
                await kind.fire(row)
        except (CortexError, SQLAlchemyError) as error:
            log.warning("alarm: firing %s %s failed, retrying: %s", kind.name, row.id, error)
        else:
            if kind.firing == {row.id}:  # the last one of those that were due
                self.wake()  # after a failure not: the next look, 2 s later, tries again
        finally:
            kind.firing.discard(row.id)
            kind.armed.pop(row.id, None)
            self._armed_until = None


def _name(kind: _Kind, id: str) -> str:
    return f"{kind.name}:{id}"
