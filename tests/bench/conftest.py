"""A small house to judge: nine made-up tools, an admin's role."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cortex.selection.registry.snapshot import snapshot_of
from cortex.selection.types import RoleView, Snapshot
from cortex.tools import load
from tests.bench.ground import CACHED, BenchGround
from tests.selection.made import HOUSE

Write = Callable[[str, list[Any]], Path]


def over_the_house(tools: tuple[str, ...] = ("all",)) -> BenchGround:
    role = RoleView(name="bench", tools=tools)
    bare = BenchGround(snapshot=HOUSE, role=role, is_admin=True, profile=CACHED, persona="You are a test.", prompt="")
    return bare.over(HOUSE)


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
