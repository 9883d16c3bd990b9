"""Which turns of a conversation are in view. Its turns form a tree; the path of the chosen versions is the transcript.

`is_dropped` is that path, written down: whoever asks for what was said need not know of the tree.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from cortex.storage.repository import Repository, reading
from cortex.storage.schema import ConversationTable, TurnTable
from cortex.storage.turns import TurnRow


class VersionsRepository(Repository):
    """The versions in a user's conversations."""

    async def hold(self, conversation_id: str) -> None:
        """From here to the commit nobody else adds a turn to the conversation or changes what is in view. NotFound."""
        change = self._change(ConversationTable).where(
            ConversationTable.id == conversation_id, ConversationTable.deleted_at.is_(None)
        )
        await self._must_touch(
            change.values(turn_count=ConversationTable.turn_count),
            ConversationTable.id,
            "There is no such conversation.",
        )

    async def drop_from(self, conversation_id: str, ordinal: int) -> Sequence[str]:
        """Take the turns from this ordinal on out of view (a new version takes their place); their ids in order."""
        ids: Sequence[str] = (await self.session.execute(self._in_view(conversation_id, ordinal))).scalars().all()
        await self._set(ids, is_dropped=True)
        await self._set(ids[:1], is_chosen=False)
        return ids

    async def choose(self, turn: TurnRow) -> tuple[Sequence[str], Sequence[str]]:
        """Bring this version into view, and behind it what was chosen there last; what is hidden and shown, in order.

        Where it follows versions that are out of view, those are chosen with it.
        """
        columns = (TurnTable.id, TurnTable.parent_id, TurnTable.is_chosen, TurnTable.is_dropped)
        found = select(*columns).where(*self._in(turn.conversation_id)).order_by(TurnTable.ordinal)
        rows = (await self.session.execute(found)).all()
        parents = {row.id: row.parent_id for row in rows}
        places, at = {}, turn.id
        while at:
            places[parents[at]] = at
            at = parents[at]
        chosen = {row.id: places.get(row.parent_id, row.id if row.is_chosen else "") == row.id for row in rows}
        in_view = {"": True}
        for row in rows:  # a turn is made after the one before it
            in_view[row.id] = chosen[row.id] and in_view[row.parent_id]
        hidden = [row.id for row in rows if not in_view[row.id] and not row.is_dropped]
        shown = [row.id for row in rows if in_view[row.id] and row.is_dropped]
        changed = [row.id for row in rows if chosen[row.id] != row.is_chosen]
        await self._set(hidden, is_dropped=True)
        await self._set(shown, is_dropped=False)
        await self._set([id for id in changed if chosen[id]], is_chosen=True)
        await self._set([id for id in changed if not chosen[id]], is_chosen=False)
        return hidden, shown

    @reading
    async def of_conversation(self, conversation_id: str) -> Mapping[str, tuple[str, ...]]:
        """Each turn whose place has several versions -> all of them, oldest first."""
        mine = self._in(conversation_id)
        places = select(TurnTable.parent_id).where(*mine).group_by(TurnTable.parent_id).having(func.count() > 1)
        statement = select(TurnTable.id, TurnTable.parent_id).where(*mine, TurnTable.parent_id.in_(places))
        found: dict[str, list[str]] = {}
        for id, parent_id in await self.session.execute(statement.order_by(TurnTable.ordinal)):
            found.setdefault(parent_id, []).append(id)
        return {id: tuple(ids) for ids in found.values() for id in ids}

    @reading
    async def of(self, turn: TurnRow) -> Sequence[TurnRow]:
        """All versions of its place, oldest first."""
        place = {"conversation_id": turn.conversation_id, "parent_id": turn.parent_id}
        return await self._where(TurnRow, TurnTable, "ordinal", **place)

    @reading
    async def next_in_view(self, conversation_id: str, ordinal: int) -> str | None:
        """The first turn in view from this ordinal on."""
        first: str | None = (await self.session.execute(self._in_view(conversation_id, ordinal).limit(1))).scalar()
        return first

    def _in_view(self, conversation_id: str, ordinal: int) -> Select[Any]:
        found = select(TurnTable.id).where(*self._in(conversation_id), TurnTable.ordinal >= ordinal)
        return found.where(~TurnTable.is_dropped).order_by(TurnTable.ordinal)

    def _in(self, conversation_id: str) -> tuple[ColumnElement[bool], ...]:
        return self._checked(TurnTable), TurnTable.conversation_id == conversation_id

    async def _set(self, ids: Sequence[str], **values: bool) -> None:
        if ids:
            await self.session.execute(self._change(TurnTable).where(TurnTable.id.in_(ids)).values(**values))
