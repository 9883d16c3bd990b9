"""Keeps the `House` of one Home Assistant fresh: states by one subscription, registries read again when they change.

A change of one entity costs that entity only. Asked while the connection is away it raises, and never answers with
what stood there before. Made by compose, which enters `running` of its client.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cortex.base.clock import ticks_s
from cortex.integrations.home_assistant import registries
from cortex.integrations.home_assistant.client import HomeClient
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.integrations.home_assistant.registries import STATE_CHARACTERS, Registries, moment_of, plain
from cortex.integrations.home_assistant.server import HomeRefusal, HomeServer, HomeTrouble, unanswered
from cortex.integrations.home_assistant.socket import HomeSocket

PING_S = 5.0
SETTLED_S = 6.0  # how long a question waits for a registry that is being read again
DEBOUNCE_S = 0.1
BATCH = 250  # entities at a stretch
MAY_LACK = frozenset({"floor", "label"})  # not in servers older than 2024.3, whose events only admins may hear there

READ = {
    "area": registries.areas_of,
    "floor": registries.floors_of,
    "label": registries.labels_of,
    "device": registries.devices_of,
    "entity": registries.entities_of,
}
FIELDS = {"area": "areas", "floor": "floors", "label": "labels", "device": "devices", "entity": "entities"}


class HouseIndex:
    """The things of the house. `serve` is for the client; everybody else asks `house`."""

    def __init__(self, server: HomeServer) -> None:
        self.client = HomeClient(server, self.serve)
        self._registries = Registries()
        self._entities: dict[str, HouseEntity] = {}
        self._language = "en"
        self._edition = 0
        self._house: House | None = None
        self._stale: set[str] = set()
        self._is_reading = False
        self._asked = asyncio.Event()
        self._moved = asyncio.Event()
        self._backlog: list[Any] | None = None  # events that came ahead of their turn

    async def house(self) -> House:
        """The house at this moment, with every change that Home Assistant has told of until now. Raises HomeTrouble."""
        await self._listen()
        try:
            async with asyncio.timeout(SETTLED_S):
                while self._stale or self._is_reading:
                    await self._moved.wait()
        except TimeoutError as error:
            raise unanswered(SETTLED_S) from error
        await self.client.socket()
        if self._house is None:
            known = self._registries
            self._house = House(
                entities=dict(self._entities),
                areas=known.areas,
                floors=known.floors,
                labels=known.labels,
                language=self._language,
                edition=self._edition,
            )
        return self._house

    async def _listen(self) -> None:
        """Ask and hear the answer: what was told ahead of it is here then, and a dead connection is noticed."""
        for is_last in (False, True):
            socket = await self.client.socket()
            try:
                await socket.command("ping", timeout_s=PING_S)
            except HomeTrouble as trouble:
                if is_last or trouble.kind != "lost":
                    raise
            else:
                return

    async def wait_until(self, done: Callable[[Mapping[str, HouseEntity]], bool], most_s: float) -> bool:
        """Wait until the states are so, at most that long; whether they are."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                while not done(self._entities):
                    await self._moved.wait()
        return done(self._entities)

    async def serve(self, socket: HomeSocket, ready: Callable[[], None]) -> None:
        """Read all of it over this connection, say that it is ready, and keep it fresh until cancelled."""
        self._stale, self._is_reading = set(), False
        self._entities, self._house, self._backlog = {}, None, []
        for name in READ:
            await self._follow(socket, name)
        for name in READ:
            await self._read(socket, name)
        config = await socket.command("get_config")
        self._language = plain(config.get("language") if isinstance(config, dict) else "")[:20] or "en"
        await socket.subscribe(self._hear_states, "subscribe_entities")
        await self._catch_up()
        ready()
        while True:
            await self._asked.wait()
            began_s = ticks_s()
            await asyncio.sleep(DEBOUNCE_S)
            await self._read_again(socket)
            await asyncio.sleep(ticks_s() - began_s)  # a house that changes all the time leaves half of it to others

    async def _catch_up(self) -> None:
        """Take in the states that the subscription begins with, a batch at a time, and what came meanwhile."""
        assert self._backlog is not None  # noqa: S101 - set by `serve`
        try:
            async with asyncio.timeout(SETTLED_S):
                while not self._backlog:
                    await self._moved.wait()
        except TimeoutError as error:
            raise unanswered(SETTLED_S) from error
        while self._backlog:
            for part in _parts(self._backlog.pop(0)):
                self._take_states(part)
                await asyncio.sleep(0)
        self._backlog = None

    def _hear_states(self, event: Any) -> None:
        if self._backlog is None:
            self._take_states(event)
        else:
            self._backlog.append(event)
            self._tell()

    async def _follow(self, socket: HomeSocket, name: str) -> None:
        """Hear of each change of a registry; what this account may not hear of is read again with the areas."""
        with contextlib.suppress(HomeRefusal):
            await socket.subscribe(partial(self._mark, name), "subscribe_events", event_type=f"{name}_registry_updated")

    def _mark(self, name: str, _: Any) -> None:
        self._stale |= {name, *MAY_LACK} if name == "area" else {name}
        self._asked.set()

    async def _read_again(self, socket: HomeSocket) -> None:
        names, self._stale = self._stale, set()
        self._asked.clear()
        self._is_reading = True
        try:
            for name in sorted(names, key=list(READ).index):
                await self._read(socket, name)
            await self._renew()
        finally:
            self._is_reading = False
            self._tell()

    async def _read(self, socket: HomeSocket, name: str) -> None:
        try:
            rows = await socket.command(f"config/{name}_registry/list")
        except HomeRefusal:
            if name not in MAY_LACK:
                raise
            rows = []
        if name == "entity":
            rows = await self._with_aliases(socket, rows)
        setattr(self._registries, FIELDS[name], READ[name](rows))

    async def _with_aliases(self, socket: HomeSocket, rows: object) -> list[Any]:
        """The rows of the entities with their other names, which the list leaves out; an old server tells none."""
        known = {row["entity_id"]: row for row in rows if _is_entity(row)} if isinstance(rows, list) else {}
        ids = list(known)
        with contextlib.suppress(HomeRefusal):
            for start in range(0, len(ids), BATCH):
                part = ids[start : start + BATCH]
                entries = await socket.command("config/entity_registry/get_entries", entity_ids=part)
                for id, entry in _pairs(entries):
                    known[id] = known.get(id, {}) | {"aliases": entry.get("aliases")}
        return list(known.values())

    async def _renew(self) -> None:
        """Say each entity anew, a batch at a time: others get their turn in between."""
        ids = list(self._entities)
        for start in range(0, len(ids), BATCH):
            for id in ids[start : start + BATCH]:
                if (old := self._entities.get(id)) is not None:
                    self._entities[id] = self._registries.entity(id, old.state, old.attributes, old.changed_at)
            await asyncio.sleep(0)
        self._edition += 1
        self._house = None

    def _take_states(self, event: Any) -> None:
        """One event of subscribe_entities: a = here now, c = changed in part, r = gone."""
        if not isinstance(event, dict):
            return
        for id, row in _pairs(event.get("a")):
            self._put(id, row.get("s"), row.get("a"), row.get("lc"))
        for id, row in _pairs(event.get("c")):
            self._change(id, row)
        gone = event.get("r")
        for id in gone if isinstance(gone, list) else []:
            if isinstance(id, str) and self._entities.pop(id, None) is not None:
                self._edition += 1
        self._house = None
        self._tell()

    def _change(self, id: str, row: Mapping[str, Any]) -> None:
        old = self._entities.get(id)
        plus, minus = row.get("+"), row.get("-")
        if old is None:
            return
        plus = plus if isinstance(plus, dict) else {}
        attributes = dict(old.attributes)
        taken = minus.get("a") if isinstance(minus, dict) else None
        for key in taken if isinstance(taken, list | dict) else ():
            attributes.pop(str(key), None)
        if isinstance(given := plus.get("a"), dict):
            attributes.update(given)
        self._put(id, plus.get("s", old.state), attributes, plus.get("lc", old.changed_at.timestamp()))

    def _put(self, id: str, state: object, attributes: object, changed: object) -> None:
        kept = attributes if isinstance(attributes, dict) else {}
        at = moment_of(changed)
        made = self._registries.entity(id, plain(state, STATE_CHARACTERS), kept, at)
        old = self._entities.get(id)
        self._entities[id] = made
        if old is None or (old.name, _class(old)) != (made.name, _class(made)):
            self._edition += 1

    def _tell(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()


def _class(one: HouseEntity) -> object:
    return one.attributes.get("device_class")


def _is_entity(row: object) -> bool:
    return isinstance(row, dict) and isinstance(row.get("entity_id"), str)


def _pairs(value: object) -> list[tuple[str, dict[str, Any]]]:
    rows = value.items() if isinstance(value, dict) else ()
    return [(id, row) for id, row in rows if isinstance(row, dict) and "." in id]


def _parts(event: Any) -> list[Any]:
    """An event in pieces of at most BATCH entities that are here now; what else it says comes last."""
    arrived = list(event["a"].items()) if isinstance(event, dict) and isinstance(event.get("a"), dict) else []
    if len(arrived) <= BATCH:
        return [event]
    pieces: list[Any] = [{"a": dict(arrived[at : at + BATCH])} for at in range(0, len(arrived), BATCH)]
    return [*pieces, {**event, "a": {}}]
