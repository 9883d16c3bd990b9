"""What calls to the house's devices may do: how risky a service is, how a device stands, and the way back there.

Pure rules over `ports/home_assistant.py`; used by `tools/ha.py`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from cortex.ports.home_assistant import Entity

EASY = frozenset(
    {
        "light",
        "switch",
        "fan",
        "climate",
        "humidifier",
        "media_player",
        "vacuum",
        "number",
        "select",
        "timer",
        "counter",
    }
    | {"input_boolean", "input_number", "input_select"}
)
# Services that run programs, send elsewhere, or act on anything under one name.
NEVER = frozenset(
    {"homeassistant", "hassio", "shell_command", "rest_command", "python_script", "pyscript", "notify", "recorder"}
    | {"system_log", "logger", "backup", "persistent_notification", "hacs", "ftp", "mqtt"}
)
# What moves in the house beside the easy ones; whatever a domain that is in neither list does may leave it.
DEVICES = frozenset(
    {"alarm_control_panel", "automation", "button", "cover", "date", "datetime", "input_button", "input_datetime"}
    | {"input_text", "lawn_mower", "lock", "scene", "siren", "text", "time", "valve", "water_heater"}
)
BACK = frozenset({"light", "switch", "input_boolean", "fan", "cover"})
TARGETS = frozenset({"entity_id", "area_id", "device_id", "floor_id", "label_id"})
KEPT = ("brightness", "color_temp_kelvin", "rgb_color", "color_mode", "current_position", "percentage")
MOVING = {"opening": "open", "closing": "closed"}


def risk_of(service: str, data: Mapping[str, Any]) -> Literal["medium", "high"]:
    """Medium for what a room is used with; high for locks, covers, alarms, and for addresses to be fetched.

    High for scenes and scripts too: what they move is not known before.
    """
    domain = service.strip().casefold().partition(".")[0]
    return "medium" if domain in EASY and "://" not in json.dumps(data) else "high"


def sends_to(service: str, data: Mapping[str, Any]) -> str:
    """Return what a call reaches past the house: hosts of addresses in its data, or the service; "" for none."""
    domain = service.strip().casefold().partition(".")[0]
    places = [] if domain in EASY | DEVICES else [service.strip()]
    places += re.findall(r"://(?:[^/\s\"@]*@)?([^/\s\":?#]+)", json.dumps(data, ensure_ascii=False))
    return ", ".join(dict.fromkeys(places))


def touched_by(domain: str, entities: Sequence[Entity]) -> list[str]:
    """Ids that a service of this domain will move and that can be put back: the targets, or what a scene holds."""
    ids = [one.id for one in entities]
    if domain == "scene":
        held = [one.attributes.get("entity_id") for one in entities]
        ids = [str(each) for one in held if isinstance(one, list | tuple) for each in one]
    return [one for one in ids if one.partition(".")[0] in BACK]


def image(one: Entity) -> dict[str, Any]:
    """Return what must be known to put it back, as portable JSON."""
    kept = {key: one.attributes[key] for key in KEPT if one.attributes.get(key) is not None}
    return {"id": one.id, "state": MOVING.get(one.state, one.state), "attributes": kept}


def stamp(entities: Sequence[Entity]) -> str:
    """Sum up how these stand, to see a change by hand: a moving cover counts as there, brightness in tenths."""
    words = []
    for one in sorted(entities, key=lambda each: each.id):
        bright = one.attributes.get("brightness")
        tenth = f"@{round(bright / 25.5)}" if isinstance(bright, int | float) else ""
        words.append(f"{one.id}={MOVING.get(one.state, one.state)}{tenth}")
    return ";".join(words)


def way_back(old: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The service and data that make it stand as in its image; None for a state that cannot be made."""
    domain, state, held = str(old["id"]).partition(".")[0], old["state"], old["attributes"]
    if domain == "cover":
        if "current_position" in held:
            return "cover.set_cover_position", {"position": held["current_position"]}
        return {"open": ("cover.open_cover", {}), "closed": ("cover.close_cover", {})}.get(state)
    if state not in ("on", "off"):
        return None
    data: dict[str, Any] = {}
    if domain == "light" and state == "on":
        colour = "color_temp_kelvin" if held.get("color_mode") == "color_temp" else "rgb_color"
        data = {key: held[key] for key in ("brightness", colour) if key in held}
    if domain == "fan" and state == "on" and "percentage" in held:
        data = {"percentage": held["percentage"]}
    return f"{domain}.turn_{state}", data
