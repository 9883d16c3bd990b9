"""A Home Assistant in memory: answers as the real one does, over a house of values; and what reads commands for it."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.errors import ToolFailed
from cortex.integrations.home_assistant.client import HomeClient
from cortex.integrations.home_assistant.commands.readings import HomeMessage
from cortex.integrations.home_assistant.commands.sentences import HomeSentences, spoken
from cortex.integrations.home_assistant.commands.understand import PersonsCommands
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.integrations.home_assistant.names import NameBook, name_book
from cortex.integrations.home_assistant.server import server_at
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


class ToldSentences(HomeSentences):
    """Home Assistant's own sentences as it was heard to answer them, by the sentence."""

    def __init__(self, answers: Mapping[str, Any], language: str = "en") -> None:
        super().__init__(HomeClient(server_at("127.0.0.1", "token"), _never))
        self._answers, self._language = answers, language

    async def meaning(self, said: HomeMessage, house: House) -> HouseCommand | None:
        return spoken({"results": [self._answers.get(said.text)]}, said, house, self._language)


async def _never(*_: object) -> None:
    raise AssertionError("nothing is connected here")


def commands_in(
    house: House, may: Callable[[HouseEntity], bool] = lambda _: True, answers: Mapping[str, Any] | None = None
) -> PersonsCommands:
    """What reads commands for a house of values; `answers`: of Home Assistant's own sentences."""
    return reader_of(lambda: house, may, answers or {})


def reader_of(
    house: Callable[[], House], may: Callable[[HouseEntity], bool], answers: Mapping[str, Any]
) -> PersonsCommands:
    """The same for a house whose states change, and its names do not."""
    books: list[NameBook] = []

    async def named() -> tuple[House, NameBook]:
        if not books:
            books.append(await name_book(house()))
        return house(), books[0]

    return PersonsCommands(named=named, may=lambda _: may, sentences=ToldSentences(answers, house().language))


@dataclass
class PlainHomeAssistant:
    """Implements `HomeAssistant` and `HouseCommands`. `failure`: why calls fail; `is_off`: no plain commands."""

    house: House
    allowed: Callable[[HouseEntity], bool] = lambda _: True
    failure: str = ""
    is_off: bool = False
    calls: list[tuple[str, tuple[str, ...], dict[str, object]]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def reader(self) -> PersonsCommands:
        return reader_of(lambda: self.house, lambda one: self.allowed(one), self.answers)

    async def understand(self, text: str) -> HouseCommand | None:
        return None if self.is_off else await self.reader.understand(text)

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
