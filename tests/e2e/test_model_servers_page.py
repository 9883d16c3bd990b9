"""Reasoning with tools through the page, once a protocol, against servers that refuse what the real ones refuse."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from cortex.storage.tasks import TasksRepository
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.living_house import LivingHouse
from tests.model_servers.rows import row_of
from tests.model_servers.server import Double
from tests.model_servers.spoken import Said, Use
from tests.served_house import served_house

MILK = Use(tool="task_create", arguments={"title": "Milk", "list_name": "shopping"})
BREAD = Use(tool="task_create", arguments={"title": "Bread", "list_name": "shopping"})
LOOK = Use(tool="task_list", arguments={"list_name": "shopping"})
PROTOCOLS: dict[str, tuple[str, dict[str, Any]]] = {  # row -> model, and what goes with it
    "openrouter": ("google/gemini-3-pro-preview", {"cache": {"late_tools": "bridge"}}),
    "responses": ("gpt-5.4", {"cache": {"caches": True, "late_tools": "native"}}),
    "anthropic": ("claude-sonnet-4-5", {"extra": {"thinking": True}}),
}


@dataclass(frozen=True, slots=True)
class Page:
    """Where the page is, for `Caller`."""

    origin: str


async def settle(house: LivingHouse, double: Double, model: str, more: dict[str, Any]) -> None:
    row = double.row
    form = {"name": "thinker", "provider": row.provider, "model": model, "base_url": double.origin + row.path}
    await house.cortex.models.save(house.admin, {**form, "api_key": double.api_key, **more})


@pytest.mark.parametrize("row_id", PROTOCOLS)
async def test_thinking_with_tools_over_two_turns_goes_through_the_page(tmp_path: Path, row_id: str) -> None:
    model, more = PROTOCOLS[row_id]
    row = row_of(row_id).with_model(model)
    with Double(row) as double:
        double.begin(row)
        double.say(
            Said(thinking="They want milk and bread.", text="On it.", calls=(MILK, BREAD)),
            Said(thinking="Both are there.", text="Milk and bread are on your list."),
            Said(thinking="I had better look.", calls=(LOOK,)),
            "It holds milk and bread.",
        )
        async with served_house(tmp_path / "home") as (house, origin):
            await settle(house, double, model, more)
            pages = await asyncio.to_thread(_talk, origin)
            tasks = await house.cortex.runtime.db.repository(TasksRepository, house.admin.id).list()
        assert double.refused == []
        assert (double.broken, list(double.script)) == ("", [])
    assert {task.title for task in tasks} == {"Milk", "Bread"}
    for words in ("They want milk and bread.", "Milk and bread are on your list.", "It holds milk and bread."):
        assert words in pages, words
    assert "Something went wrong" not in pages


def _talk(origin: str) -> str:
    with Caller(cast("Daemon", Page(origin))) as ada:  # of a daemon it reads the address alone
        ada.log_in()
        place = ada.send("new", "add milk and bread to my shopping list")
        ada.until_idle(place)
        ada.send(place, "what is on my shopping list?")
        return ada.until_idle(place)
