"""A Home Assistant in memory: answers as the real one does, over a house of values; and what reads commands for it."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cortex.app import Cortex
from cortex.base.errors import ToolFailed
from cortex.integrations.home_assistant.commands.understand import Commands
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.ports.home_assistant import (
    Entity,
    FoundEntities,
    HomeAssistant,
    HouseCommand,
    HouseCommands,
    NamedEntities,
    ServiceChecks,
    StateChange,
)
from cortex.services.integrations.integrations import Integrations
from cortex.services.scope import Opening
from tests.databases import copy_home, house_settings
from tests.living_house import LivingHouse, peopled_home

MOVES = {"turn_on": "on", "turn_off": "off", "open_cover": "opening", "close_cover": "closing", "lock": "locked"}


@dataclass
class PlainHomeAssistant:
    """Implements `HomeAssistant` and `HouseCommands`. `failure`: why calls fail; `is_off`: no plain commands."""

    house: House
    allowed: Callable[[HouseEntity], bool] = lambda _: True
    failure: str = ""
    is_off: bool = False
    calls: list[tuple[str, tuple[str, ...], dict[str, object]]] = field(default_factory=list)
    commands: Commands = field(default_factory=Commands, repr=False)

    async def understand(self, text: str) -> HouseCommand | None:
        return None if self.is_off else self.commands.understand(text, self.house, self.allowed)

    async def history(self, id: str, hours: int) -> Sequence[StateChange]:
        return ()

    async def find(self, words: str, domain: str, area: str, most: int) -> FoundEntities:
        rows = [self._entity(one) for one in self.house.entities.values() if one.domain.startswith(domain)]
        return FoundEntities(entities=tuple(rows[:most]), total=len(rows))

    async def resolve(self, words: str, domains: Sequence[str]) -> NamedEntities:
        ids = [id.strip() for id in words.split(",")]
        return NamedEntities(entities=tuple(await self.read(ids)))

    async def read(self, ids: Sequence[str]) -> Sequence[Entity]:
        return [self._entity(self.house.entities[id]) for id in ids if id in self.house.entities]

    async def check(self, service: str, ids: Sequence[str], data: Mapping[str, object]) -> None:
        if self.failure:
            raise ToolFailed(self.failure)

    async def call(self, service: str, ids: Sequence[str], data: Mapping[str, object]) -> Sequence[Entity]:
        if self.failure:
            raise ToolFailed(self.failure)
        self.calls.append((service, tuple(ids), dict(data)))
        state = MOVES.get(service.partition(".")[2])
        moved = {id: replace(one, state=state or one.state) for id in ids for one in [self.house.entities[id]]}
        self.house = replace(self.house, entities={**self.house.entities, **moved})
        return await self.read(ids)

    def _entity(self, one: HouseEntity) -> Entity:
        area = self.house.areas.get(one.area_id)
        return Entity(
            id=one.id,
            name=one.name,
            area=area.name if area else "",
            state=one.state,
            unit=one.unit,
            attributes=one.attributes,
            changed_at=one.changed_at,
        )


@dataclass(frozen=True)
class Opened(LivingHouse):
    devices: PlainHomeAssistant


@asynccontextmanager
async def opened(home: Path, devices: PlainHomeAssistant) -> AsyncIterator[Opened]:
    """A daemon whose Home Assistant is this one."""

    class WithHouse(Cortex):
        @cached_property
        def integrations(self) -> Integrations:
            return replace(super().integrations, kinds=())  # what is wired by hand is set up on no card

        @cached_property
        def tool_clients(self) -> Mapping[type[Any], Opening]:
            mine = dict.fromkeys((HomeAssistant, HouseCommands, ServiceChecks), lambda _: devices)
            return {**super().tool_clients, **mine}

    copy_home(await peopled_home(), home)
    async with WithHouse.open(house_settings(home=home, port=0, offline_delay_ms=0, shutdown_grace_s=1.0)) as cortex:
        yield Opened(cortex, await cortex.accounts.named("ada"), await cortex.accounts.named("bob"), devices)
