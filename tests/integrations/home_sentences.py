"""What people say to a house in seven languages, and what is right: the tables in `house_sentences/`, read.

A line: the sentence, then ` -> ` and the calls (`domain.service ids {data}`, `; ` between two), `state ids` for a
question, or `model` where it is not certain what is meant, who may do it, or when.
"""

import asyncio
import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cortex.integrations.home_assistant.commands.sentences import DEBUG
from cortex.integrations.home_assistant.home_assistant import HomeConnection
from cortex.integrations.home_assistant.house import Area, House
from cortex.integrations.home_assistant.server import server_at
from cortex.ports.home_assistant import HouseCommand
from tests.integrations.home_assistant_german import TABLE
from tests.integrations.home_assistant_houses import (
    COLOURFUL,
    DIMMABLE,
    ENGLISH,
    FAN,
    GERMAN,
    HEATING,
    ON,
    PLAIN,
    PLAYER,
    SHUTTER,
    VACUUM,
    entity,
    house_of,
)
from tests.real_home_assistant import VERSIONS, RealHome, furnished_home

FOLDER = Path(__file__).with_name("house_sentences")
FIVE = ("fr", "es", "it", "nl", "pt")
LANGUAGES = ("en", "de", *FIVE)
MODEL = "model"
KINDS: dict[str, dict[str, Any]] = {
    "": {},
    "colourful": COLOURFUL,
    "dimmable": DIMMABLE,
    "plain": PLAIN,
    "shutter": SHUTTER,
    "garage": {"device_class": "garage", "supported_features": 11},
    "heating": HEATING,
    "fan": FAN,
    "lock": {"supported_features": 0},
    "tv": {**PLAYER, "device_class": "tv"},
    "vacuum": VACUUM,
    "temperature": {"device_class": "temperature", "unit_of_measurement": "°C"},
    "window": {"device_class": "window"},
}
_ROW = re.compile(r"(?P<id>[a-z_.]+)(?: @(?P<room>\w+) (?P<state>\S+)(?: \((?P<kind>\w+)\))?)?: (?P<names>.+)")


def house_in(language: str) -> House:
    """The house of the tables, with its names in this language."""
    if language in ("en", "de"):
        return {"en": ENGLISH, "de": GERMAN}[language]
    areas, entities = [], []
    for line in (FOLDER / "house.txt").read_text(encoding="utf-8").splitlines():
        row = _ROW.fullmatch(line)
        if row is None:
            continue
        name = row["names"].split(" | ")[FIVE.index(language)]
        if row["room"] is None:
            areas.append(Area(id=row["id"], name=name))
            continue
        held = KINDS[row["kind"] or ""]
        lit = ON if row["state"] == "on" and "supported_color_modes" in held and held is not PLAIN else {}
        entities.append(entity(row["id"], name, row["room"], row["state"], **held, **lit))
    return house_of(entities, areas, language=language)


def german_rows() -> list[tuple[str, str]]:
    """The sixty German commands, each with what is right, ids in order."""
    return _rows(TABLE, "de")


def sentences_in(language: str) -> list[tuple[str, str]]:
    """All sentences of a language, each with what is right, ids in order."""
    rows = _rows((FOLDER / f"{language}.txt").read_text(encoding="utf-8"), language)
    return [*german_rows(), *rows] if language == "de" else rows


def _rows(text: str, language: str) -> list[tuple[str, str]]:
    rows = [line.partition(" -> ") for line in text.strip().splitlines()]
    return [(said, ordered(wanted, house_in(language))) for said, _, wanted in rows]


def ordered(wanted: str, house: House) -> str:
    """The wanted calls with their ids in order."""
    lights = " ".join(id for id in house.entities if id.startswith("light."))
    calls = []
    for call in wanted.replace("ALL_LIGHTS", lights).split("; "):
        head, brace, data = call.partition(" {")
        service, *ids = head.split()
        calls.append(" ".join([service, *sorted(ids)]) + brace + data)
    return "; ".join(sorted(calls))


def in_words(command: HouseCommand | None) -> str:
    """What a command does, as the tables write it."""
    if command is None:
        return MODEL
    calls = [
        " ".join([one.service, *sorted(one.ids), *([json.dumps(dict(one.data))] if one.data else [])])
        for one in command.orders
    ]
    looks = [" ".join(["state", *sorted(command.looks)])] if command.looks else []
    return "; ".join(sorted([*calls, *looks]))


def verdict(found: str, wanted: str) -> str:
    """Right, left (to the model, where an act was certain) or wrong."""
    return "right" if found == wanted else "left" if found == MODEL else f"wrong: {found}, not {wanted}"


def answers_of(version: str, language: str) -> dict[str, Any]:
    """What this version of Home Assistant answered to each sentence, None for what it does not know."""
    found: dict[str, Any] = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))[version][language]
    return found


async def _recorded(home: RealHome, language: str) -> dict[str, Any]:
    """Ask a real one about every sentence of a language."""
    connection = HomeConnection(server_at(home.url, home.token))
    answers = {}
    async with connection.index.client.running():
        socket = await connection.index.client.socket()
        for said, _ in sentences_in(language):
            asked = await socket.command(DEBUG, sentences=[said], language=language, timeout_s=60.0)
            answers[said] = _shortened(asked["results"][0])
    return answers


def _shortened(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """An answer without what nobody reads."""
    if result is None:
        return None
    values = {key: {"value": held["value"]} for key, held in result["details"].items()}
    return {"details": values, **{key: result[key] for key in ("match", "source", "intent", "targets")}}


def _record() -> None:
    """Write down what each version answers: `python -m tests.integrations.home_sentences`, or `... fr it` for some."""
    path = FOLDER / "answers.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for version in VERSIONS:
        for language in sys.argv[1:] or LANGUAGES:
            with TemporaryDirectory() as folder, furnished_home(Path(folder), version, house_in(language)) as home:
                known.setdefault(version, {})[language] = asyncio.run(_recorded(home, language))
    path.write_text(_in_lines(known) + "\n", encoding="utf-8")


def _in_lines(value: Any, depth: int = 0) -> str:
    """JSON with a line for each sentence."""
    if depth == 3:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    rows = (f"{json.dumps(key, ensure_ascii=False)}: {_in_lines(value[key], depth + 1)}" for key in sorted(value))
    return "{\n" + ",\n".join(rows) + "\n}"


if __name__ == "__main__":
    _record()
