"""A daemon that dies at any request of a change, before it is sent or before its answer is heard: one effect, once.

Another life makes the same change again, as the engine does; then the server and the copy hold what they hold without
a death.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.integrations.dav.server import DavServer as Place
from cortex.ports.calendars import Calendars, Draft, Occasion, Written
from cortex.services.calendars.calendars import UserCalendars
from tests.dav_servers import PASSWORD, DavServer, event, radicale, xandikos
from tests.living_house import LivingHouse, living_house
from tests.still_clock import StillClock

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
WEEK = (datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 7, tzinfo=UTC))
RUN = ["DTSTART:20261201T090000Z", "DTEND:20261201T100000Z", "RRULE:FREQ=DAILY;COUNT=4"]
MOST = 10  # points at which a life may end
TWELVE = Draft(starts="2026-12-02T12:00", ends="2026-12-02T13:00", zone="UTC")


class Killed(BaseException):
    """The process dies here. No `except Exception` on the way holds it up."""


@dataclass
class Life:
    """Dies at point number `at` of those that it meets: two for each request. 0: at none."""

    at: int = 0
    met: int = 0

    def point(self) -> None:
        self.met += 1
        if self.met == self.at:
            raise Killed


class Mortal:
    """A connection of such a life."""

    def __init__(self, connection: Any, life: Life) -> None:
        self._connection, self._life = connection, life

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._connection, name)
        if name == "close":
            return method

        async def asked(*given: Any, **named: Any) -> Any:
            self._life.point()
            answer = await method(*given, **named)
            self._life.point()
            return answer

        return asked


@pytest.fixture(params=[radicale, pytest.param(xandikos, marks=pytest.mark.full)], scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with request.param(tmp_path_factory.mktemp("dav")) as running:
        yield running


@pytest.fixture
async def house(server: DavServer, tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home", clock=StillClock(NOW), calendar_servers=server.place) as opened:
        yield opened


def alive(house: LivingHouse, life: Life) -> UserCalendars:
    """The person's calendars in this life."""
    kept = house.cortex.calendars_of(house.admin.id)
    assert isinstance(kept, UserCalendars)

    def connect(place: Place) -> Any:
        return Mortal(kept.accounts.connect(place), life)

    return replace(kept, accounts=replace(kept.accounts, connect=connect))


async def dates(house: LivingHouse, name: str) -> list[str]:
    found = await house.cortex.calendars_of(house.admin.id).between(*WEEK)
    return [f"{one.starts_at:%d %H} {one.title}" for one in found if one.calendar.name == name]


Ready = Callable[[Calendars, str, Sequence[Occasion]], Awaitable[Written]]


async def add(calendars: Calendars, id: str, _: Sequence[Occasion]) -> Written:
    draft = Draft(title="Piano", starts="2026-12-03T16:00", ends="2026-12-03T17:00", zone="UTC", rule="FREQ=WEEKLY")
    return await calendars.ready_new(id, "new@cortex", draft)


async def change_one(calendars: Calendars, _: str, found: Sequence[Occasion]) -> Written:
    return await calendars.ready_change(found[1], TWELVE, all_dates=False)


async def change_all(calendars: Calendars, _: str, found: Sequence[Occasion]) -> Written:
    return await calendars.ready_change(found[1], TWELVE, all_dates=True)


async def remove_one(calendars: Calendars, _: str, found: Sequence[Occasion]) -> Written:
    return await calendars.ready_removal(found[1], all_dates=False)


async def remove_all(calendars: Calendars, _: str, found: Sequence[Occasion]) -> Written:
    return await calendars.ready_removal(found[1], all_dates=True)


STOOD = ["01 09 Run", "02 09 Run", "03 09 Run", "04 09 Run"]
CASES: dict[Ready, list[str]] = {
    add: ["01 09 Run", "02 09 Run", "03 09 Run", "03 16 Piano", "04 09 Run"],
    change_one: ["01 09 Run", "02 12 Run", "03 09 Run", "04 09 Run"],
    change_all: ["01 12 Run", "02 12 Run", "03 12 Run", "04 12 Run"],
    remove_one: ["01 09 Run", "03 09 Run", "04 09 Run"],
    remove_all: [],
}


@pytest.mark.parametrize("ready", CASES, ids=lambda one: one.__name__)
async def test_a_killed_change_is_made_once(house: LivingHouse, server: DavServer, ready: Ready) -> None:
    name = ready.__name__.replace("_", "")
    server.put(server.make(name), "run", *event("run", "Run", *RUN))
    account = await house.cortex.calendar_accounts.add_server(house.admin, server.base, "ann", PASSWORD)
    await house.cortex.calendar_sync.sync(house.admin.id, account)
    for at in range(1, MOST):
        assert await dates(house, name) == STOOD
        life = Life(at)
        written = await ready(house.cortex.calendars_of(house.admin.id), *await there(house, name))
        try:
            await alive(house, life).write(written)
        except Killed:
            version = await alive(house, Life()).write(written)
        else:
            assert at > 3, "a change is at least a request that writes and one that reads"
            break
        assert await dates(house, name) == CASES[ready]
        await house.cortex.calendar_sync.sync(house.admin.id, account)
        assert await dates(house, name) == CASES[ready]
        await taken_back(house, written, version)
        assert await dates(house, name) == STOOD
    else:
        pytest.fail("it has more points than are looked at")


async def there(house: LivingHouse, name: str) -> tuple[str, list[Occasion]]:
    calendars = house.cortex.calendars_of(house.admin.id)
    found = [one for one in await calendars.between(*WEEK) if one.calendar.name == name]
    return found[0].calendar.id, found


async def taken_back(house: LivingHouse, written: Written, version: str) -> None:
    """Dies once behind the request that writes, and is asked again."""
    with pytest.raises(Killed):
        await alive(house, Life(2)).put_back(written, version)
    await alive(house, Life()).put_back(written, version)
