import asyncio
import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError

from cortex.app import Cortex
from cortex.base.settings import load_settings
from cortex.engine.dbos import Engine
from cortex.services.health.housekeeping import EVERY_S, FIRST_AFTER_S, RUNS_KEPT, Housekeeping
from cortex.services.integrations.query_results import QueryResults
from cortex.services.notices.notices import NoticeDraft
from cortex.storage.schema import ActionLinkTable
from tests.living_house import living_house
from tests.patience import PATIENCE_S
from tests.still_clock import StillClock

DAYS = 3


class Rounds:
    """Counts the rounds by their engine half; the second one fails."""

    def __init__(self) -> None:
        self.before: list[datetime] = []

    async def prune(self, before: datetime) -> int:
        self.before.append(before)
        if len(self.before) == 2:
            raise OperationalError("DELETE", {}, Exception("database is locked"))
        return 5


async def test_a_round_a_minute_after_the_start_then_daily_whatever_happens(
    clock: StillClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rounds, slept = Rounds(), list[float]()
    started = clock()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > DAYS:
            raise asyncio.CancelledError
        clock.forward(seconds=seconds)

    async with Cortex.at_rest(load_settings(None, home=tmp_path / "home"), clock=clock) as cortex:
        await cortex.accounts.setup_link()
        keeping = Housekeeping(
            runtime=cortex.runtime,
            accounts=cortex.accounts,
            audit_log=cortex.audit_log,
            prune=rounds.prune,
            sleep=sleep,
        )
        with pytest.raises(asyncio.CancelledError):
            await keeping.clean_daily()
    assert slept == [FIRST_AFTER_S, EVERY_S, EVERY_S, EVERY_S]
    assert len(rounds.before) == DAYS
    assert (rounds.before[0] + RUNS_KEPT - started).total_seconds() == FIRST_AFTER_S
    assert "database is locked" in caplog.text


async def test_old_links_and_notices_go_with_the_daily_round(tmp_path: Path, clock: StillClock) -> None:
    async with living_house(tmp_path, clock=clock) as house:
        cortex, user_id = house.cortex, house.admin.id
        told = NoticeDraft(key="tea", kind="reminder", title="Tea", text="", actions=("ack",), is_tainted=False)
        old = await cortex.notices.notify(user_id, told)
        await cortex.action_links.made((await cortex.notices.get(user_id, old)).row, "delivery-1")
        engine = house.cortex.runtime.runner
        assert isinstance(engine, Engine)
        keeping = Housekeeping(
            runtime=cortex.runtime, accounts=cortex.accounts, audit_log=cortex.audit_log, prune=engine.prune
        )

        async def left() -> tuple[int, list[str]]:
            async with house.cortex.runtime.db.session_scope(reading=True) as session:
                links = (await session.execute(select(func.count()).select_from(ActionLinkTable))).scalar_one()
            return links, [
                view.row.id for view in (await cortex.notices.page(user_id)).notices if view.row.kind == "reminder"
            ]

        await keeping.go_round()
        assert await left() == (1, [old])
        clock.forward(days=8)
        await keeping.go_round()
        assert await left() == (0, [old])
        new = await cortex.notices.notify(user_id, replace(told, key="more tea"))
        clock.forward(days=83)
        await keeping.go_round()
        assert await left() == (0, [new])


async def test_a_house_throws_away_old_runs_and_nothing_of_its_people(tmp_path: Path, clock: StillClock) -> None:
    async with living_house(tmp_path) as house:
        cid = await house.conversation()
        turn_id = await house.say(cid, "add milk to my shopping list")
        log = await house.events(cid)
        async with asyncio.timeout(PATIENCE_S):
            while await house.cortex.runtime.runner.status(turn_id) != "done":  # noqa: ASYNC110 - it has no event for it
                await asyncio.sleep(0.01)
        spill = tmp_path / house.admin.id / "files" / "results" / "long.txt"
        spill.parent.mkdir(parents=True, exist_ok=True)
        spill.write_text("kept")
        clock.at = house.cortex.runtime.clock() + RUNS_KEPT * 2
        engine = house.cortex.runtime.runner
        assert isinstance(engine, Engine)
        cortex = house.cortex
        later = replace(cortex.runtime, clock=clock)
        await Housekeeping(
            runtime=later, accounts=cortex.accounts, audit_log=cortex.audit_log, prune=engine.prune
        ).go_round()
        assert await house.cortex.runtime.runner.status(turn_id) == "unknown"
        assert await house.events(cid) == log
        assert spill.read_text() == "kept"


async def test_old_results_of_queries_go_and_nothing_else_in_their_folder(tmp_path: Path, clock: StillClock) -> None:
    days = {"0" * 12: 31, "1" * 12: 29, "2" * 12: 0}
    async with Cortex.at_rest(load_settings(None, home=tmp_path), clock=clock) as cortex:
        await cortex.accounts.add_user("Ada", "admin", "tulip quarry lantern 97")
        await cortex.accounts.add_user("Aaron", "member", "tulip quarry lantern 97")
        odd = tmp_path / (await cortex.accounts.named("Aaron")).id / "files"
        odd.mkdir(parents=True)
        (odd / "query-results").write_text("a file where the folder should be")
        own = await cortex.accounts.named("Ada")
        folder = tmp_path / own.id / "files" / "query-results"
        folder.mkdir(parents=True)
        for name, age in [*((f"{name}.csv", age) for name, age in days.items()), ("mine.csv", 400)]:
            (folder / name).write_text("a")
            at = (clock() - timedelta(days=age)).timestamp()
            os.utime(folder / name, (at, at))
        keeping = Housekeeping(
            runtime=cortex.runtime, accounts=cortex.accounts, audit_log=cortex.audit_log, prune=Rounds().prune
        )
        await keeping.go_round()
        assert sorted(one.name for one in folder.iterdir()) == [f"{'1' * 12}.csv", f"{'2' * 12}.csv", "mine.csv"]
        results = QueryResults(home=cortex.homes.home_of(own.id))
        assert await results.prune(None, most=1) == 1
        assert sorted(one.name for one in folder.iterdir()) == [f"{'2' * 12}.csv", "mine.csv"]
