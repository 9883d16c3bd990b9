"""The container files, read and not run: what they name exists, what they publish only this machine can reach."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cortex.base.settings import PREFIX, Settings
from web.app import frame_routes
from web.commands import app

ROOT = Path(__file__).resolve().parents[1]
DOCKER = ROOT / "docker"
COMPOSED = ("compose.yml", "compose.scale.yml")
COMMANDS = {one.name or one.callback.__name__ for one in app.registered_commands if one.callback}
SETTINGS = {PREFIX + name.upper() for name in Settings.model_fields}


def composed(name: str) -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((DOCKER / name).read_text(encoding="utf-8"))["services"]
    return services


def ours(name: str) -> dict[str, Any]:
    return {key: one for key, one in composed(name).items() if "build" in one}


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, str]]:
    """The Dockerfile as (instruction, words), lines joined, comments left out."""
    text = re.sub(r"(?m)^\s*#.*\n", "", (DOCKER / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line.strip() for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line.strip()]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def words(steps: list[tuple[str, str]], instruction: str) -> list[str]:
    return [rest for name, rest in steps if name == instruction]


def is_pinned(image: str) -> bool:
    name, _, tag = image.partition(":")
    return bool(name) and bool(re.search(r"\d", tag) or image == "cortex:local")


CLIENTS = {"bookworm": 15, "trixie": 17}  # the major version of each Debian's postgresql-client


def test_the_image_can_back_up_the_database_that_it_is_composed_with(steps: list[tuple[str, str]]) -> None:
    """pg_dump refuses a server that is newer than itself."""
    release = words(steps, "FROM")[-1].rpartition("-")[2]
    assert any(" postgresql-client " in one for one in words(steps, "RUN"))
    server = re.search(r":(\d+)", composed("compose.scale.yml")["database"]["image"])
    assert server is not None
    assert int(server[1]) <= CLIENTS[release]


def test_the_image_runs_a_command_of_ours_as_nobody_special(steps: list[tuple[str, str]]) -> None:
    assert json.loads(words(steps, "ENTRYPOINT")[-1]) == ["cortex"]
    assert json.loads(words(steps, "CMD")[-1])[0] in COMMANDS
    made = next(one for one in words(steps, "RUN") if "useradd" in one)
    assert f"--uid {words(steps, 'USER')[-1]} " in made
    assert steps.index(("USER", words(steps, "USER")[-1])) > max(
        n for n, (name, _) in enumerate(steps) if name == "RUN"
    )
    assert any("bubblewrap" in one for one in words(steps, "RUN"))
    assert words(steps, "VOLUME") == ["/data"]


def test_the_image_is_built_from_what_is_there(steps: list[tuple[str, str]]) -> None:
    assert all(is_pinned(one.split()[0]) for one in words(steps, "FROM"))
    copied = [one.split()[:-1] for one in words(steps, "COPY") if not one.startswith("--from=")]
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    for source in (one for sources in copied for one in sources):
        assert (ROOT / source).exists()
        assert f"!{source}" in ignored
    assert any("--require-hashes -r requirements/run.txt" in one for one in words(steps, "RUN"))
    assert any("-r requirements/postgres.txt" in one for one in words(steps, "RUN"))


def test_both_halves_of_the_driver_are_of_one_version() -> None:
    """Pure psycopg comes with DBOS; what makes it go without a libpq of the system is an extra."""
    pins = ((ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8") for name in ("run", "postgres"))
    half, other = (re.search(r"(?m)^psycopg(?:-binary)?==(\S+)", text) for text in pins)
    assert half
    assert other
    assert half[1] == other[1]


def test_the_image_sets_what_is_a_setting(steps: list[tuple[str, str]]) -> None:
    given = dict(re.findall(rf"({PREFIX}\w+)=(\S+)", words(steps, "ENV")[-1]))
    assert set(given) <= SETTINGS
    assert given[PREFIX + "CONTAINER"] == "1"
    assert words(steps, "EXPOSE") == [given[PREFIX + "PORT"]]


def test_the_image_looks_after_its_health_on_a_route_of_ours(steps: list[tuple[str, str]]) -> None:
    check = words(steps, "HEALTHCHECK")[-1]
    program = json.loads(check[check.index("[") :])[2]
    ast.parse(program)
    path = re.search(r"http://127\.0\.0\.1:8484(/\w+)", program)
    assert path
    assert path[1] in {getattr(route, "path", "") for route in frame_routes.routes}


@pytest.mark.parametrize("name", COMPOSED)
def test_what_is_composed_runs_commands_of_ours_and_is_reached_from_this_machine_only(name: str) -> None:
    for one in composed(name).values():
        assert is_pinned(one["image"])
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", ()))
    for one in ours(name).values():
        assert one["command"][0] in COMMANDS
        assert set(one["environment"]) <= SETTINGS
        assert (DOCKER / one["build"]["context"] / one["build"]["dockerfile"]).exists()
        assert one["read_only"] is True
        assert one["pids_limit"] > 0
        assert one["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in one["security_opt"]
        assert "home:/data" in one["volumes"]


def test_the_scaled_house_has_two_pages_two_workers_and_one_database() -> None:
    found = composed("compose.scale.yml")
    assert {key: one.get("deploy", {}).get("replicas", 1) for key, one in found.items()} == {
        "database": 1,
        "web": 2,
        "worker": 2,
    }
    assert "ports" not in found["worker"]
    assert "ports" not in found["database"]
    for one in (found["web"], found["worker"]):
        assert one["environment"]["CORTEX_DATABASE_URL"].startswith("postgresql://")
        assert one["depends_on"] == {"database": {"condition": "service_healthy"}}
