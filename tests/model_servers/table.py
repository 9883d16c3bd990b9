"""Runs rows and scenes, and says what came of each."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.model_servers.rows import ROWS, Row
from tests.model_servers.scenes import SCENES, Scene, why_not
from tests.model_servers.server import Double
from tests.model_servers.stage import Stage

RESULTS = Path(__file__).parent / "results.json"  # what docs/models.md is made of
LIMIT_S = 30.0  # of one scene, which takes milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A cell. `state`: passes, fails or left out; `why`: of a failure or of what is left out. `cpu_ms`: processor."""

    row: str
    scene: str
    state: str
    why: str = ""
    cpu_ms: int = 0


@contextmanager
def doubles(rows: Sequence[Row] = ROWS) -> Iterator[dict[str, Double]]:
    """A double of each row, all running."""
    with ExitStack() as stack:
        yield {row.id: stack.enter_context(Double(row)) for row in rows}


async def play(row: Row, scene: Scene, running: dict[str, Double]) -> None:
    """Run one scene; AssertionError or ProviderError where it fails."""
    stage = Stage(row=row, doubles=running)
    try:
        async with asyncio.timeout(LIMIT_S):
            await scene(stage)
    finally:
        await stage.close()


def run(rows: Sequence[Row] = ROWS, scenes: Sequence[Scene] = SCENES) -> list[Result]:
    """Every cell of the table."""
    with doubles() as running:
        return [_cell(row, scene, running) for row in rows for scene in scenes]


def _cell(row: Row, scene: Scene, running: dict[str, Double]) -> Result:
    if why := why_not(row, scene.__name__):
        return Result(row=row.id, scene=scene.__name__, state="left out", why=why)
    began = time.process_time()
    why = ""
    try:
        asyncio.run(play(row, scene, running))
    except Exception as error:  # noqa: BLE001 - a scene that fails is a cell of the table
        why = f"{type(error).__name__}: {error}"[:300]
    ms = round((time.process_time() - began) * 1000)
    return Result(row=row.id, scene=scene.__name__, state="fails" if why else "passes", why=why, cpu_ms=ms)


def as_json(results: Sequence[Result]) -> str:
    """The table for documents, a scene a line: state -> row -> why. Without what differs from run to run."""
    scenes: dict[str, dict[str, dict[str, str]]] = {}
    for one in results:
        scenes.setdefault(one.scene, {}).setdefault(one.state, {})[one.row] = one.why
    return "{\n" + ",\n".join(f"{json.dumps(scene)}: {json.dumps(each)}" for scene, each in scenes.items()) + "\n}\n"


def summary(results: Sequence[Result]) -> str:
    """How many scenes each row passes, and which it fails."""
    lines = []
    for row_id in dict.fromkeys(result.row for result in results):
        own = [result for result in results if result.row == row_id and result.state != "left out"]
        failed = [result.scene for result in own if result.state == "fails"]
        lines.append(f"{row_id:12} {len(own) - len(failed):3} of {len(own):3}  {' '.join(failed)}")
    ran = [result for result in results if result.state != "left out"]
    passed = sum(result.state == "passes" for result in ran)
    seconds = sum(result.cpu_ms for result in ran) / 1000
    return "\n".join([*lines, f"{passed} of {len(ran)} pass; {seconds:.1f} s of processor"])
