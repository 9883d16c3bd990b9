"""Home Assistant's registries as they are read: names, rooms, floors, labels. Pure: rows in, what is known out.

Whatever is not shaped as the protocol says is left out; names are cut and lose what hides or breaks a line.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from cortex.base.hidden import is_hiding
from cortex.integrations.home_assistant.house import Area, Floor, HouseEntity

NAME_CHARACTERS = 120
STATE_CHARACTERS = 255  # Home Assistant's own limit
MOST_NAMES = 20

Row = Mapping[str, Any]  # Any: JSON that Home Assistant wrote


class RegisteredEntity(Struct, frozen=True, kw_only=True):
    """An entity as the registry knows it, ahead of its state."""

    name: str = ""
    aliases: tuple[str, ...] = ()
    device_id: str = ""
    area_id: str = ""
    labels: tuple[str, ...] = ()
    is_shown: bool = True


class RegisteredDevice(Struct, frozen=True, kw_only=True):
    """A device, which gives its entities a room and labels."""

    name: str = ""
    area_id: str = ""
    labels: tuple[str, ...] = ()


class Registries(Struct, kw_only=True):
    """All of them, each by id; one is replaced whole when it was read again."""

    entities: Mapping[str, RegisteredEntity] = field(default_factory=dict)
    devices: Mapping[str, RegisteredDevice] = field(default_factory=dict)
    areas: Mapping[str, Area] = field(default_factory=dict)
    floors: Mapping[str, Floor] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def entity(self, id: str, state: str, attributes: Mapping[str, Any], changed_at: datetime) -> HouseEntity:
        """The entity of this state, with all that the registries add."""
        own = self.entities.get(id, _UNREGISTERED)
        device = self.devices.get(own.device_id, _NO_DEVICE)
        friendly = plain(attributes.get("friendly_name"))
        area = own.area_id or device.area_id
        name = friendly or own.name or id.partition(".")[2].replace("_", " ")
        others = (*((own.name,) if own.name and own.name != name else ()), *own.aliases)
        return HouseEntity(
            id=id,
            name=name,
            aliases=others,
            device=device.name,
            area_id=area if area in self.areas else "",
            labels=tuple(dict.fromkeys((*own.labels, *device.labels))),
            state=state,
            unit=plain(attributes.get("unit_of_measurement"))[:20],
            attributes=attributes,
            changed_at=changed_at,
            is_shown=own.is_shown,
        )


_UNREGISTERED = RegisteredEntity()
_NO_DEVICE = RegisteredDevice()


def entities_of(rows: object) -> dict[str, RegisteredEntity]:
    """The entity registry, from config/entity_registry/list."""
    found = {}
    for id, row in _rows(rows, "entity_id"):
        hidden = row.get("hidden_by") or row.get("disabled_by") or row.get("entity_category")
        found[id] = RegisteredEntity(
            name=plain(row.get("name")),
            aliases=_names(row.get("aliases")),
            device_id=_text(row.get("device_id")),
            area_id=_text(row.get("area_id")),
            labels=_names(row.get("labels")),
            is_shown=not hidden,
        )
    return found


def devices_of(rows: object) -> dict[str, RegisteredDevice]:
    """The device registry, from config/device_registry/list."""
    return {
        id: RegisteredDevice(
            name=plain(row.get("name_by_user")) or plain(row.get("name")),
            area_id=_text(row.get("area_id")),
            labels=_names(row.get("labels")),
        )
        for id, row in _rows(rows, "id")
    }


def areas_of(rows: object) -> dict[str, Area]:
    """The rooms, from config/area_registry/list."""
    return {
        id: Area(
            id=id,
            name=plain(row.get("name")) or id,
            aliases=_names(row.get("aliases")),
            floor_id=_text(row.get("floor_id")),
        )
        for id, row in _rows(rows, "area_id")
    }


def floors_of(rows: object) -> dict[str, Floor]:
    """The floors, from config/floor_registry/list."""
    return {
        id: Floor(id=id, name=plain(row.get("name")) or id, aliases=_names(row.get("aliases")))
        for id, row in _rows(rows, "floor_id")
    }


def labels_of(rows: object) -> dict[str, str]:
    """The labels' names by id, from config/label_registry/list."""
    return {id: plain(row.get("name")) or id for id, row in _rows(rows, "label_id")}


def plain(value: object, most: int = NAME_CHARACTERS) -> str:
    """A name on one line, without what hides, cut; "" for what is no text."""
    if not isinstance(value, str):
        return ""
    seen = value[: most * 4]
    if not (seen.isascii() and seen.isprintable()):
        seen = "".join(char for char in seen if char.isspace() or not is_hiding(char))
    return " ".join(seen.split())[:most].strip()


def moment_of(value: object) -> datetime:
    """A time of the protocol: seconds since 1970, or ISO; 1970 for what is none."""
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        at = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _rows(rows: object, key: str) -> Iterator[tuple[str, Row]]:
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and isinstance(id := row.get(key), str) and id:
            yield id, row


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _names(value: object) -> tuple[str, ...]:
    named = [plain(each) for each in value[:MOST_NAMES]] if isinstance(value, list) else []
    return tuple(each for each in named if each)
