"""What a model's server refused is kept by turns that end together, and never costs an answer."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cortex.base.clock import now
from cortex.base.errors import CortexError, DatabaseUnavailable, DiskFull, UserError
from cortex.services.models.learned import LearnedFacts, ModelFact
from tests.living_house import LivingHouse, living_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as living:
        yield living


async def test_turns_that_learn_together_lose_nothing(house: LivingHouse) -> None:
    form = {"name": "m", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    await house.cortex.models.save(house.admin, form)
    learned = house.cortex.models.learned
    facts = [ModelFact(what="parameter", value=f"p_{at}") for at in range(12)]
    await asyncio.gather(*(learned.learn(house.admin.id, "m", (fact,)) for fact in facts))
    entry = (await house.cortex.models.registry(house.admin)).get("m")
    assert entry is not None
    assert sorted(entry.refused) == sorted(fact.value for fact in facts)


@dataclass
class Away:
    error: Exception

    async def read(self, user_id: str) -> Any:
        raise self.error


@pytest.mark.parametrize("error", [DatabaseUnavailable("Away."), DiskFull("Full."), UserError("A slip."), OSError()])
async def test_what_cannot_be_kept_costs_no_answer(error: Exception) -> None:
    learned = LearnedFacts(store=Away(error), clock=now)  # type: ignore[arg-type]
    await learned.learn("u", "m", (ModelFact(what="tools"),))
    with pytest.raises((CortexError, OSError)):
        await learned.forget("u", "m")
