"""Houses for the commands that need no model: a German one by hand, and the one-line way to write an entity."""

import re
from datetime import UTC, datetime
from typing import Any

from cortex.integrations.home_assistant.house import Area, Floor, House, HouseEntity

Held = dict[str, Any]
THEN = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
COLOURFUL: Held = {
    "supported_color_modes": ["color_temp", "hs"],
    "min_color_temp_kelvin": 2000,
    "max_color_temp_kelvin": 6500,
}
DIMMABLE: Held = {"supported_color_modes": ["brightness"]}
PLAIN: Held = {"supported_color_modes": ["onoff"]}
ON: Held = {"brightness": 128}
SHUTTER: Held = {"device_class": "shutter", "supported_features": 15, "current_position": 100}
HEATING: Held = {
    "temperature": 20.0,
    "current_temperature": 19.4,
    "min_temp": 5,
    "max_temp": 30,
    "supported_features": 385,
}
FAN: Held = {"supported_features": 49, "percentage": 50, "percentage_step": 25.0}
PLAYER: Held = {"supported_features": 22_461, "volume_level": 0.4}
VACUUM: Held = {"supported_features": 12_316}


def entity(entity_id: str, name: str, area: str = "", state: str = "off", **held: Any) -> HouseEntity:
    """One entity as it stands; `held`: its attributes, and `aliases`, `device`, `is_shown`."""
    is_shown, device, aliases = held.pop("is_shown", True), held.pop("device", ""), held.pop("aliases", ())
    return HouseEntity(
        id=entity_id,
        name=name,
        aliases=aliases,
        device=device,
        area_id=area,
        state=state,
        attributes=held,
        changed_at=THEN,
        is_shown=is_shown,
    )


def house_of(
    entities: list[HouseEntity], areas: list[Area], floors: list[Floor] | None = None, language: str = "en"
) -> House:
    """A house that holds these."""
    return House(
        entities={one.id: one for one in entities},
        areas={one.id: one for one in areas},
        floors={one.id: one for one in floors or []},
        language=language,
    )


def rooms(*names: str, floor: str = "") -> list[Area]:
    """Areas of these names; "Bad|Badezimmer" has a second one. The id is the first name in small letters."""
    return [
        Area(
            id=re.sub(r"\W", "_", name.split("|")[0].casefold()), name=name.split("|")[0], aliases=more, floor_id=floor
        )
        for name in names
        for more in [tuple(name.split("|")[1:])]
    ]


GERMAN = house_of(
    [
        entity("light.kueche_decke", "Deckenlicht", "küche", "on", **COLOURFUL, **ON),
        entity("light.kueche_arbeitsplatte", "Arbeitsplatte", "küche", "on", **DIMMABLE, **ON),
        entity("light.stehlampe", "Stehlampe", "wohnzimmer", "on", **COLOURFUL, **ON),
        entity("light.wohnzimmer_decke", "Wohnzimmer Decke", "wohnzimmer", "off", **DIMMABLE),
        entity("light.schlafzimmer", "Schlafzimmer Licht", "schlafzimmer", "off", **COLOURFUL),
        entity("light.nachttisch_links", "Nachttischlampe links", "schlafzimmer", "off", **DIMMABLE),
        entity("light.nachttisch_rechts", "Nachttischlampe rechts", "schlafzimmer", "off", **DIMMABLE),
        entity("light.bad", "Badlicht", "bad", "on", **DIMMABLE, **ON),
        entity("light.flur", "Flurlicht", "flur", "on", **PLAIN),
        entity("light.schreibtisch", "Schreibtischlampe", "büro", "off", **COLOURFUL),
        entity("light.sternenhimmel", "Sternenhimmel", "kinderzimmer", "off", **COLOURFUL),
        entity("light.terrasse", "Terrassenlicht", "terrasse", "off", **PLAIN),
        entity("switch.kaffeemaschine", "Kaffeemaschine", "küche"),
        entity("switch.steckdose_fernseher", "Steckdose Fernseher", "wohnzimmer", "on", device_class="outlet"),
        entity("switch.gartenpumpe", "Gartenpumpe", "garten"),
        entity("switch.weihnachtsbaum", "Weihnachtsbaum", "wohnzimmer", aliases=("Christbaum",)),
        entity("cover.wohnzimmer_links", "Rollladen links", "wohnzimmer", "open", **SHUTTER),
        entity("cover.wohnzimmer_rechts", "Rollladen rechts", "wohnzimmer", "open", **SHUTTER),
        entity("cover.schlafzimmer", "Rollladen", "schlafzimmer", "open", **SHUTTER),
        entity("cover.buero", "Jalousie", "büro", "open", device_class="blind", supported_features=15),
        entity("cover.markise", "Markise", "terrasse", "closed", device_class="awning", supported_features=11),
        entity("cover.garagentor", "Garagentor", "garage", "closed", device_class="garage", supported_features=11),
        entity("climate.wohnzimmer", "Thermostat", "wohnzimmer", "heat", **HEATING),
        entity("climate.bad", "Heizung Bad", "bad", "heat", **HEATING),
        entity("climate.schlafzimmer", "Heizung", "schlafzimmer", "heat", **HEATING),
        entity("fan.schlafzimmer", "Deckenventilator", "schlafzimmer", "on", **FAN),
        entity("fan.buero", "Ventilator", "büro", "off", **FAN),
        entity("lock.haustuer", "Haustür", "flur", "unlocked", supported_features=1),
        entity("lock.gartentor", "Gartentor", "garten", "locked", supported_features=0),
        entity("media_player.fernseher", "Fernseher", "wohnzimmer", "playing", **PLAYER, device_class="tv"),
        entity("media_player.kueche", "Küchenradio", "küche", "playing", **PLAYER),
        entity("media_player.bad", "Lautsprecher", "bad", "paused", **PLAYER),
        entity("vacuum.robi", "Robi", "flur", "docked", **VACUUM),
        entity("scene.filmabend", "Filmabend", "wohnzimmer", "unknown"),
        entity("script.gute_nacht", "Gute Nacht", "", "off"),
        entity("sensor.bad_temperatur", "Bad Temperatur", "bad", "21.5", device_class="temperature"),
        entity("sensor.stehlampe_leistung", "Stehlampe Leistung", "wohnzimmer", "9.1", device_class="power"),
        entity("binary_sensor.haustuer", "Haustür", "flur", "off", device_class="door"),
        entity("binary_sensor.kueche_fenster", "Fenster Küche", "küche", "off", device_class="window"),
        entity("switch.stehlampe_update", "Stehlampe Update", "wohnzimmer", is_shown=False),
    ],
    [
        *rooms("Küche", "Wohnzimmer", "Flur", "Garage", "Terrasse", "Garten", floor="eg"),
        *rooms("Schlafzimmer", "Bad|Badezimmer", "Büro|Arbeitszimmer", "Kinderzimmer", floor="og"),
    ],
    [Floor(id="eg", name="Erdgeschoss"), Floor(id="og", name="Obergeschoss", aliases=("erster Stock",))],
    language="de",
)

ENGLISH = house_of(
    [
        entity("light.kitchen_ceiling", "Kitchen ceiling", "kitchen", "on", **COLOURFUL, **ON),
        entity("light.kitchen_counter", "Kitchen counter light", "kitchen", "on", **DIMMABLE, **ON),
        entity("light.hall", "Hall light", "hall", "on", **PLAIN),
        entity("light.bedroom_fan_light", "Bedroom fan light", "bedroom", "off", **DIMMABLE),
        entity("light.reading", "Reading lamp", "bedroom", "off", **COLOURFUL),
        entity("light.garden", "Garden lights", "garden", "unavailable", **PLAIN),
        entity("switch.shed", "Shed lights", "garden", "off"),
        entity("switch.kettle", "Kettle", "kitchen", "off"),
        entity("cover.blinds", "Kitchen blinds", "kitchen", "open", device_class="blind", supported_features=15),
        entity("cover.garage", "Garage door", "garage", "closed", device_class="garage", supported_features=11),
        entity("lock.front", "Front door", "hall", "unlocked"),
        entity("climate.bedroom", "Bedroom heating", "bedroom", "heat", **HEATING),
        entity("media_player.tv", "TV", "living_room", "playing", **PLAYER, device_class="tv"),
        entity("sensor.kettle_power", "Kettle power", "kitchen", "0"),
        entity("scene.film", "Film", "", "unknown"),
    ],
    rooms("Kitchen", "Hall", "Bedroom", "Garden", "Garage", "Living room"),
)
