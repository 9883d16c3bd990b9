"""The nightly backup: at 3 in the server's zone, soon after a start that follows a missed night, again on failure."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cortex.base.errors import DatabaseUnavailable
from cortex.base.settings import Settings
from cortex.services.backup.backups import Backups
from cortex.services.backup.nightly import NightlyBackup
from tests.databases import house_settings, is_on_postgresql
from tests.living_house import living_house

pytestmark = pytest.mark.skipif(is_on_postgresql(), reason="the times are the same; needs pg_dump")


class Clock:
    """A clock that only sleeping moves; after `most` sleeps the loop is cancelled."""

    def __init__(self, at: datetime, most: int) -> None:
        self.at, self.left = at, most

    def __call__(self) -> datetime:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.left -= 1
        if self.left < 0:
            raise asyncio.CancelledError
        self.at += timedelta(seconds=seconds)


async def _yes() -> bool:
    return True


async def _no() -> bool:
    return False


async def _away() -> bool:
    raise DatabaseUnavailable("The database does not answer.")


async def _keep(backups: Backups, settings: Settings, clock: Clock, has_users: Callable[[], Awaitable[bool]]) -> None:
    nightly = NightlyBackup(settings=settings, backups=backups, has_users=has_users, clock=clock, sleep=clock.sleep)
    await nightly.keep()


async def _kept(
    home: Path, clock: Clock, has_users: Callable[[], Awaitable[bool]] = _yes, **given: object
) -> list[str]:
    settings = house_settings(home, **given)
    backups = Backups(settings, clock=clock)
    with pytest.raises(asyncio.CancelledError):
        await _keep(backups, settings, clock, has_users)
    return [f"{one.made_at:%m-%d %H:%M}" for one in await backups.kept()]


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    async with living_house(tmp_path / "home") as house:
        return house.cortex.settings.home


async def test_one_soon_after_the_start_and_one_every_night(home: Path) -> None:
    """In Berlin the clock goes back on 25 October 2026, so that 3 o'clock is at 1 UTC and then at 2 UTC."""
    clock = Clock(datetime(2026, 10, 23, 12, tzinfo=UTC), most=4)
    kept = await _kept(home, clock, time_zone="Europe/Berlin")
    assert kept == ["10-26 02:00", "10-25 02:00", "10-23 12:05"]  # 13 hours after the first a second is too soon


async def test_a_home_that_is_not_set_up_does_not_push_the_days_backup_out(home: Path, tmp_path: Path) -> None:
    kept_in = str(tmp_path / "kept")
    await _kept(home, Clock(datetime(2026, 11, 23, 6, tzinfo=UTC), most=1), backup_to=kept_in)
    new = tmp_path / "new"
    async with living_house(new):
        pass
    clock = Clock(datetime(2026, 11, 23, 12, tzinfo=UTC), most=2)
    assert await _kept(new, clock, _no, backup_to=kept_in) == ["11-23 06:05"]


async def test_a_failure_is_tried_again_in_an_hour(home: Path) -> None:
    (home / "backups").write_text("in the way")
    clock = Clock(datetime(2026, 11, 23, 12, tzinfo=UTC), most=1)
    settings = house_settings(home)
    backups = Backups(settings, clock=clock)
    with pytest.raises(asyncio.CancelledError):
        await _keep(backups, settings, clock, _yes)
    assert backups.state().error
    (home / "backups").unlink()
    clock.left = 2
    with pytest.raises(asyncio.CancelledError):
        await _keep(backups, settings, clock, _yes)
    assert backups.state().error == ""


async def test_a_database_that_is_away_at_the_look_ends_no_later_backup(home: Path) -> None:
    kept = await _kept(home, Clock(datetime(2026, 11, 23, 12, tzinfo=UTC), most=3), _away)
    assert kept == ["11-25 03:00", "11-23 12:05"]


async def test_it_can_be_switched_off(home: Path) -> None:
    clock = Clock(datetime(2026, 11, 23, 12, tzinfo=UTC), most=0)
    settings = house_settings(home, backup_nightly=False)
    await _keep(Backups(settings), settings, clock, _yes)
    assert clock.left == 0


async def test_a_home_that_takes_no_file_ends_no_later_backup(home: Path) -> None:
    """A disk that is full refuses the note of the failure as well; the loop goes on, for it fills and empties again."""
    (home / ".backup-state.json.new").mkdir()
    (home / "backups").write_text("in the way")

    class Mended(Clock):
        async def sleep(self, seconds: float) -> None:
            if self.left == 1:
                (home / ".backup-state.json.new").rmdir()
                (home / "backups").unlink()
            goes_on = super().sleep
            await goes_on(seconds)

    kept = await _kept(home, Mended(datetime(2026, 11, 23, 12, tzinfo=UTC), most=2))
    assert kept == ["11-24 03:00"]
