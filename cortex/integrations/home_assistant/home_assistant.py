"""Home Assistant for one person: the port that the tools use, over the index, with what this person may see and move.

What is not allowed is not there: not found, not near, not read, not called, and not named in a call's data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from cortex.base.clock import now
from cortex.base.errors import ToolFailed
from cortex.integrations.home_assistant.allowed import AllowList
from cortex.integrations.home_assistant.history import state_history
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.integrations.home_assistant.index import HouseIndex
from cortex.integrations.home_assistant.names import NameBook, name_book
from cortex.integrations.home_assistant.server import HomeServer, HomeTrouble
from cortex.integrations.home_assistant.services import ServiceBook, check_against
from cortex.integrations.home_assistant.socket import HomeSocket
from cortex.ports.home_assistant import Entity, FoundEntities, NamedEntities, StateChange

CALL_S = 15.0
SETTLE_S = 2.0  # how long an expected state is waited for, once Home Assistant has said that it is done
SOON_S = 0.4  # and where it is not known which
ENDS = {  # the states in which an entity stands after a service, by the service's second half
    "turn_on": {"on"},
    "turn_off": {"off"},
    "open_cover": {"open", "opening"},
    "close_cover": {"closed", "closing"},
    "lock": {"locked", "locking"},
    "unlock": {"unlocked", "unlocking"},
    "open_valve": {"open", "opening"},
    "close_valve": {"closed", "closing"},
    "media_pause": {"paused", "idle", "off"},
    "start": {"cleaning", "active", "mowing"},
}
ON_IS_NOT_ON = frozenset({"scene", "climate", "media_player", "water_heater", "humidifier", "script"})


class HomeConnection:
    """The part of one Home Assistant that all people share: its index, the names, the services."""

    def __init__(self, server: HomeServer) -> None:
        self.server = server
        self.index = HouseIndex(server)
        self.services = ServiceBook()
        self._book: tuple[int, NameBook] | None = None

    async def named(self) -> tuple[House, NameBook]:
        """The house as it stands, and its names, made once for each edition of it. Raises HomeTrouble."""
        house = await self.index.house()
        if self._book is None or self._book[0] != house.edition:
            self._book = (house.edition, await name_book(house))
        return house, self._book[1]


class PersonsHome:
    """The `HomeAssistant` and the `ServiceChecks` of the tools for one person."""

    def __init__(self, connection: HomeConnection, allowed: AllowList) -> None:
        self._connection = connection
        self._allowed = allowed

    async def find(self, words: str, domain: str, area: str, most: int) -> FoundEntities:
        """Entities that fit all of it, best first."""
        house, book = await self._connection.named()
        ids = book.find(house, words, domain, area, self._may(house))
        return FoundEntities(entities=tuple(_entity_of(house, id) for id in ids[:most]), total=len(ids))

    async def resolve(self, words: str, domains: Sequence[str]) -> NamedEntities:
        """Return what the words mean for certain, or what comes near."""
        house, book = await self._connection.named()
        meant = book.resolve(house, words, domains, self._may(house))
        entities = tuple(_entity_of(house, id) for id in meant.ids)
        return NamedEntities(entities=entities, near=tuple(_entity_of(house, id) for id in meant.near))

    async def read(self, ids: Sequence[str]) -> Sequence[Entity]:
        """As they stand: the index asks Home Assistant first, which answers behind all that it has told."""
        house = await self._connection.index.house()
        may = self._may(house)
        return [_entity_of(house, id) for id in ids if (one := house.entities.get(id)) is not None and may(one)]

    async def call(self, service: str, ids: Sequence[str], data: Mapping[str, object]) -> Sequence[Entity]:
        """Check the call, make it, wait until the states have followed, and read them."""
        house, socket = await self._checked(service, ids, data)
        domain, _, verb = service.partition(".")
        fields: dict[str, Any] = {"domain": domain, "service": verb, "service_data": dict(data)}
        target = {"target": {"entity_id": list(ids)}} if ids else {}
        before = {id: house.entities[id] for id in ids}
        try:
            await socket.command("call_service", timeout_s=CALL_S, **fields, **target)
        except HomeTrouble as error:
            words = f"{service} was sent, and Home Assistant did not say that it is done: it may have happened."
            raise ToolFailed(f"{words} Look with ha_get_state before trying again.") from error
        expected = ENDS.get(verb) if not (verb.startswith("turn_") and domain in ON_IS_NOT_ON) else None
        await self._connection.index.wait_until(
            partial(_have_followed, before, expected), SETTLE_S if expected else SOON_S
        )
        return await self.read(ids) if ids else ()

    async def check(self, service: str, ids: Sequence[str], data: Mapping[str, object]) -> None:
        """Check the call as `call` does, and leave it at that."""
        await self._checked(service, ids, data)

    async def history(self, id: str, hours: int) -> Sequence[StateChange]:
        """Its states of the last hours; the place of an unknown one is the same as of one that is not allowed."""
        house = await self._connection.index.house()
        one = house.entities.get(id)
        if one is None or not self._may(house)(one):
            raise _absent(id)
        until = now()
        return await state_history(self._connection.server, id, until - timedelta(hours=hours), until)

    async def _checked(self, service: str, ids: Sequence[str], data: Mapping[str, object]) -> tuple[House, HomeSocket]:
        """The house and the connection to call it by; ToolFailed for what would not go."""
        house = await self._connection.index.house()
        self._check(house, service, ids, data)
        socket = await self._connection.index.client.socket()
        await self._connection.services.check(socket, service, data)
        check_against([house.entities[id] for id in ids], data)
        return house, socket

    def _may(self, house: House) -> Callable[[HouseEntity], bool]:
        return self._allowed.in_house(house)

    def _check(self, house: House, service: str, ids: Sequence[str], data: Mapping[str, object]) -> None:
        """ToolFailed for whatever of the call is not there for this person."""
        may = self._may(house)
        for id in ids:
            if id not in house.entities or not may(house.entities[id]):
                raise _absent(id)
        if self._allowed.is_everything:
            return
        for text in _texts(data):
            for id in text.replace(",", " ").split():
                if id in house.entities and not may(house.entities[id]):
                    raise _absent(id)
        own = house.entities.get(service)
        if not ids and (own is None or own.domain != "script" or not may(own)):
            raise ToolFailed(f"{service} works on the whole house, which is not yours to set. Name a device in target.")


def _have_followed(
    before: Mapping[str, HouseEntity], expected: set[str] | None, now: Mapping[str, HouseEntity]
) -> bool:
    """Tell whether each stands as expected, or where nothing is: whether each has changed."""
    if expected is not None:
        return all(now[id].state in expected for id in before if id in now and now[id].state != "unavailable")
    return all(id not in now or now[id] is not old for id, old in before.items())


def _absent(id: str) -> ToolFailed:
    return ToolFailed(f"{id[:120]!r} is not in Home Assistant. Look with ha_get_states.")


def _entity_of(house: House, id: str) -> Entity:
    one = house.entities[id]
    area = house.areas.get(one.area_id)
    return Entity(
        id=one.id,
        name=one.name,
        area=area.name if area is not None else "",
        state=one.state,
        unit=one.unit,
        attributes=one.attributes,
        changed_at=one.changed_at,
    )


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield str(key)
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
