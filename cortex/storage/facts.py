"""What is remembered of a user: facts, each with what it was before. Two that say exactly the same are one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack

from msgspec import Struct
from sqlalchemy import delete, func, select

from cortex.base.errors import Conflict
from cortex.base.fact import Certainty, FactState, fact_key
from cortex.storage.repository import Repository, SharedRepository, as_row, reading
from cortex.storage.schema import FactTable, FactVersionTable
from cortex.storage.table import each_word

STANDING: tuple[FactState, ...] = ("kept", "proposed")


class FactValues(Struct, frozen=True, kw_only=True):
    """A fact to be kept. `source`: who said it, in words; `quote`: the user's own words it comes from, "" for none.

    `turn_id`: where it was said, "" for nowhere; `replaces`: the fact that a proposal would take the place of, or "".
    `changed_by`: whoever wrote it (you, the assistant, distill). `is_seen`: the person knows of it.
    """

    text: str
    source: str
    is_tainted: bool
    certainty: Certainty = "stated"
    state: FactState = "kept"
    quote: str = ""
    turn_id: str = ""
    replaces: str = ""
    changed_by: str = "you"
    is_seen: bool = True


class FactRow(Struct, frozen=True, kw_only=True):
    """A fact as it is kept. `at`: when it was said; `is_tainted`: it holds words from outside."""

    id: str
    text: str
    key: str
    source: str
    quote: str
    turn_id: str
    certainty: Certainty
    state: FactState
    replaces: str
    is_tainted: bool
    is_seen: bool
    version: int
    changed_by: str
    at: datetime
    created_at: datetime
    updated_at: datetime
    forgotten_at: datetime | None


class FactVersionRow(Struct, frozen=True, kw_only=True):
    """A fact as it stood at an earlier version; `changed_by` had made it so."""

    fact_id: str
    version: int
    text: str
    certainty: Certainty
    state: FactState
    is_tainted: bool
    changed_by: str
    updated_at: datetime


class FactFields(TypedDict, total=False):
    """The fields of a fact that may change."""

    text: str
    certainty: Certainty
    state: FactState
    source: str
    quote: str
    turn_id: str
    replaces: str
    is_tainted: bool
    is_seen: bool


class FactsRepository(Repository):
    """One user's facts."""

    @reading
    async def list(self, *states: FactState, query: str = "", limit: int | None = None) -> Sequence[FactRow]:
        """The facts in these states, the newest first; `query`: words that they hold, all of them."""
        statement = self._mine(FactRow, FactTable).where(FactTable.state.in_(states or STANDING))
        statement = statement.where(*each_word(query, FactTable.text))
        return await self._all(FactRow, statement.order_by(FactTable.at.desc(), FactTable.id).limit(limit))

    @reading
    async def count(self) -> int:
        """Return how many stand, kept and proposed."""
        statement = select(func.count()).where(FactTable.owner_id == self.owner_id, FactTable.state.in_(STANDING))
        return int((await self.session.execute(statement)).scalar_one())

    @reading
    async def get(self, id: str) -> FactRow:
        """The fact, in whatever state; NotFound when it is absent or another user's."""
        return await self._get(FactRow, FactTable, id, "This fact does not exist.")

    @reading
    async def same(self, text: str) -> FactRow | None:
        """The standing fact that says exactly this."""
        mine = self._mine(FactRow, FactTable).where(FactTable.key == fact_key(text), FactTable.state.in_(STANDING))
        return await self._first(FactRow, mine)

    async def add(self, id: str, values: FactValues, at: datetime | None = None) -> FactRow:
        """Keep a fact; the one that stands under this id, or says exactly the same, is handed back instead."""
        now = self.clock()
        row = as_row(values)
        times = {"at": at or now, "created_at": now, "updated_at": now, "forgotten_at": None}
        await self._is_new(FactTable, {**row, **times, "id": id, "key": fact_key(values.text), "version": 1})
        known = await self._first(FactRow, self._mine(FactRow, FactTable).where(FactTable.id == id))
        found = known or await self.same(values.text)
        if found is None:
            raise Conflict("This fact already exists.")
        return found

    async def change(
        self, id: str, by: str, expected_version: int | None = None, **fields: Unpack[FactFields]
    ) -> FactRow:
        """Change the fields given, at the next version; what it was is kept. The fact as it then stands.

        Conflict when it no longer stands at `expected_version`, or another fact says the same: nothing was changed.
        """
        before = await self.get(id)
        if expected_version not in (None, before.version):
            raise Conflict(f"The fact {before.text!r} was changed in the meantime. Check it again.")
        text, state = fields.get("text", before.text), fields.get("state", before.state)
        same = await self.same(text)
        if state != "forgotten" and same is not None and same.id != id:
            raise Conflict(f"Already remembered: {same.text}")
        now = self.clock()
        old = {name: getattr(before, name) for name in FactVersionRow.__struct_fields__ if name != "fact_id"}
        values: dict[str, Any] = {
            **fields,
            "key": fact_key(text),
            "version": before.version + 1,
            "changed_by": by,
            "updated_at": now,
            "forgotten_at": now if state == "forgotten" else None,
        }
        change = self._change(FactTable).where(FactTable.id == id, FactTable.version == before.version)
        if not await self._touched(change.values(**values), FactTable.id):
            raise Conflict(f"The fact {before.text!r} was changed in the meantime. Check it again.")
        await self._is_new(FactVersionTable, {**old, "fact_id": id})
        return await self.get(id)

    @reading
    async def history(self, id: str) -> Sequence[FactVersionRow]:
        """Return what the fact was before, the latest first."""
        mine = self._mine(FactVersionRow, FactVersionTable).where(FactVersionTable.fact_id == id)
        return await self._all(FactVersionRow, mine.order_by(FactVersionTable.version.desc()))

    async def see(self) -> None:
        """The person has seen what is new."""
        unseen = self._change(FactTable).where(FactTable.is_seen.is_(False), FactTable.state == "kept")
        await self.session.execute(unseen.values(is_seen=True))


class AllFactsRepository(SharedRepository):
    """The facts of everybody."""

    async def prune(self, before: datetime) -> None:
        """Throw away what was forgotten before then, with its history."""
        gone = delete(FactTable).where(FactTable.state == "forgotten", FactTable.forgotten_at < before)
        await self.session.execute(gone)
