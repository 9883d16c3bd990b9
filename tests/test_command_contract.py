"""What scripts lean on: each command keeps its arguments, options, exit codes and the keys of its JSON.

Whatever fails here breaks a program that calls `cortex`: nothing is renamed, and what is added is added here.
"""

import asyncio
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cortex.services.jobs.forms import JobForm
from tests.children import environment, run
from tests.living_house import living_house

WIDE = {"COLUMNS": "250", "TERM": "dumb"}  # a help line stays a line, without colours
MESSAGE = "add milk to my shopping list"
JOB = JobForm(name="News", prompt="sum up the news", when="every day at 7")

GROUPS = {
    "": "audit backup doctor encoder explain jobs migrate prompt-size restore secrets serve settings stop-all tools"
    " train update user web worker",
    "audit": "accept verify",
    "encoder": "install status",
    "jobs": "list preview run",
    "settings": "unset",
    "tools": "install",
    "user": "add list reset setup-link",
}
OPTIONS = {
    "audit accept": "",
    "audit verify": "--head --json",
    "backup": "--json --to",
    "doctor": "--json",
    "encoder install": "--from --model-sha256 --tokenizer-sha256",
    "encoder status": "--json",
    "explain": "message --assume-configured --json --mode --model --profile --rank --recipe --role --user",
    "jobs list": "--json --user",
    "jobs preview": "when --count --from --json --tz",
    "jobs run": "job --user --wait",
    "migrate": "--to",
    "prompt-size": "message --assume-configured --json --mode --model --profile --rank --recipe --role --user",
    "restore": "file --dry-run --key-file --passphrase-stdin --unsigned",
    "serve": "",
    "settings": "--json",
    "settings unset": "name",
    "stop-all": "--outward --release --user",
    "tools": "--assume-configured --json --markdown --rank --role",
    "tools install": "name --python",
    "train": "--check --out",
    "update": "--back --json --preview --wheel --yes",
    "user add": "name --admin --password-stdin",
    "user list": "--json",
    "user reset": "name",
    "user setup-link": "",
    "web": "",
    "worker": "",
}

JSON_KEYS = {
    f"explain '{MESSAGE}'": """
        : facts facts_tokens
        : history_tokens late message_tokens mode noted notes_tokens model permitted permitted_tokens
        : profile rank recipe role user window_tokens
        : catalog_tokens saved skills skills_tokens system_tokens tokens total total_tokens
        sent[]: category form name reason stage tokens
        decisions[]: category is_in name reason score stage threshold tokens
        left_out: form fuse
        reachable[]:
        added[]:
        epoch: boundary is_open number opening
        epoch.facts: grown highest is_open last_at mode model number permitted recipe request_tokens role summary
        epoch.facts: turn version
        epoch.facts: history_tokens never noted
        labels:
        prefix: history system tools
    """,
    f"prompt-size '{MESSAGE}'": """
        : catalog message model model_calls notes profile rank role system tools total user window_tokens
    """,
    "tools": """
        []: admin category configured confirm name risk tokens_full tokens_stub
        [].setup: page text
    """,
    "doctor": "[]: mend name state text",
    "encoder status": ": dimensions failed folder is_there kept key ms",
    "settings": "[]: name origin value",
    "user list": "[]: is_active name rank",
    "jobs list": "[]: expression id is_enabled kind last name next_at time_zone user when",
    "jobs preview 'every day at 7'": "[]:",
}
EXIT_CODES = {
    "doctor": 0,
    "encoder install --model-sha256 00": 1,
    "encoder status": 0,
    "explain": 2,
    "explain hello --role nobody": 1,
    "explain hello --mode some": 2,
    "jobs list": 0,
    "jobs list --user nobody": 1,
    "jobs preview '31 February'": 1,
    "jobs run weather": 1,
    "migrate": 0,
    "prompt-size hello --model nothing": 1,
    "prompt-size hello --role nobody": 1,
    "prompt-size hello --user nobody": 1,
    "prompt-size hello --profile gemini": 2,
    "settings unset upload_mb": 1,
    "settings unset weather": 1,
    "tools --role nobody": 1,
    "tools --rank king": 2,
    "train --check": 0,
    "train --check --out nowhere.bin": 1,
    "user reset ada": 0,
    "user reset nobody": 1,
    "user setup-link": 1,
    "weather": 2,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a used home, in which there are people and a job."""
    folder = tmp_path_factory.mktemp("contract")

    async def used() -> None:
        async with living_house(folder / "home") as house:
            await house.cortex.jobs.add(house.admin, JOB)

    asyncio.run(used())
    return folder


def cortex(place: Path, command: str) -> subprocess.CompletedProcess[str]:
    return run(shlex.split(command), env=environment(place / "home", **WIDE), cwd=place)


def paths(value: Any, at: str = "") -> set[str]:
    """Where each value of JSON stands, items of a list taken together: `sent[].name`."""
    if isinstance(value, dict) and value:
        return set().union(*(paths(one, f"{at}.{key}".strip(".")) for key, one in value.items()))
    if isinstance(value, list) and value:
        return set().union(*(paths(one, f"{at}[]") for one in value))
    return {at}


def written(keys: str) -> set[str]:
    """The same from lines of `where: keys`."""
    parts = [line.strip().partition(":") for line in keys.strip().splitlines()]
    return {f"{at}.{key}".strip(".") for at, _, names in parts for key in names.split() or [""]}


@pytest.mark.parametrize(("group", "names"), GROUPS.items(), ids=lambda one: one or "cortex")
def test_every_command_keeps_its_name(place: Path, group: str, names: str) -> None:
    told = cortex(place, f"{group} --help")
    box = told.stdout.partition("─ Commands ─")[2]
    assert sorted(re.findall(r"^│ ([a-z-]+) ", box, re.MULTILINE)) == names.split()


@pytest.mark.parametrize(("command", "names"), OPTIONS.items(), ids=OPTIONS)
def test_every_command_keeps_its_arguments_and_options(place: Path, command: str, names: str) -> None:
    told = cortex(place, f"{command} --help")
    own = told.stdout.partition("─ Commands ─")[0]
    found = re.findall(r"^│[* ]+(--[a-z0-9-]+|[a-z]+)[ .]", own, re.MULTILINE)
    assert (told.returncode, sorted(found)) == (0, sorted([*names.split(), "--help"]))


@pytest.mark.parametrize(("command", "keys"), JSON_KEYS.items(), ids=JSON_KEYS)
def test_every_command_keeps_the_keys_of_its_json(place: Path, command: str, keys: str) -> None:
    told = cortex(place, f"{command} --json")
    assert told.returncode == 0, told.stderr
    found, wanted = paths(json.loads(told.stdout)), written(keys)
    assert (wanted - found, found - wanted) == (set(), set())


@pytest.mark.parametrize(("command", "code"), EXIT_CODES.items(), ids=EXIT_CODES)
def test_every_command_keeps_its_exit_codes(place: Path, command: str, code: int) -> None:
    told = cortex(place, command)
    assert told.returncode == code, told.stderr
