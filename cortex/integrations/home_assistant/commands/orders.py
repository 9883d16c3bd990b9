"""From what is ordered, and of which entities, to the service calls of Home Assistant. Pure; none where one cannot."""

from collections.abc import Mapping, Sequence

from cortex.integrations.home_assistant.commands.phrases import COLOURS, WHITES
from cortex.integrations.home_assistant.commands.readings import OrderReading
from cortex.integrations.home_assistant.house import HouseEntity
from cortex.integrations.home_assistant.words import EVERY
from cortex.ports.home_assistant import HouseOrder

STEP_PERCENT = 20
DARK_PERCENT = 30  # what is as dim as this is not made dimmer here: the next step would put it out
STEPS = {"up": 1, "down": -1}
COLOUR_MODES = {"hs", "rgb", "xy", "rgbw", "rgbww"}
# Intent: the service of each domain, with the bit of supported_features that it needs.
_TABLE = """
on: light.turn_on switch.turn_on input_boolean.turn_on fan.turn_on climate.turn_on media_player.turn_on/128
on: vacuum.start/8192
off: light.turn_off switch.turn_off input_boolean.turn_off fan.turn_off climate.turn_off media_player.turn_off/256
toggle: light.toggle switch.toggle input_boolean.toggle fan.toggle media_player.toggle cover.toggle/3
start: vacuum.start/8192 fan.turn_on switch.turn_on
open: cover.open_cover/1
close: cover.close_cover/2
stop: cover.stop_cover/8 media_player.media_stop/4096 vacuum.stop/8
up: cover.open_cover/1 media_player.volume_up fan.increase_speed/1 light.turn_on climate.set_temperature/1
down: cover.close_cover/2 media_player.volume_down fan.decrease_speed/1 light.turn_on climate.set_temperature/1
percent: light.turn_on fan.set_percentage/1 cover.set_cover_position/4
colour: light.turn_on
kelvin: light.turn_on
degrees: climate.set_temperature/1
lock: lock.lock
unlock: lock.unlock
pause: media_player.media_pause/1 vacuum.pause/4
play: media_player.media_play/16384
next: media_player.media_next_track/32
previous: media_player.media_previous_track/16
mute: media_player.volume_mute/8
unmute: media_player.volume_mute/8
volume: media_player.volume_set/4
dock: vacuum.return_to_base/16
"""
Data = Mapping[str, object]


def orders(reading: OrderReading, entities: Sequence[HouseEntity]) -> tuple[HouseOrder, ...]:
    """The calls, one for each service and its data; () when one of the entities cannot, or none is there to hear it.

    What makes brighter or dimmer goes to what is on.
    """
    if reading.intent in STEPS and len(entities) > 1:
        entities = [one for one in entities if one.domain != "light" or one.state == "on"]
    made: dict[tuple[str, str], HouseOrder] = {}
    if all(one.state == "unavailable" for one in entities):
        return ()
    for one in entities:
        service, bit = WAYS[reading.intent].get(one.domain, ("", 0))
        stated = one.attributes.get("supported_features")
        can = not isinstance(stated, int) or stated & bit == bit
        data = _data(reading, one) if service and can else None
        if data is None:
            return ()
        key = (service, repr(sorted(data.items())))
        ids = made[key].ids if key in made else ()
        made[key] = HouseOrder(service=service, ids=(*ids, one.id), data=data)
    return tuple(made.values())


def is_one_of_many(line: str) -> bool:
    """Tell whether "the light" is said: in English nobody knows which of several; elsewhere it is all of it."""
    words = set(line.split())
    return "light" in words and EVERY.isdisjoint(words)


def _data(reading: OrderReading, one: HouseEntity) -> Data | None:
    """The data of the call; None where this entity cannot be set so."""
    match reading.intent:
        case "mute" | "unmute":
            return {"is_volume_muted": reading.intent == "mute"}
        case "up" | "down" if one.domain in ("light", "climate"):
            sign = STEPS[reading.intent]
            return _brighter(sign, one) if one.domain == "light" else _warmer(sign, one)
        case "percent" | "volume":
            return _percent(reading.number, one)
        case "colour":
            return _colour(reading.colour, one)
        case "kelvin":
            return _white(reading.number, one)
        case "degrees":
            return _temperature(reading.number, one)
    return {}


def _percent(number: float | None, one: HouseEntity) -> Data | None:
    if number is None or not 1 <= number <= 100 or (one.domain == "light" and not _can_dim(one)):
        return None
    if one.domain == "media_player":
        return {"volume_level": round(number / 100, 2)}
    key = {"light": "brightness_pct", "fan": "percentage", "cover": "position"}[one.domain]
    return {key: whole(number)}


def _brighter(sign: int, one: HouseEntity) -> Data | None:
    now = one.attributes.get("brightness")
    if one.state != "on" or not _can_dim(one) or not isinstance(now, int | float):
        return None
    return None if sign < 0 and now / 255 * 100 <= DARK_PERCENT else {"brightness_step_pct": sign * STEP_PERCENT}


def _warmer(sign: int, one: HouseEntity) -> Data | None:
    now = one.attributes.get("temperature")
    return _temperature(now + sign, one) if isinstance(now, int | float) and one.state != "off" else None


def _temperature(degrees: float | None, one: HouseEntity) -> Data | None:
    low, high = one.attributes.get("min_temp"), one.attributes.get("max_temp")
    if degrees is None or not isinstance(low, int | float) or not isinstance(high, int | float):
        return None
    return {"temperature": whole(degrees)} if low <= degrees <= high else None


def _colour(colour: str, one: HouseEntity) -> Data | None:
    if colour in WHITES:
        return _white(WHITES[colour], one)
    name = COLOURS.get(colour)
    return {"color_name": name} if name and _modes(one) & COLOUR_MODES else None


def _white(kelvin: float | None, one: HouseEntity) -> Data | None:
    low, high = one.attributes.get("min_color_temp_kelvin"), one.attributes.get("max_color_temp_kelvin")
    if kelvin is None or "color_temp" not in _modes(one) or not isinstance(low, int) or not isinstance(high, int):
        return None
    return {"color_temp_kelvin": int(kelvin)} if low <= kelvin <= high else None


def _can_dim(one: HouseEntity) -> bool:
    """Tell whether its brightness can be set, as far as it says what it can."""
    return bool(_modes(one) - {"onoff", "unknown"})


def _modes(one: HouseEntity) -> set[str]:
    held = one.attributes.get("supported_color_modes")
    return {str(mode) for mode in held} if isinstance(held, list | tuple) else set()


def whole(number: float) -> int | float:
    """The number without a point where it needs none."""
    return int(number) if float(number).is_integer() else number


def _ways() -> dict[str, dict[str, tuple[str, int]]]:
    """Intent -> domain -> service and bit."""
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for row in _TABLE.strip().splitlines():
        intent, _, services = row.partition(": ")
        for each in services.split():
            service, _, bit = each.partition("/")
            found.setdefault(intent, {})[service.partition(".")[0]] = (service, int(bit or 0))
    # As Home Assistant's own sentences mean on and off: of covers and locks too.
    found["hass_on"] = found["on"] | found["open"] | found["lock"]
    found["hass_off"] = found["off"] | found["close"] | found["unlock"]
    return found


WAYS = _ways()
