"""Plain commands for the house without a model: what 200 foreign and 60 own ones do, and what one costs in time.

Home Assistant's own sentences are not asked. `python -m tests.bench home_commands` prints the seed, each command that
is left to the model, and each wrong one.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cortex.integrations.home_assistant.commands.understand import PersonsCommands
from cortex.integrations.home_assistant.house import House
from tests.bench.figure import Bench, Figure, Unmeasured, percentile
from tests.bench.mapped_house import HouseMaker, MappedCommand
from tests.integrations.home_assistant_houses import GERMAN
from tests.integrations.home_sentences import german_rows, in_words
from tests.integrations.home_sentences import verdict as judged_as
from tests.plain_home_assistant import PlainHomeAssistant, commands_in, opened

SET = Path("dev") / "routing_homellm.jsonl"
BESIDE = Path(__file__).parents[3].parent / "shared" / "bench"
FOLDERS = "CORTEX_BENCH_DATA"
SAMPLE = 200
TIMED = 50
ORDER = "turn off the {room} lights"
# Labels that the words themselves do not say: named before anything is counted, and counted as left to the model.
UNSAID: Mapping[str, Callable[[str], bool]] = {
    "says both on and off": lambda text: "on or off" in text,
    "a garage door is not switched": lambda text: "ctivate" in text and text.endswith("garage"),
    "says another thing than its label (dim, brighten, turn down of what only switches)": lambda text: (
        any(word in text for word in ("you dim the", "Brighten the", "turn down the"))
        and any(word in text for word in ("lights", "lighting", "sconces"))
    ),
    "is a question about whether it can be done": lambda text: text.startswith("Can the "),
    "a mode, which a switch has not": lambda text: text.endswith(" mode."),
}


def measure(bench: Bench) -> list[Figure]:
    """How many are right, wrong and left to the model, of both sets; the time of one command in 3,000 entities."""
    house, commands = _mapped(bench)
    reader = commands_in(house)
    judged = [(command.text, _verdict(reader, command)) for command in commands]
    _list(f"the public set, seed {bench.seed}, {len(judged)} of it, {len(house.entities):,} entities", judged)
    own = commands_in(GERMAN)
    german = [(text, judged_as(in_words(asyncio.run(own.understand(text))), wanted)) for text, wanted in german_rows()]
    _list("60 German ones of our own", german)
    return [
        *_figures("of the public set", [verdict for _, verdict in judged], f"seed {bench.seed}, places renamed"),
        *_figures("of 60 German ones", [verdict for _, verdict in german], "table written before the grammar"),
        *_timed(house),
        asyncio.run(_turn(bench, house)),
    ]


def _mapped(bench: Bench) -> tuple[House, list[MappedCommand]]:
    """200 rows by chance, carried over to a house of 3,000 entities."""
    named = os.environ.get(FOLDERS, "").split(os.pathsep)
    files = [folder / SET for folder in (*(Path(name) for name in named if name), BESIDE)]
    files += [folder / SET.name for folder in (Path(name) for name in named if name)]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        raise Unmeasured(f"{SET.name} is not here: name its folder in {FOLDERS}, or lay it into ../shared/bench/dev")
    rows: list[dict[str, Any]] = [json.loads(line) for line in found.read_text(encoding="utf-8").splitlines() if line]
    dice = bench.dice()
    chosen = dice.sample(sorted(rows, key=lambda row: str(row["id"])), SAMPLE)
    maker = HouseMaker(dice=dice)
    commands = [maker.mapped(row) for row in chosen]
    return maker.filled(), commands


def _verdict(reader: PersonsCommands, command: MappedCommand) -> str:
    found = asyncio.run(reader.understand(command.text))
    if found is None or not found.orders:
        why = next((why for why, fits in UNSAID.items() if fits(command.text)), "")
        return f"left: {why}" if why else "left"
    order = found.orders[0]
    is_right = (order.service, tuple(sorted(order.ids))) == (command.service, command.ids) and len(found.orders) == 1
    is_right = is_right and all(order.data.get(key) == value for key, value in command.data.items())
    return "right" if is_right else f"wrong: {in_words(found)}, not {command.service} {' '.join(command.ids)}"


def _list(title: str, judged: list[tuple[str, str]]) -> None:
    """Every command that was not done right, to the error stream."""
    lines = [f"{title}:", *(f"  {verdict} | {text}" for text, verdict in judged if verdict != "right")]
    sys.stderr.write("\n".join(lines) + "\n")


def _figures(name: str, verdicts: list[str], how: str) -> list[Figure]:
    count = len(verdicts)
    wrong = sum(verdict.startswith("wrong") for verdict in verdicts)
    left = sum(verdict.startswith("left") for verdict in verdicts)
    unsaid = sum(verdict.startswith("left: ") for verdict in verdicts)
    return [
        Figure(what=f"plain commands {name}, wrong thing done", value=wrong, unit=f"of {count}", how=how, goal=0),
        Figure(
            what=f"plain commands {name}, left to the model",
            value=100 * left / count,
            unit="%",
            how=f"{left} of {count}, {unsaid} of them say other than their label; {how}",
            goal=10,
        ),
    ]


def _timed(house: House) -> list[Figure]:
    """Processor time of understanding one command, index built; and of building it, which a renamed entity causes."""
    rooms = [area.name.casefold() for area in house.areas.values()]
    commands = commands_in(house)
    first, *taken = [
        _ms(lambda room=room: asyncio.run(commands.understand(ORDER.format(room=room))))  # type: ignore[misc]
        for room in (rooms * TIMED)[: TIMED + 1]
    ]
    how = f"`turn off the … lights`, {len(house.entities):,} entities, {TIMED} commands, CPU time"
    return [
        Figure(what="plain command understood, median", value=percentile(taken, 0.5), unit="ms", how=how, goal=100),
        Figure(what="plain command understood, slowest", value=max(taken), unit="ms", how=how, goal=100),
        Figure(what="plain command understood, names indexed anew", value=first, unit="ms", how=how, goal=200),
    ]


async def _turn(bench: Bench, house: House) -> Figure:
    """Processor time of the whole turn, from the message to its stored end: all threads, both databases."""
    room = next(iter(house.areas.values())).name.casefold()
    taken = []
    async with opened(bench.folder / "home", PlainHomeAssistant(house)) as daemon:
        for number in range(TIMED + 1):
            conversation = await daemon.conversation()
            start_s = time.process_time()
            await daemon.say(conversation, f"turn {'on' if number % 2 else 'off'} the {room} lights")
            taken.append((time.process_time() - start_s) * 1000)
        done = len(daemon.devices.calls)
    if done != TIMED + 1:
        raise Unmeasured(f"{done} of {TIMED + 1} commands were done")
    how = f"{TIMED} turns in one process, {len(house.entities):,} entities, Home Assistant in memory, no model asked"
    return Figure(
        what="plain command, the whole turn, median", value=percentile(taken[1:], 0.5), unit="ms", how=how, goal=100
    )


def _ms(act: Callable[[], object]) -> float:
    start_s = time.thread_time()
    act()
    return (time.thread_time() - start_s) * 1000
