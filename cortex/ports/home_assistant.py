"""The socket of the house's devices: Home Assistant as the tools see it. Its index of entities and areas is fresh.

A house may have 3,000 entities: nothing here ever hands over all of them, and none enters a prompt unasked.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct, field


class Entity(Struct, frozen=True, kw_only=True):
    """A device or value of the house as it stands; `attributes` are portable JSON, read by name only."""

    id: str
    name: str
    area: str
    state: str
    unit: str
    attributes: Mapping[str, object]
    changed_at: datetime


class NamedEntities(Struct, frozen=True, kw_only=True):
    """The entities that a person's words certainly mean, or none and those that come `near`."""

    entities: tuple[Entity, ...] = ()
    near: tuple[Entity, ...] = ()


class FoundEntities(Struct, frozen=True, kw_only=True):
    """Up to the number asked for, best first, of `total` that fit."""

    entities: tuple[Entity, ...]
    total: int


class StateChange(Struct, frozen=True, kw_only=True):
    """A state that an entity took on."""

    state: str
    at: datetime


class HomeAssistant(Protocol):
    """A configured Home Assistant. Raises ToolFailed, within its time limit, when it does not answer or refuses."""

    async def find(self, words: str, domain: str, area: str, most: int) -> FoundEntities:
        """Entities that fit the words, the domain ("light") and the area; an empty one narrows nothing."""
        ...

    async def resolve(self, words: str, domains: Sequence[str]) -> NamedEntities:
        """Ids, names, an area ("kitchen lights") or "all", within these domains (none given: any), typos allowed."""
        ...

    async def read(self, ids: Sequence[str]) -> Sequence[Entity]:
        """These entities as they are now, asked afresh; unknown ids are left out."""
        ...

    async def call(self, service: str, ids: Sequence[str], data: Mapping[str, object]) -> Sequence[Entity]:
        """Call `domain.service` on these entities (none: the service needs no target); how they stand afterwards."""
        ...

    async def history(self, id: str, hours: int) -> Sequence[StateChange]:
        """The states that it had over the last hours, oldest first; the first is the one that held when they began."""
        ...


class ServiceChecks(Protocol):
    """Looks at a call ahead of it, for one person; nothing is moved. Raises ToolFailed as `HomeAssistant` does."""

    async def check(self, service: str, ids: Sequence[str], data: Mapping[str, object]) -> None:
        """ToolFailed, which says what there is instead, for an unknown service, entity or field, and a wrong value."""
        ...


class HouseOrder(Struct, frozen=True, kw_only=True):
    """One service call: `domain.service`, on the entities of these ids, with this data."""

    service: str
    ids: tuple[str, ...]
    data: Mapping[str, object] = field(default_factory=dict)


class HouseCommand(Struct, frozen=True, kw_only=True):
    """The certain order or question of a message. `done`: what to say, in its language, once that is done.

    `looks`: the ids of the entities whose state is asked for, where nothing is ordered.
    """

    orders: tuple[HouseOrder, ...]
    done: str
    looks: tuple[str, ...] = ()


class HouseCommands(Protocol):
    """Reads plain commands for one person, from the house as it is known here, and by its own sentences."""

    async def understand(self, text: str) -> HouseCommand | None:
        """Return what the text orders or asks for certain, of what this person may see and move; None for all else."""
        ...
