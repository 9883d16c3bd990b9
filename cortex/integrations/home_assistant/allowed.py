"""What of the house a person may see and move: by ids, domains, rooms and labels. Pure; an empty list is everything.

A list is a text as an admin writes it: `light`, `area:Kitchen`, `label:Guests`, `lock.front_door`; `-lock` takes away.
By person: `bob: light, area:Kids; eve: -lock`, which only ever takes from what is allowed to all.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.integrations.home_assistant.words import normal

ENTITY_OR_DOMAIN = re.compile(r"\w+(\.\w+)?")


class AllowList(Struct, frozen=True, kw_only=True):
    """Entities that are allowed, and those taken away from them. Nothing allowed by name: everything but what is taken.

    within: another list, which must allow it too.
    """

    given: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    within: "AllowList | None" = None

    @property
    def is_everything(self) -> bool:
        """Tell whether nothing is kept from this person."""
        return not self.given and not self.taken and (self.within is None or self.within.is_everything)

    def in_house(self, house: House) -> Callable[[HouseEntity], bool]:
        """Tell whether an entity is this person's to see, in this house."""
        if self.is_everything:
            return lambda _: True
        given, taken = [_rule(house, one) for one in self.given], [_rule(house, one) for one in self.taken]
        outer = self.within.in_house(house) if self.within is not None else lambda _: True
        return lambda one: (
            outer(one) and (not given or any(fits(one) for fits in given)) and not any(fits(one) for fits in taken)
        )


def allow_list(text: str) -> AllowList:
    """The list that a text says, entries by commas or lines; UserError names the entry that is none."""
    written = [entry.strip() for line in text.splitlines() for entry in line.split(",")]
    given: list[str] = []
    taken: list[str] = []
    for entry in filter(None, written):
        kind, colon, rest = entry.lstrip("- ").partition(":")
        kind = kind.strip().casefold()  # Home Assistant's ids and domains have small letters
        if colon and (kind not in ("area", "floor", "label") or not rest.strip()):
            raise UserError(
                f"{entry!r} is not valid. Write light, area:Kitchen, floor:Upstairs, label:Guests or lock.front."
            )
        if not colon and not ENTITY_OR_DOMAIN.fullmatch(kind):
            raise UserError(f"{entry!r} is neither a domain nor an entity id. Write a room as area:{entry.strip('-')}.")
        (taken if entry.startswith("-") else given).append(f"{kind}{colon}{rest}")
    return AllowList(given=tuple(given), taken=tuple(taken))


def allow_lists(text: str) -> Mapping[str, AllowList]:
    """The lists of single persons, by account name in small letters; UserError for an entry that is none."""
    found = {}
    for entry in filter(None, (each.strip() for line in text.splitlines() for each in line.split(";"))):
        name, colon, rest = entry.partition(":")
        if not colon or not name.strip() or not rest.strip() or name.strip() in ("area", "floor", "label"):
            raise UserError(f"{entry[:60]!r} names no person. Write bob: light, area:Kids; eve: -lock.")
        found[name.strip().casefold()] = allow_list(rest)
    return found


def absent(house: House, lists: Iterable[AllowList]) -> tuple[str, ...]:
    """The entries, each once, that name an entity, area, floor or label which the house does not have."""
    entries = dict.fromkeys(entry for one in lists for entry in (*one.given, *one.taken))
    return tuple(entry for entry in entries if not _is_there(house, entry))


def _is_there(house: House, entry: str) -> bool:
    """Tell whether it names something of the house. A domain does, with or without an entity as yet."""
    kind, colon, name = entry.partition(":")
    return bool(_named(house, kind, name)) if colon else "." not in entry or entry in house.entities


def _named(house: House, kind: str, name: str) -> set[str]:
    """The ids of the areas, floors or labels of this name."""
    key = normal(name)
    if kind == "label":
        return {id for id, label in house.labels.items() if key in (normal(label), normal(id))}
    places = house.areas if kind == "area" else house.floors
    return {id for id, one in places.items() if key in map(normal, (id, one.name, *one.aliases))}


def _rule(house: House, entry: str) -> Callable[[HouseEntity], bool]:
    kind, colon, name = entry.partition(":")
    if not colon:
        return lambda one: entry in (one.id, one.domain)
    named = _named(house, kind, name)
    if kind == "label":
        return lambda one: not named.isdisjoint(one.labels)
    areas = named if kind == "area" else {id for id, area in house.areas.items() if area.floor_id in named}
    return lambda one: one.area_id in areas
