"""Which services a Home Assistant has, and whether a call's data is what one takes: checked ahead of any call.

Pure but for the reading. What its description leaves open, Home Assistant itself decides.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from cortex.base.clock import ticks_s
from cortex.base.errors import ToolFailed
from cortex.integrations.home_assistant.house import HouseEntity
from cortex.integrations.home_assistant.registries import plain
from cortex.integrations.home_assistant.server import HomeRefusal
from cortex.integrations.home_assistant.socket import HomeSocket

KEPT_S = 600.0
AGAIN_S = 30.0
NAMED = 20
RANGES = {
    "temperature": ("min_temp", "max_temp"),
    "value": ("min", "max"),
    "humidity": ("min_humidity", "max_humidity"),
}
CHOICES = {
    "hvac_mode": "hvac_modes",
    "preset_mode": "preset_modes",
    "fan_mode": "fan_modes",
    "swing_mode": "swing_modes",
    "option": "options",
    "source": "source_list",
    "sound_mode": "sound_mode_list",
    "effect": "effect_list",
}
OPTIONS = 12


class ServiceField(Struct, frozen=True, kw_only=True):
    """The values that one field takes; None or () = not said."""

    is_required: bool = False
    least: float | None = None
    most: float | None = None
    options: tuple[str, ...] = ()
    is_yes_or_no: bool = False
    is_number: bool = False


class Service(Struct, frozen=True, kw_only=True):
    """A service. `is_described`: its fields are all there are."""

    fields: Mapping[str, ServiceField] = field(default_factory=dict)
    is_described: bool = False


class ServiceBook:
    """The services of one Home Assistant, read when first asked for and again after a while."""

    def __init__(self) -> None:
        self._known: dict[str, Service] = {}
        self._read_at_s = -KEPT_S

    async def check(self, socket: HomeSocket, name: str, data: Mapping[str, object]) -> None:
        """Nothing when `domain.service` is there and takes this data; ToolFailed that says what it does take."""
        age_s = ticks_s() - self._read_at_s
        if age_s > KEPT_S or (name not in self._known and age_s > AGAIN_S):
            self._known = await _read(socket)
            self._read_at_s = ticks_s()
        service = self._known.get(name)
        if not self._known:
            return
        if service is None:
            raise _unknown(name, self._known)
        if service.is_described:
            _check(name, service, data)


async def _read(socket: HomeSocket) -> dict[str, Service]:
    """The services; none where Home Assistant cannot tell (one broken integration is enough): then it checks alone."""
    try:
        return services_of(await socket.command("get_services"))
    except HomeRefusal:
        return {}


def check_against(entities: Sequence[HouseEntity], data: Mapping[str, object]) -> None:
    """Nothing when each entity takes these values, by the ranges and choices that it tells itself; else ToolFailed."""
    for one in entities:
        for key, value in data.items():
            least, most = (_number(one.attributes.get(name)) for name in RANGES.get(key, ("", "")))
            listed = one.attributes.get(CHOICES.get(key, ""))
            options = tuple(str(each) for each in listed) if isinstance(listed, list) else ()
            _check_value(f"{key} of {one.id}", ServiceField(least=least, most=most, options=options), value)


def services_of(rows: object) -> dict[str, Service]:
    """The services by `domain.service`, from get_services."""
    found = {}
    for domain, held in rows.items() if isinstance(rows, dict) else ():
        for verb, row in held.items() if isinstance(held, dict) else ():
            if isinstance(row, dict):
                found[f"{domain}.{verb}"] = _service(row)
    return found


def _service(row: Mapping[str, Any]) -> Service:
    fields = row.get("fields")
    flat: dict[str, ServiceField] = {}
    for name, each in fields.items() if isinstance(fields, dict) else ():
        inner = each.get("fields") if isinstance(each, dict) else None  # newer servers group the rarer ones
        for key, facts in inner.items() if isinstance(inner, dict) else ((name, each),):
            flat[str(key)] = _field(facts if isinstance(facts, dict) else {})
    return Service(fields=flat, is_described=bool(flat) or bool(row.get("target")))


def _field(row: Mapping[str, Any]) -> ServiceField:
    selector = row.get("selector")
    kinds: Mapping[str, Any] = selector if isinstance(selector, dict) else {}
    number = kinds.get("number")
    limits: Mapping[str, Any] = number if isinstance(number, dict) else {}
    choice = kinds.get("select")
    chosen: Mapping[str, Any] = choice if isinstance(choice, dict) else {}
    listed = chosen.get("options")
    options = [one.get("value") if isinstance(one, dict) else one for one in listed or ()]
    is_open = chosen.get("custom_value") or chosen.get("multiple")
    return ServiceField(
        is_required=row.get("required") is True,
        least=_number(limits.get("min")),
        most=_number(limits.get("max")),
        options=() if is_open else tuple(str(one) for one in options if isinstance(one, str)),
        is_yes_or_no="boolean" in kinds,
        is_number="number" in kinds,
    )


def _check(name: str, service: Service, data: Mapping[str, object]) -> None:
    for key, value in data.items():
        if key not in service.fields:
            raise ToolFailed(f"{name} has no field {key[:60]!r}. {_takes(service)}", is_tainted=True)
        _check_value(f"{key} of {name}", service.fields[key], value)
    missing = [key for key, one in service.fields.items() if one.is_required and key not in data]
    if missing:
        raise ToolFailed(f"{name} needs {', '.join(missing[:NAMED])} in data. {_takes(service)}", is_tainted=True)


def _check_value(what: str, taken: ServiceField, value: object) -> None:
    number = _number(value)
    if number is not None and taken.least is not None and number < taken.least:
        raise ToolFailed(f"{what} must be {_range(taken)}.", is_tainted=True)
    if number is not None and taken.most is not None and number > taken.most:
        raise ToolFailed(f"{what} must be {_range(taken)}.", is_tainted=True)
    if (taken.is_number or taken.least is not None) and number is None and not _is_written_number(value):
        raise ToolFailed(f"{what} must be a number.", is_tainted=True)
    if taken.options and isinstance(value, str) and value not in taken.options:
        shown = ", ".join(plain(one) for one in taken.options[:OPTIONS])
        raise ToolFailed(f"{what} must be one of: {shown}.", is_tainted=True)
    if taken.is_yes_or_no and not isinstance(value, bool):
        raise ToolFailed(f"{what} must be true or false.", is_tainted=True)


def _unknown(name: str, known: Mapping[str, Service]) -> ToolFailed:
    domain = name.partition(".")[0]
    own = [one for one in known if one.startswith(f"{domain}.")]
    near = difflib.get_close_matches(name, own or known, n=6, cutoff=0.5) or own[:NAMED]
    hint = f" Near: {', '.join(plain(one) for one in near)}." if near else ""
    return ToolFailed(f"Home Assistant has no service {name!r}.{hint}", is_tainted=bool(near))


def _takes(service: Service) -> str:
    names = [plain(one) for one in service.fields]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"It takes: {', '.join(names[:NAMED])}{more}." if names else "It takes none."


def _range(taken: ServiceField) -> str:
    ends = [f"at least {taken.least:g}"] if taken.least is not None else []
    ends += [f"at most {taken.most:g}"] if taken.most is not None else []
    return " and ".join(ends)


def _is_written_number(value: object) -> bool:
    """Tell whether it is a text that Home Assistant reads as a number."""
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
