"""The house's devices through Home Assistant: look, switch, put back. Names are read by the port's own index.

What a call may do decides its risk: a lamp is no lock. Services that run programs or send elsewhere are not called.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import Field

from cortex.base.errors import Conflict, ToolFailed
from cortex.base.zone import moment
from cortex.ports.home_assistant import Entity, HomeAssistant, NamedEntities, ServiceChecks
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.devices import EASY, NEVER, TARGETS, image, risk_of, sends_to, stamp, touched_by, way_back
from cortex.toolkit.spec import Output, Risk
from cortex.toolkit.state_history import history_lines
from cortex.toolkit.words import listed, short, spoken

SUMMARY = "Home Assistant: lights, climate, music, locks, sensors"
NEEDS = ("HomeAssistant",)
ROLES = {"orchestrator": ("ha",)}
TESTED = "real Home Assistant 2024.3.3 and 2025.1.4; every day a double of its websocket protocol"
SHOWN = 30
HOURS = 240  # Home Assistant keeps ten days unless told otherwise
DATA_CHARACTERS = 4_000
VALUE_CHARACTERS = 80
PLAIN = (
    "current_temperature temperature brightness color_temp_kelvin rgb_color current_position percentage hvac_action "
    "preset_mode volume_level media_title media_artist source battery_level device_class"
)


def _risk(arguments: Mapping[str, Any]) -> Risk:
    return risk_of(str(arguments["service"]), arguments.get("data") or {})


def _place(arguments: Mapping[str, Any]) -> str:
    return sends_to(str(arguments["service"]), arguments.get("data") or {})


@tool(words="Look at {entity}[, {hours} hours back]", effect="read", reads_private=True, reads_untrusted=True)
async def ha_get_state(ctx: Ctx, entity: str, hours: Annotated[int, Field(ge=0, le=HOURS)] = 0) -> str:
    """Tell the state of a device or sensor of the house, or its history.

    Args:
        entity: Its id or name, such as living room temperature.
        hours: How far back to look, such as 24; 0: only now.
    """
    home = ctx.use(HomeAssistant)
    meant = await home.resolve(entity, ())
    if not meant.entities:
        raise _unsure(entity, meant)
    shown = await home.read([one.id for one in meant.entities[:SHOWN]])
    if len(shown) > 1:
        return "\n".join(_line(one) for one in shown)
    if not shown:
        raise ToolFailed(f"{entity!r} is gone from Home Assistant. Look with ha_get_states.")
    one = shown[0]
    first = f"{_line(one)}, since {moment(one.changed_at, ctx.user.time_zone)}"
    if hours:
        changes = await home.history(one.id, hours)
        return "\n".join([first, *history_lines(changes, one.unit, ctx.now, hours, ctx.user.time_zone)])
    held = one.attributes
    facts = [f"{key}: {_short(str(held[key]))}" for key in PLAIN.split() if held.get(key) is not None]
    return "\n".join([first, *facts])


@tool(
    words="Look at devices[: {query}][, {domain}][, in {area}]", effect="read", reads_private=True, reads_untrusted=True
)
async def ha_get_states(
    ctx: Ctx, query: str = "", domain: str = "", area: str = "", count: Annotated[int, Field(ge=1, le=SHOWN)] = SHOWN
) -> str:
    """List devices and sensors of the house with their states.

    Args:
        query: Words of names, or a state such as on.
        domain: Such as light, sensor, lock.
        area: A room.
        count: How many.
    """
    narrowed = query.strip(), domain.strip().casefold(), area.strip()
    found = await ctx.use(HomeAssistant).find(*narrowed, count)
    if not found.total and not any(narrowed):
        return "Home Assistant shows this account no device. An admin chooses under Integrations what it may see."
    lines = [_line(one) for one in found.entities]
    if found.total > len(lines):
        lines.append(f"... and {found.total - len(lines)} more: narrow it by query, domain or area.")
    return "\n".join(lines) or "Nothing matches. Try fewer words, or leave domain or area out."


async def _can_call(ctx: Ctx, service: str, target: str, data: dict[str, Any] | None) -> None:
    name, _, meant = await _meant(ctx, service, target, data or {})
    with _refusals_noted(ctx):
        await ctx.use(ServiceChecks).check(name, [one.id for one in meant.entities], data or {})


def _order(arguments: Mapping[str, Any]) -> str:
    """Such as "Turn off kitchen lights", "Set temperature: Bad (temperature 21)"."""
    service, target, data = str(arguments["service"]), str(arguments["target"]), arguments["data"] or {}
    verb = spoken(service).capitalize() or "Use"
    names = ", ".join(spoken(one) for one in target.split(","))
    what = names or service.partition(".")[0].replace("_", " ")
    return f"{verb} {short(what)}{f' ({listed(data)})' if data else ''}"


@tool(words=_order, risk="medium", risk_of=_risk, sends_to=_place, check=_can_call)
async def ha_call_service(ctx: Ctx, service: str, target: str = "", data: dict[str, Any] | None = None) -> Output:
    """Switch or set devices of the house: lights, heating, music, locks.

    Args:
        service: Such as light.turn_off.
        target: Names, a room or ids: kitchen lights.
        data: Such as {"brightness_pct": 30}.
    """
    name, domain, meant = await _meant(ctx, service, target, data or {})
    home = ctx.use(HomeAssistant)
    ids = [one.id for one in meant.entities]
    touched = touched_by(domain, meant.entities)
    before = await home.read(touched) if touched else ()
    with _refusals_noted(ctx):
        after = await home.call(name, ids, data or {})
    if before:
        stood = await home.read(touched)
        old = {"entities": [image(one) for one in before]}
        ctx.leave_undo(target=name, before=old, expected=stamp(stood), label="Put the devices back")
    return _result_text(name, target.strip(), after)


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Put lights, switches, fans and covers back as they stood. Conflict when one was changed since."""
    home = ctx.use(HomeAssistant)
    images: list[dict[str, Any]] = (before or {}).get("entities", [])
    now = await home.read([str(old["id"]) for old in images])
    if stamp(now) != expected:
        raise Conflict("Devices have changed since and were left as they are.")
    for old in images:
        step = way_back(old)
        if step is not None:
            await home.call(step[0], [str(old["id"])], step[1])
    stood = await home.read([str(old["id"]) for old in images])
    ctx.leave_redo(target=target, before={"entities": [image(one) for one in now]}, expected=stamp(stood))
    return f"Put {len(images)} device{'' if len(images) == 1 else 's'} back."


@contextmanager
def _refusals_noted(ctx: Ctx) -> Iterator[None]:
    """A refusal names what the house has: who hears it has read something private."""
    try:
        yield
    except ToolFailed:
        ctx.note_private("what the house has")
        raise


async def _meant(ctx: Ctx, service: str, target: str, data: Mapping[str, Any]) -> tuple[str, str, NamedEntities]:
    """The service, its domain and the devices; ToolFailed for what cannot be called, and for an unsure target."""
    name, domain = _service(service)
    _check(domain, target, data)
    if not target.strip():
        return name, domain, NamedEntities()
    meant = await ctx.use(HomeAssistant).resolve(target, (domain,))
    if not meant.entities:
        ctx.note_private("the names of the house")
        raise _unsure(target, meant)
    return name, domain, meant


def _service(service: str) -> tuple[str, str]:
    """The service and its domain; ToolFailed for what is none and for what is never called from here."""
    name = service.strip().casefold()
    domain, dot, verb = name.partition(".")
    if not dot or not domain.replace("_", "a").isalnum() or not verb.replace("_", "a").isalnum():
        raise ToolFailed(f"{service[:80]!r} is not a service: write domain.service, such as light.turn_on.")
    if domain in NEVER:
        raise ToolFailed(f"{domain} services are not called from here; use the service of the device itself.")
    return name, domain


def _check(domain: str, target: str, data: Mapping[str, Any]) -> None:
    """ToolFailed for too much data, for data that names devices past the target, and for no target where one is due."""
    if len(json.dumps(data)) > DATA_CHARACTERS:
        raise ToolFailed("That is too much data for one call.")
    if TARGETS & set(data):
        raise ToolFailed("Name the devices in target, not in data.")
    if domain in EASY and not target.strip():
        raise ToolFailed("Say in target which devices: names, a room or ids.")


def _unsure(words: str, meant: NamedEntities) -> ToolFailed:
    """Say that the words name nothing for certain."""
    near = "; ".join(f"{one.name} ({one.id}{f', {one.area}' if one.area else ''})" for one in meant.near[:6])
    hint = f"Near: {near}. Use the id." if near else "Look with ha_get_states."
    return ToolFailed(f"No device is certainly {words!r}. {hint}", is_tainted=bool(near))


def _result_text(name: str, target: str, after: Sequence[Entity]) -> Output:
    """Tell how the call ended, in the caller's own words; names from the house only where the ends differ."""
    done = f"{name} was done{f' for {target!r}' if target else ''}"
    states = {one.state for one in after}
    if not after:
        return Output(text=f"{done}.")
    if len(states) == 1 and (state := states.pop()).replace("_", "a").isalnum() and len(state) < 20:
        count = f"all {len(after)} are" if len(after) > 1 else "it is"
        return Output(text=f"{done}: {count} {state} now.")
    return Output(text="\n".join([f"{done}:", *(_line(one) for one in after[:SHOWN])]), is_tainted=True)


def _line(one: Entity) -> str:
    place = f", {one.area}" if one.area else ""
    return f"- {one.name} ({one.id}{place}): {_short(one.state)}{f' {one.unit}' if one.unit else ''}"


def _short(text: str) -> str:
    return " ".join(text.split())[:VALUE_CHARACTERS]
