"""Starts a real Home Assistant on a folder: only what configuration.yaml names, an admin, and a long-lived token.

Runs under the Python of Home Assistant's own environment, never under Cortex's. `python FILE FOLDER`: the token is
written to FOLDER/token when it has started; it stops by SIGTERM.
"""

import asyncio
import contextlib
import importlib
import inspect
import json
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from homeassistant import bootstrap, runner  # type: ignore[import-not-found]
from homeassistant.auth.const import GROUP_ID_ADMIN  # type: ignore[import-not-found]
from homeassistant.auth.models import TOKEN_TYPE_LONG_LIVED_ACCESS_TOKEN  # type: ignore[import-not-found]
from homeassistant.helpers import area_registry as ar  # type: ignore[import-not-found]
from homeassistant.helpers import entity_registry as er


async def _serve(folder: Path) -> None:
    for name in ("DEFAULT_INTEGRATIONS", "CRITICAL_INTEGRATIONS", "DEFAULT_INTEGRATIONS_RECOVERY_MODE"):
        setattr(bootstrap, name, set())
    hass = await bootstrap.async_setup_hass(runner.RuntimeConfig(config_dir=str(folder), skip_pip=True))
    assert hass is not None
    if (folder / "house.json").exists():
        _furnish(hass, json.loads((folder / "house.json").read_text(encoding="utf-8")))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: hass.async_create_task(hass.async_stop()))
    owner = await _owner(hass)
    names = {one.client_name: one for one in owner.refresh_tokens.values()}
    refresh = names.get("cortex") or await hass.auth.async_create_refresh_token(
        owner,
        client_name="cortex",
        token_type=TOKEN_TYPE_LONG_LIVED_ACCESS_TOKEN,
        access_token_expiration=timedelta(days=365),
    )
    facts = {"token": hass.auth.async_create_access_token(refresh), "refresh_id": refresh.id}
    (folder / "token.new").write_text(json.dumps(facts), encoding="utf-8")
    hass.bus.async_listen_once("homeassistant_started", lambda _: (folder / "token.new").rename(folder / "token"))
    await hass.async_run(attach_signals=False)


def _furnish(hass: Any, house: dict[str, Any]) -> None:
    """Areas, floors and entities that only stand there: in the registries and with a state, and nothing behind them."""
    areas, entities, floors = ar.async_get(hass), er.async_get(hass), {}
    with contextlib.suppress(ImportError):  # since 2024.4 an area can stand on a floor
        registry = importlib.import_module("homeassistant.helpers.floor_registry").async_get(hass)
        for floor in house["floors"]:
            floors[floor["id"]] = registry.async_create(floor["name"], aliases=set(floor["aliases"])).floor_id
    places = {}
    for area in house["areas"]:
        more = {"floor_id": floors[area["floor"]]} if area["floor"] in floors and _has_floors() else {}
        places[area["id"]] = areas.async_create(area["name"], aliases=set(area["aliases"]), **more).id
    for one in house["entities"]:
        domain, _, object_id = one["id"].partition(".")
        made = entities.async_get_or_create(
            domain, "furnished", one["id"], suggested_object_id=object_id, original_name=one["name"]
        )
        assert made.entity_id == one["id"], made
        place = places.get(one["area"])
        entities.async_update_entity(one["id"], area_id=place, aliases=set(one["aliases"]))
        hass.states.async_set(one["id"], one["state"], {"friendly_name": one["name"], **one["attributes"]})


def _has_floors() -> bool:
    return "floor_id" in inspect.signature(ar.AreaRegistry.async_create).parameters


async def _owner(hass: Any) -> Any:
    for one in await hass.auth.async_get_users():
        if one.name == "Owner":
            return one
    return await hass.auth.async_create_user("Owner", group_ids=[GROUP_ID_ADMIN])


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
