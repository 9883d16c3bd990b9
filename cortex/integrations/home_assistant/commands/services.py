"""From what is ordered, and of which entities, to the service calls of Home Assistant. Pure; None where one cannot."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cortex.integrations.home_assistant.commands.readings import OrderReading
from cortex.integrations.home_assistant.house import HouseEntity
from cortex.ports.home_assistant import HouseOrder

STEP_PERCENT = 20
DARK_PERCENT = 30  # what is as dim as this is not made dimmer here: the next step would put it out
SWITCHED = frozenset({"light", "switch", "input_boolean", "fan", "media_player", "climate"})


@dataclass(frozen=True, slots=True)
class _Way:
    """How a domain does it. `bit`: of supported_features; an entity that states its features and lacks it cannot."""

    service: str
    bit: int = 0
    data: Callable[[OrderReading, HouseEntity], Mapping[str, object] | None] | None = None


def _named(service: str, domains: frozenset[str]) -> dict[str, _Way]:
    return {domain: _Way(f"{domain}.{service}") for domain in domains}


def _percent(key: str, *, most: float = 100.0, part: float = 1.0) -> Callable[..., Mapping[str, object] | None]:
    def data(reading: OrderReading, one: HouseEntity) -> Mapping[str, object] | None:
        number = reading.number
        if number is None or not 1 <= number <= most or (one.domain == "light" and not can_dim(one)):
            return None
        value = number * part
        return {key: round(value, 2) if part != 1.0 else whole(value)}

    return data


def _fixed_brightness(percent: int) -> Callable[..., Mapping[str, object] | None]:
    return lambda _, one: {"brightness_pct": percent} if can_dim(one) else None


def _step(sign: int) -> Callable[..., Mapping[str, object] | None]:
    def data(_: OrderReading, one: HouseEntity) -> Mapping[str, object] | None:
        now = one.attributes.get("brightness")
        if one.state != "on" or not can_dim(one) or not isinstance(now, int | float):
            return None
        if sign < 0 and now / 255 * 100 <= DARK_PERCENT:
            return None
        return {"brightness_step_pct": sign * STEP_PERCENT}

    return data


def _colour(reading: OrderReading, one: HouseEntity) -> Mapping[str, object] | None:
    if reading.colour in WHITES:
        return _white(WHITES[reading.colour], one)
    name = COLOURS.get(reading.colour)
    modes = _modes(one)
    return {"color_name": name} if name and modes & {"hs", "rgb", "xy", "rgbw", "rgbww"} else None


def _kelvin(reading: OrderReading, one: HouseEntity) -> Mapping[str, object] | None:
    return _white(int(reading.number or 0), one)


def _white(kelvin: int, one: HouseEntity) -> Mapping[str, object] | None:
    low, high = one.attributes.get("min_color_temp_kelvin"), one.attributes.get("max_color_temp_kelvin")
    if "color_temp" not in _modes(one) or not isinstance(low, int) or not isinstance(high, int):
        return None
    return {"color_temp_kelvin": kelvin} if low <= kelvin <= high else None


def _degrees(reading: OrderReading, one: HouseEntity) -> Mapping[str, object] | None:
    return None if reading.number is None else _temperature(reading.number, one)


def _degree(sign: int) -> Callable[..., Mapping[str, object] | None]:
    def data(_: OrderReading, one: HouseEntity) -> Mapping[str, object] | None:
        now = one.attributes.get("temperature")
        return _temperature(now + sign, one) if isinstance(now, int | float) and one.state != "off" else None

    return data


def _temperature(degrees: float, one: HouseEntity) -> Mapping[str, object] | None:
    low, high = one.attributes.get("min_temp"), one.attributes.get("max_temp")
    if not isinstance(low, int | float) or not isinstance(high, int | float) or not low <= degrees <= high:
        return None
    return {"temperature": whole(degrees)}


_OPEN, _CLOSE = {"cover": _Way("cover.open_cover", 1)}, {"cover": _Way("cover.close_cover", 2)}
_PLAYER_UP, _PLAYER_DOWN = _Way("media_player.volume_up"), _Way("media_player.volume_down")
_FASTER, _SLOWER = _Way("fan.increase_speed", 1), _Way("fan.decrease_speed", 1)
_BRIGHTER, _DIMMER = _Way("light.turn_on", 0, _step(1)), _Way("light.turn_on", 0, _step(-1))
_WARMER = _Way("climate.set_temperature", 1, _degree(1))
_COOLER = _Way("climate.set_temperature", 1, _degree(-1))
_LEVELS = {
    "light": _Way("light.turn_on", 0, _percent("brightness_pct")),
    "fan": _Way("fan.set_percentage", 1, _percent("percentage")),
}
_POSITION = _Way("cover.set_cover_position", 4, _percent("position"))


def _player(service: str, bit: int) -> dict[str, _Way]:
    return {"media_player": _Way(f"media_player.{service}", bit)}


WAYS: dict[str, dict[str, _Way]] = {
    "on": {
        **_named("turn_on", SWITCHED),
        "media_player": _Way("media_player.turn_on", 128),
        "vacuum": _Way("vacuum.start", 8192),
    },
    "off": {**_named("turn_off", SWITCHED), "media_player": _Way("media_player.turn_off", 256)},
    "toggle": {**_named("toggle", SWITCHED - {"climate"}), "cover": _Way("cover.toggle", 3)},
    "start": {"vacuum": _Way("vacuum.start", 8192), **_named("turn_on", frozenset({"fan", "switch"}))},
    "open": _OPEN,
    "close": _CLOSE,
    "stop": {
        "cover": _Way("cover.stop_cover", 8),
        "media_player": _Way("media_player.media_stop", 4096),
        "vacuum": _Way("vacuum.stop", 8),
    },
    "raise": {**_OPEN, "media_player": _PLAYER_UP, "fan": _FASTER, "light": _BRIGHTER, "climate": _WARMER},
    "lower": {**_CLOSE, "media_player": _PLAYER_DOWN, "fan": _SLOWER, "light": _DIMMER, "climate": _COOLER},
    "up": {"media_player": _PLAYER_UP, "fan": _FASTER, "light": _BRIGHTER, "climate": _WARMER},
    "down": {"media_player": _PLAYER_DOWN, "fan": _SLOWER, "light": _DIMMER, "climate": _COOLER},
    "faster": {"fan": _FASTER},
    "slower": {"fan": _SLOWER},
    "brighter": {"light": _BRIGHTER},
    "dimmer": {"light": _DIMMER},
    "percent": {**_LEVELS, "cover": _POSITION},
    "position": {"cover": _POSITION},
    "volume": {"media_player": _Way("media_player.volume_set", 4, _percent("volume_level", part=0.01))},
    "most": {"light": _Way("light.turn_on", 0, _fixed_brightness(100))},
    "least": {"light": _Way("light.turn_on", 0, _fixed_brightness(1))},
    "colour": {"light": _Way("light.turn_on", 0, _colour)},
    "kelvin": {"light": _Way("light.turn_on", 0, _kelvin)},
    "degrees": {"climate": _Way("climate.set_temperature", 1, _degrees)},
    "warmer": {"climate": _WARMER},
    "cooler": {"climate": _COOLER},
    "lock": {"lock": _Way("lock.lock")},
    "unlock": {"lock": _Way("lock.unlock")},
    "pause": {**_player("media_pause", 1), "vacuum": _Way("vacuum.pause", 4)},
    "play": _player("media_play", 16_384),
    "next": _player("media_next_track", 32),
    "previous": _player("media_previous_track", 16),
    "mute": {"media_player": _Way("media_player.volume_mute", 8, lambda *_: {"is_volume_muted": True})},
    "unmute": {"media_player": _Way("media_player.volume_mute", 8, lambda *_: {"is_volume_muted": False})},
    "louder": {"media_player": _PLAYER_UP},
    "quieter": {"media_player": _PLAYER_DOWN},
    "dock": {"vacuum": _Way("vacuum.return_to_base", 16)},
}
_COLOURS = "red green blue yellow orange purple pink cyan magenta turquoise violet white"
COLOURS = {
    **{name: name for name in _COLOURS.split()},
    "rot": "red",
    "gruen": "green",
    "blau": "blue",
    "gelb": "yellow",
    "lila": "purple",
    "violett": "violet",
    "rosa": "pink",
    "tuerkis": "turquoise",
    "weiss": "white",
}
WHITES = {
    **dict.fromkeys(("warm white", "soft white", "warm weiss", "warmweiss"), 2700),
    **dict.fromkeys(("neutral white", "neutral weiss", "neutralweiss"), 4000),
    **dict.fromkeys(("cool white", "cold white", "kalt weiss", "kaltweiss", "daylight", "tageslicht"), 6000),
}


def domains_of(intent: str) -> frozenset[str]:
    """The domains that can do this."""
    return frozenset(WAYS[intent])


def orders(reading: OrderReading, entities: Sequence[HouseEntity]) -> tuple[HouseOrder, ...]:
    """The calls, one for each service and its data; () when one of the entities cannot, or none is there to hear it.

    What makes brighter or dimmer goes to what is on.
    """
    if reading.intent in ("brighter", "dimmer", "up", "down", "raise", "lower") and len(entities) > 1:
        entities = [one for one in entities if one.domain != "light" or one.state == "on"]
    made: dict[tuple[str, str], HouseOrder] = {}
    if all(one.state == "unavailable" for one in entities):
        return ()
    for one in entities:
        way = WAYS[reading.intent].get(one.domain)
        data = None if way is None or not _supports(one, way.bit) else way.data(reading, one) if way.data else {}
        if way is None or data is None:
            return ()
        key = (way.service, repr(sorted(data.items())))
        ids = made[key].ids if key in made else ()
        made[key] = HouseOrder(service=way.service, ids=(*ids, one.id), data=data)
    return tuple(made.values())


def _supports(one: HouseEntity, bit: int) -> bool:
    stated = one.attributes.get("supported_features")
    return not isinstance(stated, int) or stated & bit == bit


def can_dim(one: HouseEntity) -> bool:
    """Whether its brightness can be set, as far as it says what it can."""
    modes = _modes(one)
    return bool(modes) and not modes <= {"onoff", "unknown"}


def _modes(one: HouseEntity) -> set[str]:
    held = one.attributes.get("supported_color_modes")
    return {str(mode) for mode in held} if isinstance(held, list | tuple) else set()


def whole(number: float) -> int | float:
    """The number without a point where it needs none."""
    return int(number) if float(number).is_integer() else number
