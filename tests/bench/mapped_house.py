"""Commands of a public set carried over to a house of 3,000 entities: their places get names of ours, by chance.

Nothing of the set is kept here: it is read from a folder beside the project. What is right comes from the set's own
label and from the entity that was made for the row, never from the grammar under test.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cortex.integrations.home_assistant.house import Area, Floor, House, HouseEntity

SIZE = 3_000
THEN = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
FLOORS = ("Ground floor", "First floor", "Cellar floor")
FIRST = "Amber Birch Cedar Dahlia Elm Fern Ginger Hazel Iris Juniper Kestrel Lark Maple Nettle Olive Poppy Quince Rowan"
SECOND = "Parlour Pantry Landing Snug Nook Loggia Studio Cabin Annexe Gallery Larder Alcove Vestibule Chamber"
_CARRIERS = """
turn switch shut power on off up down please can could you we may i request to the in of our is are needs need be
should would like make sure ensure that have into at for now by its from and or close lower open raise lift stop
adjusting where they halt toggle reverse state status change alter flip slow reduce decrease increase speed boost
ramp accelerate activate deactivate enable disable start extinguish illuminate locked unlocked lock engage disengage
secure unlock closed skip next track song pause play playing previous go mute volume dim brighten light-up started
initiate set mode i'd
"""
_KINDS = """
blinds fan garage door doors gate light lights lamp lighting lock switch music media player audio tv radio speaker
speakers stereo sound system entertainment center cd vacuum
"""
CARRIERS = frozenset(_CARRIERS.split())
KINDS = frozenset(_KINDS.split())
DOMAINS = {
    "blinds": "cover",
    "garage_door": "cover",
    "fan": "fan",
    "light": "light",
    "lock": "lock",
    "media_player": "media_player",
    "switch": "switch",
    "vacuum": "vacuum",
}
HELD: Mapping[str, dict[str, Any]] = {
    "light": {"supported_color_modes": ["brightness"], "brightness": 128},
    "fan": {"supported_features": 49, "percentage": 50},
    "media_player": {"supported_features": 22_461 | 256, "volume_level": 0.4},
    "vacuum": {"supported_features": 12_316},
    "cover": {"supported_features": 15},
}
STATES = {"light": "on", "cover": "open", "lock": "locked", "media_player": "playing", "vacuum": "docked", "fan": "on"}
ALONE = {"light": "Light", "lock": "Door lock", "cover": "Blinds", "fan": "Fan"}
DATA = {"volume_mute": {"is_volume_muted": True}}
SAID_BEFORE = re.compile(r"^(?:could you )?(?:light up|go back to) ", re.IGNORECASE)
NEXT = ("media_next_track", "media_previous_track")  # what is skipped is no name of a player


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedCommand:
    """A command in the house's words, and the one call that is right."""

    id: str
    text: str
    service: str
    ids: tuple[str, ...]
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class HouseMaker:
    """Makes areas and entities for rows, then fills the house up."""

    dice: random.Random
    names: list[str] = field(default_factory=list)
    areas: dict[str, Area] = field(default_factory=dict)
    entities: dict[str, HouseEntity] = field(default_factory=dict)
    places: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Deal the names of places."""
        self.names = [f"{one} {two}" for one in FIRST.split() for two in SECOND.split()]
        self.dice.shuffle(self.names)

    def mapped(self, row: Mapping[str, Any]) -> MappedCommand:
        """The row with a place of ours, and an entity that stands there."""
        group, _, verb = str(row["intent"]).removeprefix("homellm_").partition(".")
        domain = DOMAINS[group]
        place, kind = parts(str(row["text"]), is_garage=group == "garage_door")
        if verb in NEXT:
            kind = "" if kind.split()[-1:] != ["player"] else kind
        if domain == "light" and kind in ("lights", "lighting"):
            kind = "light"  # the set speaks of one thing: its light
        if domain == "media_player" and kind.casefold() in ("", "media", "audio"):
            kind = "media player"
        # Rows do not know of each other: two players of one room would be another house than either row means.
        key = (place.casefold(), domain, kind.casefold() if domain == "media_player" else "")
        if key not in self.places:
            self.places[key] = self.names.pop()
        name = self.places[key]
        text = (
            re.sub(rf"(?<![\w']){re.escape(place)}(?![\w])", name.casefold(), str(row["text"]), count=1)
            if place
            else ""
        )
        ids = self._entities(domain, name, kind, group)
        return MappedCommand(
            id=str(row["id"]), text=text, service=f"{domain}.{verb}", ids=tuple(sorted(ids)), data=DATA.get(verb, {})
        )

    def filled(self) -> House:
        """The house with distractors of other domains in each room, up to its size."""
        rooms = [*self.areas.values(), *(self._area(self.names.pop()) for _ in range(20))]
        while len(self.entities) < SIZE:
            area = self.dice.choice(rooms)
            kind = self.dice.choice(
                ("temperature", "humidity", "power", "energy", "battery", "motion", "window", "update")
            )
            domain = {"motion": "binary_sensor", "window": "binary_sensor", "update": "switch"}.get(kind, "sensor")
            number = len(self.entities)
            self._add(
                f"{domain}.{kind}_{number}", f"{area.name} {kind} {number % 7}", area.id, is_shown=domain != "switch"
            )
        floors = {name: Floor(id=name, name=name) for name in FLOORS}
        shuffled = list(self.entities.values())
        self.dice.shuffle(shuffled)
        return House(entities={one.id: one for one in shuffled}, areas=self.areas, floors=floors)

    def _entities(self, domain: str, name: str, kind: str, group: str) -> list[str]:
        """What the row's words mean: made now, or there already for another row; half have their room in their name."""
        label = kind.capitalize() or ALONE.get(domain, "")
        full = f"{name} {label}".strip()
        id = f"{domain}.{re.sub(r'[^a-z0-9]+', '_', full.casefold())}"
        if not label:  # a name of its own, as people give to a robot; no room is called so
            self._add(id, full, "")
        if id not in self.entities:
            area = self._area(name)
            device_class = {"blinds": "blind", "garage_door": "garage"}.get(group, "")
            classed: dict[str, Any] = {"device_class": device_class} if device_class else {}
            self._add(id, label if self.dice.random() < 0.5 else full, area.id, **classed)
            self._distract(area, domain)
        return [id]

    def _distract(self, area: Area, domain: str) -> None:
        """Some things of other kinds in the same room."""
        others = [
            ("light", "Light"),
            ("fan", "Fan"),
            ("climate", "Heating"),
            ("media_player", "Speaker"),
            ("lock", "Lock"),
        ]
        for other, name in others:
            is_near = (domain, other) in (("switch", "light"), ("switch", "fan"))  # the switch is what is called so
            if other != domain and not is_near and self.dice.random() < 0.6:
                self._add(f"{other}.{area.id}_{other}", f"{area.name} {name}", area.id)

    def _area(self, name: str) -> Area:
        id = name.casefold().replace(" ", "_")
        return self.areas.setdefault(id, Area(id=id, name=name, floor_id=self.dice.choice(FLOORS)))

    def _add(self, id: str, name: str, area: str, *, is_shown: bool = True, **more: Any) -> None:
        domain = id.partition(".")[0]
        held = {**HELD.get(domain, {}), **more}
        state = STATES.get(domain, "off")
        self.entities.setdefault(
            id,
            HouseEntity(
                id=id, name=name, area_id=area, state=state, attributes=held, changed_at=THEN, is_shown=is_shown
            ),
        )


def parts(text: str, *, is_garage: bool) -> tuple[str, str]:
    """The words of a row that name a place, and those that name a thing there ("" where only the place is named)."""
    runs: list[list[str]] = [[]]
    words = SAID_BEFORE.sub("", text).rstrip(" .!?").replace(",", " ").split()
    for at, word in enumerate(words):
        is_thing = at == len(words) - 1 and word == "switch"  # a light switch
        if word.casefold() in CARRIERS and not is_thing:
            runs.append([])
        else:
            runs[-1].append(word)
    found = [run for run in runs if run]
    kinds = KINDS if is_garage else KINDS - {"garage"}
    tails = [_tail(run, kinds) for run in found]
    if len(found) == 1:
        (run,), (at,) = found, tails
        if at == len(run) and len(run) > 1 and not any(word.endswith(("'s", "'")) for word in run[-2:-1]):
            at = len(run) - 1 if not _is_room(run[-1]) else at
        return " ".join(run[:at]), " ".join(run[at:])
    if len(found) == 2:
        things = [run for run, at in zip(found, tails, strict=True) if at < len(run)]
        thing = things[0] if things else found[0]
        place = found[1] if thing is found[0] else found[0]
        return " ".join(place), " ".join(thing)
    return "", ""


def _tail(run: Sequence[str], kinds: frozenset[str]) -> int:
    """Where the words for a kind of thing begin at the end of the run."""
    at = len(run)
    while at > 0 and run[at - 1].casefold() in kinds:
        at -= 1
    return at


def _is_room(word: str) -> bool:
    """Whether the last word of a name is a place rather than a thing."""
    rooms = "room area bedroom bathroom house office hallway yard shed cellar kitchen suite one two terrace entrance"
    return word.casefold() in rooms.split()
