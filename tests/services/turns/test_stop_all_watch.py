"""Whoever looks after stops and turns goes on when the database fails in the middle of a look."""

import asyncio
import logging
import shutil
from pathlib import Path

import pytest
from sqlalchemy import text

from cortex.engine.config import AT_ONCE
from cortex.engine.dbos import Engine
from cortex.engine.lives import LIVES_MAX
from cortex.storage.halts import HaltsRepository
from tests.databases import wear_out_open_runs
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S

EACH_LOOK = ("stop all: failed, retrying", "turn queue: database error, retrying")


async def _rename(house: LivingHouse, before: str, after: str) -> None:
    async with house.cortex.runtime.db.session_scope() as session:
        await session.execute(text(f"ALTER TABLE {before} RENAME TO {after}"))


async def _in_force(house: LivingHouse) -> set[str]:
    return {halt.scope for halt in await house.cortex.runtime.db.repository(HaltsRepository).list()}


async def test_a_stop_is_heeded_after_a_look_that_failed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with living_house(tmp_path / "home") as house:
        stops = house.cortex.stop_all
        await _rename(house, "turns", "turns_away")
        await stops.order(house.admin, house.member)
        async with asyncio.timeout(PATIENCE_S):
            while not all(words in caplog.text for words in EACH_LOOK):
                assert "background task failed" not in caplog.text
                await asyncio.sleep(0.05)
        await _rename(house, "turns_away", "turns")
        (tmp_path / "home" / "STOP").touch()
        async with asyncio.timeout(PATIENCE_S):
            while "everybody" not in await _in_force(house):  # noqa: ASYNC110 - what is waited for is told by no event
                await asyncio.sleep(0.05)
        await stops.release(house.admin, "everybody")
        await stops.release(house.admin, house.member.id)
        await house.say(await house.conversation(), "hello")


@pytest.mark.names_its_database("a kill is a copy of the files of SQLite")
async def test_restarts_while_everything_is_stopped_end_no_message_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, is_held = tmp_path / "home", asyncio.Event()
    async with living_house(home, offline_delay_ms=300) as house:
        for _ in range(AT_ONCE["chat"]):
            cid = await house.conversation()
            await house.cortex.chat.send_message(house.admin, cid, "hello")
            await house.until(cid, "part.start")
        waits = await house.conversation()
        await house.cortex.chat.send_message(house.admin, waits, "hello")
        await house.cortex.stop_all.order(house.admin, None)
    hold = Engine.hold

    async def noted(engine: Engine) -> None:
        await hold(engine)
        is_held.set()

    monkeypatch.setattr(Engine, "hold", noted)
    wear_out_open_runs(home, LIVES_MAX - 1)
    for life in range(2):
        is_held.clear()
        async with living_house(home):
            await asyncio.wait_for(is_held.wait(), PATIENCE_S)
            home = Path(shutil.copytree(home, tmp_path / f"killed {life}"))
    async with living_house(home) as house:
        await house.cortex.stop_all.release(house.admin, "everybody")
        await house.until(waits, "turn.end", state="done")
