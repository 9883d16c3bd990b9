"""A small house to judge: nine made-up tools, an admin's role, the real words around a conversation."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cortex.agent.prompt import system_prompt, tail, with_tail
from cortex.agent.toolless import as_text
from cortex.bench.ground import CACHED, BenchGround, BenchWords
from cortex.selection.snapshot import snapshot_of
from cortex.selection.types import RoleView, Snapshot
from cortex.services.tools.plans import past_turns
from cortex.tools import load
from tests.selection.made import HOUSE

WORDS = BenchWords(
    system=partial(system_prompt, "You are a test.", ""),
    tail=lambda moment, number, notes: tail(moment, "UTC", round_number=number, notes=notes),
    with_tail=with_tail,
    as_text=as_text,
    past_turns=past_turns,
)
Write = Callable[[str, list[Any]], Path]


def over_the_house(tools: tuple[str, ...] = ("all",)) -> BenchGround:
    role = RoleView(name="bench", tools=tools)
    return BenchGround(snapshot=HOUSE, role=role, is_admin=True, profile=CACHED, words=WORDS).over(HOUSE)


@pytest.fixture
def ground() -> BenchGround:
    return over_the_house()


@pytest.fixture(scope="session")
def shipped() -> Snapshot:
    return snapshot_of(load())


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes rows as JSON lines under this name."""

    def written(name: str, rows: list[Any]) -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return path

    return written


def row(text: str, kind: str = "tool", *groups: list[str], **more: Any) -> Mapping[str, Any]:
    return {"id": text, "text": text, "kind": kind, "need_tools": list(groups), **more}
