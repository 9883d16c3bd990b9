"""One person's facts as tools reach them. Implements the `Memory` port over the tables.

Searched by meaning as recall does it, and by the words themselves where that finds nothing.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from cortex.base.errors import Conflict, NotFound, ToolFailed
from cortex.base.fact import FACT_CHARS_MAX, KnownFact
from cortex.ports.memory import Fact
from cortex.selection.index.recall import fitting
from cortex.services.memory.recall import FACTS_MAX
from cortex.storage.db import Database
from cortex.storage.facts import FactRow, FactsRepository, FactValues

ASSISTANT = "the assistant"
UNDO = timedelta(days=1)
FULL = f"{FACTS_MAX:,} facts are stored, which is the limit. Forget some first."


class UserMemory(Struct, frozen=True, kw_only=True):
    """Implements `Memory` for one user."""

    db: Database
    user_id: str

    async def search(self, query: str, most: int) -> Sequence[Fact]:
        """The kept facts nearest in meaning, best first; the newest first for an empty query."""
        rows = await self._facts.list("kept", limit=FACTS_MAX)
        return [_fact(row) for row in (await near(query, rows) if query.strip() else rows)[:most]]

    async def add(self, id: str, text: str, source: str, is_tainted: bool, turn_id: str = "") -> Fact:
        """Keep a fact, or propose one from outside; the standing one that says the same is handed back.

        What was only proposed is kept from now on where the user says it themselves.
        """
        words = " ".join(text.split())[:FACT_CHARS_MAX]
        facts = self._facts
        same = await facts.same(words)
        if same is not None and same.id != id and same.state == "proposed" and not is_tainted:
            kept = await facts.change(
                same.id, ASSISTANT, state="kept", source=source, turn_id=turn_id, is_tainted=False, is_seen=True
            )
            return _fact(kept)
        if same is None and await facts.count() >= FACTS_MAX:
            raise ToolFailed(FULL)
        values = FactValues(
            text=words,
            source=source,
            is_tainted=is_tainted,
            state="proposed" if is_tainted else "kept",
            turn_id=turn_id,
            changed_by=ASSISTANT,
            is_seen=False,
        )
        return _fact(await facts.add(id, values))

    async def forget(self, id: str) -> Fact:
        """Forget it; `restore` brings it back for a day. NotFound."""
        row = await self._facts.get(id)
        if row.state == "forgotten":
            raise NotFound("This fact does not exist.")
        return _fact(await self._facts.change(id, ASSISTANT, state="forgotten"))

    async def restore(self, id: str) -> Fact:
        """Remember a forgotten one again, as what it was."""
        return _fact(await restored(self._facts, id, ASSISTANT))

    @property
    def _facts(self) -> FactsRepository:
        return self.db.repository(FactsRepository, self.user_id)


async def restored(facts: FactsRepository, id: str, by: str) -> FactRow:
    """The fact as it was before it was forgotten, a day ago at most; one that stands is left as it is. NotFound."""
    row = await facts.get(id)
    if row.state != "forgotten":
        return row
    if row.forgotten_at is None or facts.clock() - row.forgotten_at > UNDO:
        raise NotFound("This fact was forgotten more than a day ago and cannot be restored.")
    before = next(iter(await facts.history(id)), None)
    state = before.state if before is not None and before.state != "forgotten" else "kept"
    try:
        return await facts.change(id, by, row.version, state=state)
    except Conflict:
        same = await facts.same(row.text)
        if same is None:
            raise
        return same


async def near(query: str, rows: Sequence[FactRow]) -> Sequence[FactRow]:
    """Those of the facts that have to do with the query, the nearest first; then those that hold its words."""
    known = [KnownFact(id=row.id, text=row.text, is_tainted=row.is_tainted) for row in rows]
    found = await asyncio.to_thread(fitting, query, known)
    by_id = {row.id: row for row in rows}
    words = query.casefold().split()
    holding = [row for row in rows if all(word in row.text.casefold() for word in words)]
    ids = dict.fromkeys([*(fact.id for fact, _, _ in found), *(row.id for row in holding)])
    return [by_id[id] for id in ids]


def _fact(row: FactRow) -> Fact:
    return Fact(
        id=row.id,
        text=row.text,
        source=row.source,
        at=row.at,
        is_tainted=row.is_tainted,
        is_proposed=row.state == "proposed",
    )
