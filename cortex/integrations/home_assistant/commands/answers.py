"""The short sentence that a person reads when a plain command is done, in the language of the command. Pure."""

import re
from collections.abc import Sequence

from cortex.integrations.home_assistant.commands.readings import Language, OrderReading
from cortex.integrations.home_assistant.commands.services import whole
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.ports.home_assistant import HouseOrder

SHOWN = 4
NAME_CHARACTERS = 60
_MARKS = re.compile(r"[^\w\s.,°%'&+-]|_|://|www")
_DONE: dict[Language, dict[str, str]] = {
    "en": {
        "turn_on": "Turned on",
        "turn_off": "Turned off",
        "toggle": "Switched over",
        "open_cover": "Opening",
        "close_cover": "Closing",
        "stop_cover": "Stopped",
        "media_stop": "Stopped",
        "stop": "Stopped",
        "start": "Started",
        "lock": "Locked",
        "unlock": "Unlocked",
        "volume_up": "Louder",
        "volume_down": "Quieter",
        "increase_speed": "Faster",
        "decrease_speed": "Slower",
        "media_pause": "Paused",
        "pause": "Paused",
        "media_play": "Playing",
        "media_next_track": "Next track",
        "media_previous_track": "Previous track",
        "return_to_base": "On the way to its base",
        "muted": "Muted",
        "unmuted": "Sound on",
        "brighter": "Brighter",
        "dimmer": "Dimmer",
        "away": "Not reachable",
        "more": "and {count} more",
    },
    "de": {
        "turn_on": "Eingeschaltet",
        "turn_off": "Ausgeschaltet",
        "toggle": "Umgeschaltet",
        "open_cover": "Wird geöffnet",
        "close_cover": "Wird geschlossen",
        "stop_cover": "Angehalten",
        "media_stop": "Angehalten",
        "stop": "Angehalten",
        "start": "Gestartet",
        "lock": "Abgeschlossen",
        "unlock": "Aufgeschlossen",
        "volume_up": "Lauter",
        "volume_down": "Leiser",
        "increase_speed": "Schneller",
        "decrease_speed": "Langsamer",
        "media_pause": "Pausiert",
        "pause": "Pausiert",
        "media_play": "Spielt",
        "media_next_track": "Nächster Titel",
        "media_previous_track": "Vorheriger Titel",
        "return_to_base": "Auf dem Weg zur Station",
        "muted": "Stumm",
        "unmuted": "Ton an",
        "brighter": "Heller",
        "dimmer": "Dunkler",
        "away": "Nicht erreichbar",
        "more": "und {count} weitere",
    },
}


def answer(reading: OrderReading, orders: Sequence[HouseOrder], house: House) -> str:
    """What was done with which entities; those that do not answer are named apart."""
    entities = [(order, house.entities[key]) for order in orders for key in order.ids]
    here = [(order, one) for order, one in entities if one.state != "unavailable"]
    away = [one for _, one in entities if one.state == "unavailable"]
    parts: dict[str, list[HouseEntity]] = {}
    for order, one in here:
        parts.setdefault(_did(order, reading.language), []).append(one)
    said = [f"{did}: {_names(found, house, reading.language)}." for did, found in parts.items()]
    if away:
        said.append(f"{_DONE[reading.language]['away']}: {_names(away, house, reading.language)}.")
    return " ".join(said)


def _did(order: HouseOrder, language: Language) -> str:
    """What the call does, in a word or a figure."""
    words, data = _DONE[language], order.data
    for key, unit in (("brightness_pct", " %"), ("percentage", " %"), ("position", " %"), ("color_temp_kelvin", " K")):
        if key in data:
            return f"{data[key]}{unit}"
    if "temperature" in data:
        return f"{data['temperature']}°"
    if "volume_level" in data:
        return f"{whole(round(float(str(data['volume_level'])) * 100))} %"
    if "color_name" in data:
        return str(data["color_name"]).capitalize()
    if "brightness_step_pct" in data:
        return words["brighter" if int(str(data["brightness_step_pct"])) > 0 else "dimmer"]
    if "is_volume_muted" in data:
        return words["muted" if data["is_volume_muted"] else "unmuted"]
    return words[order.service.partition(".")[2]]


def _names(entities: Sequence[HouseEntity], house: House, language: Language) -> str:
    names = [_name(one, house) for one in entities[:SHOWN]]
    more = len(entities) - SHOWN
    if more > 0:
        names.append(_DONE[language]["more"].format(count=more))
    return ", ".join(names)


def _name(one: HouseEntity, house: House) -> str:
    """Its name, with its room where the name does not say it."""
    area = house.areas.get(one.area_id)
    if area is None or area.name.casefold() in one.name.casefold():
        return _shown(one.name)
    return f"{_shown(one.name)} ({_shown(area.name)})"


def _shown(name: str) -> str:
    """A name as text alone: the page reads answers as Markdown."""
    return " ".join(_MARKS.sub(" ", name).split())[:NAME_CHARACTERS]
