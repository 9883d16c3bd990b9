"""What stands in a Home Assistant, as values: floors, areas, labels, entities. Kept fresh by `index.py`, read by names.

A house may have 3,000 entities, so every way to look one up is built once for each new value.
"""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field


class Floor(Struct, frozen=True, kw_only=True):
    """A storey with the other names that people gave it."""

    id: str
    name: str
    aliases: tuple[str, ...] = ()


class Area(Struct, frozen=True, kw_only=True):
    """A room or another part of the house; `floor_id` "" = on none."""

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    floor_id: str = ""


class HouseEntity(Struct, frozen=True, kw_only=True):
    """A device or value as it stands. `area_id`: its own or its device's; "" = none. `labels`: ids, its device's too.

    `name`: what the house shows for it; `device`: the name of the device that it belongs to. `is_shown`: neither
    hidden nor disabled, and no setting or diagnosis of a device.
    """

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    device: str = ""
    area_id: str = ""
    labels: tuple[str, ...] = ()
    state: str
    unit: str = ""
    attributes: Mapping[str, object] = field(default_factory=dict)
    changed_at: datetime
    is_shown: bool = True

    @property
    def domain(self) -> str:
        """The part of the id ahead of the dot, such as light."""
        return self.id.partition(".")[0]


class House(Struct, frozen=True, kw_only=True):
    """All of it at one moment. `labels`: id -> name. `language`: the language of Home Assistant itself, such as de.

    `edition`: two values of one index with the same one differ in states only, not in ids, names, places or labels;
    what is built for looking things up may be kept as long as it stays.
    """

    entities: Mapping[str, HouseEntity] = field(default_factory=dict)
    areas: Mapping[str, Area] = field(default_factory=dict)
    floors: Mapping[str, Floor] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    language: str = "en"
    edition: int = 0
