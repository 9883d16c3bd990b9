"""Statements that are kept: made once, and run for nobody but the user of the repository."""

from typing import Any

import pytest

from cortex.base.errors import NotFound
from cortex.storage import kept
from cortex.storage.db import Database
from cortex.storage.schema import TurnTable
from cortex.storage.turns import TurnRow, TurnsRepository


def test_whose_rows_are_meant_is_not_among_the_values() -> None:
    assert kept.parameters("ann", {"owner": "ben", "id": "turn:1"}) == {"owner_": "ann", "id_": "turn:1"}


def test_a_statement_is_made_once() -> None:
    first = kept.matching(TurnRow, TurnTable, ("id",))
    assert kept.matching(TurnRow, TurnTable, ("id",)) is first


async def test_one_statement_serves_two_people_and_mixes_nothing(db: Database, talk: Any, ann: str, ben: str) -> None:
    await talk.turn("turn:1")
    assert (await db.repository(TurnsRepository, ann).get("turn:1")).owner_id == ann
    with pytest.raises(NotFound):
        await db.repository(TurnsRepository, ben).get("turn:1")
    assert (await db.repository(TurnsRepository, ann).get("turn:1")).owner_id == ann
