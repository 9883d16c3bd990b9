"""The composition root: a new service, and a new thing that tools may open, is one property of one class."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from cortex.app import Cortex
from cortex.base.errors import ToolFailed
from cortex.compose.services import Services
from cortex.services.content.tasks import TasksService
from cortex.services.runtime import Runtime
from cortex.services.scope import Opening
from tests.databases import house_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Bakery:
    """A service that nobody knew before."""

    runtime: Runtime
    tasks: TasksService

    def for_user(self, user_id: str) -> "Bakery":
        return self


class WithBakery(Cortex):
    @cached_property
    def bakery(self) -> Bakery:
        return Bakery(runtime=self.runtime, tasks=self.tasks)

    @cached_property
    def tool_clients(self) -> Mapping[type[Any], Opening]:
        return {**super().tool_clients, Bakery: self.bakery.for_user}


async def test_a_new_service_is_one_property_and_tools_may_open_it(tmp_path: Path) -> None:
    async with WithBakery.at_rest(house_settings(tmp_path)) as cortex:
        assert isinstance(cortex, WithBakery)
        assert cortex.bakery is cortex.bakery
        assert cortex.bakery.tasks is cortex.tasks
        assert cortex.scope.provide(Bakery, "ada") is cortex.bakery
        assert "Bakery" in cortex.wired


async def test_what_nobody_wired_is_not_set_up(tmp_path: Path) -> None:
    async with Cortex.at_rest(house_settings(tmp_path)) as cortex:
        assert "Bakery" not in cortex.wired
        with pytest.raises(ToolFailed, match="not set up"):
            cortex.scope.provide(Bakery, "ada")


async def test_every_part_can_be_made_whichever_is_asked_for_first(tmp_path: Path) -> None:
    names = sorted(
        name for one in Services.__mro__ for name, value in vars(one).items() if isinstance(value, cached_property)
    )
    assert len(names) > 50
    for first in names:
        async with Cortex.at_rest(house_settings(tmp_path), is_migrating=False) as cortex:
            assert getattr(cortex, first) is getattr(cortex, first)
