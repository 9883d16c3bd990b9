"""The door of plain commands: `Commands.understand` reads a message, or finds it uncertain.

Wrong is the worst that it can be: each word of the message has to be used, all readings have to agree, and what two
entities could mean is neither. Called through `ports/home_assistant.HouseCommands`.
"""

import re
from collections.abc import Callable

from cortex.integrations.home_assistant.commands.answers import answer
from cortex.integrations.home_assistant.commands.directory import Directory, OrderTarget, names_of_house
from cortex.integrations.home_assistant.commands.kinds import DOMAINS
from cortex.integrations.home_assistant.commands.readings import OrderReading, readings
from cortex.integrations.home_assistant.commands.services import domains_of, orders
from cortex.integrations.home_assistant.commands.words import heard
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.ports.home_assistant import HouseCommand, HouseOrder

_ID = re.compile(r"[a-z_]{1,40}\.[a-z0-9_]{1,120}")  # ids stand in the call that a model reads later


class Commands:
    """Reads commands for one house, from any thread. Its names are indexed again only when one of them has changed."""

    def __init__(self) -> None:
        """Nothing is indexed before the first message that sounds like a command."""
        self._known: tuple[House, object, Directory] = (House(), None, Directory(House()))

    def understand(self, text: str, house: House, allowed: Callable[[HouseEntity], bool]) -> HouseCommand | None:
        """The certain meaning of the message; None for all else. `allowed`: what the person may move."""
        line = heard(text)
        ways = list(readings(line)) if line else []
        if not ways:
            return None
        directory = self._of(house)
        found: dict[frozenset[str], HouseCommand] = {}
        for reading in ways:
            entities = [house.entities[key] for key in _ids(directory, reading) if key in house.entities]
            made = orders(reading, entities) if entities else ()
            if made:
                found.setdefault(_key(made), HouseCommand(orders=made, done=answer(reading, made, house)))
        if len(found) != 1:
            return None
        only = next(iter(found.values()))
        is_allowed = all(_ID.fullmatch(key) and allowed(house.entities[key]) for one in only.orders for key in one.ids)
        return only if is_allowed else None

    def _of(self, house: House) -> Directory:
        known, names, directory = self._known
        if house is known:
            return directory
        now = house.edition or names_of_house(house)  # of one index, one edition has the same names
        if now != names:
            directory = Directory(house)
        self._known = (house, now, directory)
        return directory


def _ids(directory: Directory, reading: OrderReading) -> tuple[str, ...]:
    domains = domains_of(reading.intent)
    if reading.is_only and reading.kind:
        domains &= DOMAINS[reading.kind]
    found = directory.find(OrderTarget(words=reading.target, domains=domains, kind=reading.kind))
    return () if "" in found else found


def _key(made: tuple[HouseOrder, ...]) -> frozenset[str]:
    """What is alike where two readings order the same."""
    return frozenset(f"{one.service} {sorted(one.ids)} {sorted(one.data.items())}" for one in made)


def may_be_command(text: str) -> bool:
    """Whether the text sounds like a command for a house, whatever stands in it; fast, and the same for ever."""
    line = heard(text)
    return bool(line) and next(readings(line), None) is not None
