"""A real Home Assistant in a process of its own, from the environment that `make homeassistant` makes."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from cortex.integrations.home_assistant.house import House
from tests.patience import PATIENCE_S
from tests.ports import port_for

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cortex"
# 2025.1.4 needs Python 3.12, 2025.4.4 Python 3.13; newer ones need a newer 3.13, then 3.14.
VERSIONS = {"2024.3.3": "homeassistant", "2025.1.4": "homeassistant-2025", "2025.4.4": "homeassistant-2025.4"}
SENTENCES = ("2024.3.3", "2025.1.4")  # what they make of sentences stands in `tests/integrations/house_sentences/`
AGENTS = ("2025.1.4", "2025.4.4")  # they ask models of Ollama, which came with 2024.4
STARTER = Path(__file__).with_name("home_assistant_starter.py")
LIGHTS = ("kitchen_sink", "kitchen_table", "hall", "bedroom_left", "bedroom_right", "living_room_floor")
LIGHT_NAMES = ("Sink", "Table lamp", "Hallway", "Left lamp", "Right lamp", "Stehlampe")


def pythons_of_home_assistant(versions: Iterable[str] = SENTENCES) -> list[Any]:
    """The versions as parameters of a test; one that is not installed here is skipped, and says what it needs."""
    return [
        pytest.param(
            version,
            marks=pytest.mark.skipif(
                not _python(version).exists(), reason=f"Home Assistant {version} is not here: run `make homeassistant`"
            ),
        )
        for version in versions
    ]


def _python(version: str) -> Path:
    return CACHE / VERSIONS[version] / "bin" / "python"


class RealHome:
    """A folder with its configuration, and a Home Assistant that can be started and stopped on it."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.port = port_for(self)
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = ""
        self.version = version
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and come back when it is ready."""
        (self.folder / "token").unlink(missing_ok=True)
        with (self.folder / "out.log").open("ab") as log:
            command = [str(_python(self.version)), str(STARTER), str(self.folder)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + PATIENCE_S
        while not (self.folder / "token").exists():
            assert self._process.poll() is None, (self.folder / "out.log").read_text(encoding="utf-8")
            assert time.monotonic() < until, (self.folder / "out.log").read_text(encoding="utf-8")
            time.sleep(0.05)
        self.token = json.loads((self.folder / "token").read_text(encoding="utf-8"))["token"]

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def pause(self) -> None:
        """Let it stand still: connected, and silent."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


@contextmanager
def furnished_home(folder: Path, version: str, house: House, *, lacks: Sequence[str] = ()) -> Iterator[RealHome]:
    """One with the rooms and the entities of a house of values, which only stand there; `lacks`: parts left out."""
    home = RealHome(folder, version)
    parts = ("api", "websocket_api", "auth", "config", "conversation", "intent")
    configuration = _bare(home.port, [name for name in parts if name not in lacks], house.language)
    (folder / "configuration.yaml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    (folder / "house.json").write_text(json.dumps(_furniture(house)), encoding="utf-8")
    try:
        home.start()
        yield home
    finally:
        home.stop()


def _furniture(house: House) -> dict[str, Any]:
    """The house as the starter reads it."""
    return {
        "floors": [{"id": one.id, "name": one.name, "aliases": one.aliases} for one in house.floors.values()],
        "areas": [
            {"id": one.id, "name": one.name, "aliases": one.aliases, "floor": one.floor_id}
            for one in house.areas.values()
        ],
        "entities": [
            {
                "id": one.id,
                "name": one.name,
                "aliases": one.aliases,
                "area": one.area_id,
                "state": one.state,
                "attributes": dict(one.attributes),
            }
            for one in house.entities.values()
        ],
    }


@contextmanager
def real_home(folder: Path, version: str = "2024.3.3", *, more: Sequence[str] = ()) -> Iterator[RealHome]:
    """One that runs, with a few rooms' worth of devices; `more`: ids of further input_booleans."""
    home = RealHome(folder, version)
    (folder / "configuration.yaml").write_text(yaml.safe_dump(_configuration(home.port, more)), encoding="utf-8")
    try:
        home.start()
        yield home
    finally:
        home.stop()


def _configuration(port: int, more: Sequence[str]) -> dict[str, Any]:
    booleans = {f"own_{name}": {"name": f"Behind {name}"} for name in (*LIGHTS, "gate", "door", "kettle")}
    parts = ("api", "websocket_api", "auth", "config", "conversation", "intent", "history", "script", "automation")
    return {
        **_bare(port, parts),
        "recorder": {"commit_interval": 0},
        "input_boolean": {**booleans, **{name: None for name in more}},
        "input_number": {"brightness": {"min": 0, "max": 255}, "outside": {"min": -30, "max": 50, "step": 0.1}},
        "light": {"platform": "template", "lights": _lights()},
        "switch": {"platform": "template", "switches": {"kettle": _switch("own_kettle", "Kettle")}},
        "lock": _lock(),
        "template": {
            "sensor": {
                "name": "Outside temperature",
                "unique_id": "outside",
                "unit_of_measurement": "°C",
                "device_class": "temperature",
                "state": "{{ states('input_number.outside') }}",
            }
        },
        "climate": {
            "platform": "generic_thermostat",
            "name": "Living room",
            "unique_id": "living",
            "heater": "input_boolean.own_kettle",
            "target_sensor": "sensor.outside_temperature",
            "min_temp": 7,
            "max_temp": 30,
        },
        "scene": [{"id": "film", "name": "Film", "entities": {"light.hall": "off", "light.kitchen_sink": "on"}}],
    }


def _bare(port: int, parts: Sequence[str], language: str = "en") -> dict[str, Any]:
    return {
        "homeassistant": {"name": "Home", "language": language, "time_zone": "UTC"},
        "http": {"server_host": "127.0.0.1", "server_port": port},
        **dict.fromkeys(parts),
    }


def _lights() -> dict[str, Any]:
    named = zip(LIGHTS, LIGHT_NAMES, strict=True)
    return {id: _switch(f"own_{id}", name) | {"unique_id": id} for id, name in named}


def _switch(own: str, name: str) -> dict[str, Any]:
    target = {"entity_id": f"input_boolean.{own}"}
    steps = {verb: {"service": f"input_boolean.{verb}", "target": target} for verb in ("turn_on", "turn_off")}
    is_on = f"{{{{ is_state('input_boolean.{own}', 'on') }}}}"
    return {"friendly_name": name, "unique_id": own, "value_template": is_on, **steps}


def _lock() -> dict[str, Any]:
    target = {"entity_id": "input_boolean.own_door"}
    return {
        "platform": "template",
        "name": "Front door",
        "unique_id": "door",
        "value_template": "{{ is_state('input_boolean.own_door', 'on') }}",
        "lock": {"service": "input_boolean.turn_on", "target": target},
        "unlock": {"service": "input_boolean.turn_off", "target": target},
    }
