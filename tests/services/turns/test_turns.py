"""What becomes of turns over restarts of the house."""

from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.base.settings import load_settings
from cortex.engine.lives import LIVES_MAX
from cortex.services.turns.done_before import NO_CALL
from cortex.services.turns.queue import LOST, OUTDATED
from tests.databases import mark_open_runs, wear_out_open_runs
from tests.living_house import living_house


def age(home: Path) -> None:
    """As if another version had left the runs that have not ended."""
    mark_open_runs(home, application_version="cortex-0")


async def test_a_turn_of_another_version_is_interrupted_and_offers_to_go_on(tmp_path: Path) -> None:
    async with living_house(tmp_path, offline_delay_ms=300) as house:
        cid = await house.conversation()
        left = await house.cortex.chat.send_message(house.admin, cid, "hello")
        behind = await house.cortex.chat.send_message(house.admin, cid, "and what is on my list?")
        await house.until(cid, "part.start")
    age(tmp_path)
    async with living_house(tmp_path) as house:
        end = await house.until(cid, "turn.end", turn=left)
        assert (end.payload["state"], end.payload["can_continue"]) == ("interrupted", True)
        assert [event.payload["text"] for event in await house.events(cid, "notice")] == [f"{OUTDATED} {NO_CALL}"]
        await house.until(cid, "turn.end", turn=behind, state="done")
        assert await house.cortex.runtime.runner.status(left) == "cancelled"
        again = await house.cortex.chat.keep_going(house.admin, left)
        await house.until(cid, "turn.end", turn=again, state="done")


async def test_a_turn_that_the_engine_gave_up_ends_and_offers_to_go_on(tmp_path: Path) -> None:
    async with living_house(tmp_path, offline_delay_ms=300) as house:
        cid = await house.conversation()
        left = await house.cortex.chat.send_message(house.admin, cid, "hello")
        behind = await house.cortex.chat.send_message(house.admin, cid, "and what is on my list?")
        await house.until(cid, "part.start")
    wear_out_open_runs(tmp_path, LIVES_MAX)
    async with living_house(tmp_path) as house:
        end = await house.until(cid, "turn.end", turn=left)
        assert (end.payload["state"], end.payload["can_continue"]) == ("interrupted", True)
        assert [event.payload["text"] for event in await house.events(cid, "notice")] == [f"{LOST} {NO_CALL}"]
        await house.until(cid, "turn.end", turn=behind, state="done")


@pytest.mark.names_its_database("a file of SQLite is in the way")
async def test_a_house_that_cannot_launch_leaves_nothing_open(tmp_path: Path) -> None:
    async with living_house(tmp_path):
        pass  # there are people from here on
    (tmp_path / "engine.db").unlink()
    (tmp_path / "engine.db").mkdir()
    with pytest.raises(Exception, match="unable to open database file"):
        async with Cortex.open(load_settings(None, home=tmp_path, port=0)):
            raise AssertionError("must not be reached")
    (tmp_path / "engine.db").rmdir()
    async with living_house(tmp_path) as house:
        await house.say(await house.conversation(), "hello")
