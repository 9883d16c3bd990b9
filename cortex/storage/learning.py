"""Cases of what a message needed and what was answered to them. Words stand here with their writer's consent alone."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack

from msgspec import Struct
from sqlalchemy import delete, select

from cortex.base.errors import NotFound
from cortex.base.ids import new_id
from cortex.storage.repository import Repository, SharedRepository, reading, selected
from cortex.storage.schema import ConversationTable, LearningAnswerTable, LearningCaseTable, TurnTable


class LearningCaseRow(Struct, frozen=True, kw_only=True):
    """A turn whose first request did not fit. `needed`: tool -> how it came; `text`: None without consent.

    `unused`: sent and not called; `unneeded`: what its person reported as not needed.
    """

    owner_id: str
    turn_id: str
    role: str
    needed: dict[str, Any]
    called: tuple[str, ...]
    unused: tuple[str, ...]
    text_hash: str
    text: str | None
    created_at: datetime
    unneeded: tuple[str, ...] = ()


class WordingAnswerRow(Struct, frozen=True, kw_only=True):
    """An admin's answer to a wording for a tool. `kind`: example, phrase, or empty where it was turned down."""

    id: str
    tool: str
    text_hash: str
    kind: str
    category: str
    text: str
    answered_by: str
    answered_at: datetime


class TaughtCase(TypedDict):
    """The lesson of a turn, as `LearningCaseRow` has it."""

    needed: Mapping[str, str]
    called: tuple[str, ...]
    unused: tuple[str, ...]
    text_hash: str
    text: str | None


class CasesRepository(Repository):
    """The cases of one user's turns."""

    async def add(self, turn_id: str, role: str, **taught: Unpack[TaughtCase]) -> None:
        """Keep what a turn taught, once. NotFound for a foreign turn."""
        await self._must_own(TurnTable, turn_id, "turn")
        head = {"id": new_id(self.clock), "turn_id": turn_id, "role": role, "created_at": self.clock()}
        row: dict[str, Any] = {**taught, **head, "needed": dict(taught["needed"])}
        statement = self._insert(LearningCaseTable, row).on_conflict_do_nothing(index_elements=["turn_id"])
        await self.session.execute(statement)

    async def report(self, turn_id: str, *, needed: Mapping[str, str], unneeded: tuple[str, ...]) -> None:
        """Put what the person reported into the place of what was known of the turn; there must be a case."""
        change = self._change(LearningCaseTable).where(LearningCaseTable.turn_id == turn_id)
        await self.session.execute(change.values(needed=dict(needed), unneeded=unneeded))

    @reading
    async def of_turn(self, turn_id: str) -> LearningCaseRow | None:
        """The case of this turn, if it left one."""
        mine = (LearningCaseTable.owner_id == self.owner_id, LearningCaseTable.turn_id == turn_id)
        return await self._first(LearningCaseRow, selected(LearningCaseRow, LearningCaseTable).where(*mine))

    async def forget_words(self) -> None:
        """The user's words leave the cases; that something was needed stays."""
        await self.session.execute(self._change(LearningCaseTable).values(text=None))

    @reading
    async def said(self) -> Mapping[str, str]:
        """The user's own messages of the cases, by turn."""
        statement = (
            select(LearningCaseTable.turn_id, TurnTable.text)
            .join(TurnTable, TurnTable.id == LearningCaseTable.turn_id)
            .where(LearningCaseTable.owner_id == self.owner_id, TurnTable.owner_id == self.owner_id)
        )
        return {turn_id: text for turn_id, text in await self.session.execute(statement)}


class AllCasesRepository(SharedRepository):
    """The cases of everybody, without what their writers did not share."""

    @reading
    async def recent(self, limit: int) -> Sequence[LearningCaseRow]:
        """The latest cases, newest first; those of conversations in the bin are out."""
        statement = (
            selected(LearningCaseRow, LearningCaseTable)
            .join(TurnTable, TurnTable.id == LearningCaseTable.turn_id)
            .join(ConversationTable, ConversationTable.id == TurnTable.conversation_id)
            .where(ConversationTable.deleted_at.is_(None))
            .order_by(LearningCaseTable.created_at.desc(), LearningCaseTable.id.desc())
        )
        return await self._all(LearningCaseRow, statement.limit(limit))


class AnswersRepository(SharedRepository):
    """The admins' answers to the cases."""

    @reading
    async def all(self) -> Sequence[WordingAnswerRow]:
        """Every answer, the newest first."""
        statement = selected(WordingAnswerRow, LearningAnswerTable).order_by(
            LearningAnswerTable.answered_at.desc(), LearningAnswerTable.id.desc()
        )
        return await self._all(WordingAnswerRow, statement)

    async def put(self, tool: str, text_hash: str, *, kind: str, category: str, text: str, by: str) -> None:
        """Keep an answer in the place of an earlier one to the same wording."""
        values = {"kind": kind, "category": category, "text": text, "answered_by": by, "answered_at": self.clock()}
        row: dict[str, Any] = {"id": new_id(self.clock), "tool": tool, "text_hash": text_hash, **values}
        statement = self._upsert(LearningAnswerTable, row)
        await self.session.execute(statement.on_conflict_do_update(index_elements=["tool", "text_hash"], set_=values))

    async def remove(self, id: str) -> WordingAnswerRow:
        """Take an answer back and hand it out; NotFound when there is none."""
        found = await self._first(
            WordingAnswerRow, selected(WordingAnswerRow, LearningAnswerTable).where(LearningAnswerTable.id == id)
        )
        if found is None:
            raise NotFound("This was already undone.")
        await self.session.execute(delete(LearningAnswerTable).where(LearningAnswerTable.id == id))
        return found
