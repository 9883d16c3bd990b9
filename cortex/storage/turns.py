"""Turns: a user's message until its answer, in order, with the state the engine left it in."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from msgspec import Struct
from sqlalchemy import Select, func, select

from cortex.base.attachments import Attachment
from cortex.base.errors import Conflict, NotFound
from cortex.base.role import Channel, ToolMode
from cortex.base.turn import LIVING, LOOP_ENDS, SUB, Turn, TurnState
from cortex.storage import turn_statements
from cortex.storage.repository import Repository, SharedRepository, as_row, reading, selected
from cortex.storage.schema import ConversationTable, TurnTable

AGENT_MOST = timedelta(days=1)  # longer than that no background agent is at work


class TurnRow(Struct, frozen=True, kw_only=True):
    """A turn as it is kept. `taken_by`: the turn that took this queued message in as steering, at `taken_round`.

    `parent_id`: the turn before it in its branch, "" for the first. Turns of one parent are versions of each other, of
    which one `is_chosen`; `is_dropped`: it is out of view, because it or one before it is not the chosen one.

    `model`: the one that was chosen for it, "" for what its role says; `models`: that it began with.
    `job_id`: the job that it runs for, "" for none. `is_tainted`: its text is not its person's own. `has_read_outside`,
    `has_read_private`: its calls, or what its text was written from, brought words from outside, or private data.
    """

    id: str
    owner_id: str
    conversation_id: str
    ordinal: int
    parent_id: str
    is_chosen: bool
    state: TurnState
    text: str
    mode: ToolMode
    max_rounds: int | None
    role: str
    channel: Channel
    job_id: str
    model: str
    models: tuple[str, ...]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    rounds: int
    error: str
    is_dropped: bool
    taken_by: str | None
    taken_round: int | None
    is_tainted: bool
    has_read_outside: bool
    has_read_private: bool
    attachments: tuple[Attachment, ...] = ()

    @property
    def is_marked(self) -> bool:
        """Tell whether it holds words from outside or private data; one that has not begun had them from elsewhere."""
        return self.is_tainted or self.has_read_outside or self.has_read_private

    @property
    def is_typed(self) -> bool:
        """Tell whether its text is the person's own: what others named in theirs is no place that the person named."""
        return self.channel not in turn_statements.OTHERS and not self.is_tainted and not self.is_dropped


class Reads(Struct, frozen=True, kw_only=True):
    """The text that stands before a model: words from outside, and private data of the user's."""

    outside: bool = False
    private: bool = False


NOTHING_READ = Reads()


class NewTurn(Struct, frozen=True):
    """A turn to be kept. `is_tainted`: its text is not its person's own.

    `reads`: what its text was written from, such as the conversation that hands a task over, or what is attached.
    """

    id: str
    conversation_id: str
    text: str
    mode: ToolMode
    role: str
    is_tainted: bool
    reads: Reads
    channel: Channel = "chat"
    job_id: str = ""
    model: str = ""
    max_rounds: int | None = None
    state: TurnState = "queued"
    attachments: tuple[Attachment, ...] = ()


class TurnFields(TypedDict, total=False):
    """The fields that may change together with a turn's state."""

    error: str
    rounds: int
    max_rounds: int | None
    models: tuple[str, ...]
    role: str
    mode: ToolMode
    is_tainted: bool
    started_at: datetime | None
    ended_at: datetime | None


class TurnsRepository(Repository):
    """The turns of a user's conversations."""

    async def create(self, new: NewTurn) -> TurnRow:
        """A new turn behind the last one in view; one that stands already is handed back as it is.

        NotFound for a foreign or deleted conversation, Conflict for an id that another user's turn has.
        """
        known = await self._where(TurnRow, TurnTable, id=new.id)
        if known:
            return known[0]
        at = self.clock()
        values = {
            **{name: value for name, value in as_row(new).items() if name != "reads"},
            "ordinal": await self._next_ordinal(new.conversation_id),
            "parent_id": await self._last_in_view(new.conversation_id),
            "created_at": at,
            "started_at": at if new.state == "running" else None,
            "has_read_outside": new.reads.outside,
            "has_read_private": new.reads.private,
        }
        if not await self._is_new(TurnTable, values):
            raise Conflict(f"The turn {new.id!r} exists already.")
        return await self.get(new.id)

    @reading
    async def get(self, id: str) -> TurnRow:
        """The turn; NotFound when it is absent or another user's."""
        return await self._get(TurnRow, TurnTable, id, "This turn does not exist.")

    @reading
    async def places(self, ids: Sequence[str]) -> Mapping[str, str]:
        """In which conversation each of these turns can be read; no entry for one whose conversation was deleted."""
        statement = (
            select(TurnTable.id, TurnTable.conversation_id)
            .join(ConversationTable, ConversationTable.id == TurnTable.conversation_id)
            .where(self._checked(TurnTable), TurnTable.id.in_(ids), ConversationTable.deleted_at.is_(None))
        )
        return {id: conversation_id for id, conversation_id in (await self.session.execute(statement)).all()}

    async def move(
        self, id: str, state: TurnState, only_from: Sequence[TurnState] = LIVING, **fields: Unpack[TurnFields]
    ) -> TurnRow | None:
        """Move the turn on if it is in one of these states now; start and end times follow by themselves.

        The turn as it then stands; None when it is in another state: somebody else moved it first. NotFound.
        Write what goes with the move after it: on PostgreSQL a second mover waits for the first one's commit.
        """
        at = self.clock()
        values: dict[str, Any] = {"state": state, **fields}
        begins = state == "running" and "started_at" not in fields
        if begins:
            values["started_at"] = at
        if state in LOOP_ENDS:
            values.setdefault("ended_at", at)
        new = {f"new_{name}": value for name, value in values.items()}
        change = turn_statements.moving(TurnRow, tuple(values), begins=begins)
        moved = await self._row_of(TurnRow, change, id=id, only_from=only_from, **new)
        if moved is None:
            await self.get(id)
        return moved

    async def hold(self, id: str) -> TurnRow:
        """The turn, which nobody else moves from here to the commit. NotFound."""
        change = self._change(TurnTable).where(TurnTable.id == id)
        await self._touched(change.values(rounds=TurnTable.rounds), TurnTable.id)
        return await self.get(id)

    async def ask_to_stop(self, id: str) -> None:
        """Remember that the turn has to end, for as long as it has not."""
        change = self._change(TurnTable).where(TurnTable.id == id, TurnTable.stop_asked_at.is_(None))
        await self.session.execute(change.values(stop_asked_at=self.clock()))

    @reading
    async def has_to_stop(self, id: str) -> bool:
        """Tell whether somebody asked for its end, and it has not ended."""
        asked = TurnTable.stop_asked_at.is_not(None) & TurnTable.state.in_(LIVING)
        statement = select(TurnTable.id).where(TurnTable.owner_id == self.owner_id, TurnTable.id == id, asked)
        return (await self.session.execute(statement)).first() is not None

    async def add_reads(self, id: str, reads: Reads) -> None:
        """Remember what a call of the turn brought; never taken back."""
        found = (("has_read_outside", reads.outside), ("has_read_private", reads.private))
        if values := {name: True for name, is_so in found if is_so}:
            await self.session.execute(self._change(TurnTable).where(TurnTable.id == id).values(**values))

    @reading
    async def reads(self, turn: TurnRow | Turn) -> Reads:
        """Give what the model of this turn has before it: of the turns up to this one and taken into it, and of itself.

        A dropped turn counts: the one in its place has read what it read. A job's run sees itself, and what was taken
        into it, alone.
        """
        upto = -1 if turn.job_id else turn.ordinal
        return await self._reads(
            turn_statements.read_upto(), conversation_id=turn.conversation_id, id=turn.id, upto=upto
        )

    @reading
    async def reads_from(self, conversation_id: str, ordinal: int) -> Reads:
        """Return what the turns from this ordinal on have read, dropped ones too."""
        return await self._reads(turn_statements.read_from(), conversation_id=conversation_id, ordinal=ordinal)

    async def _reads(self, statement: Select[Any], **given: Any) -> Reads:
        found: Sequence[Any] = (await self._run(statement, **given)).all()
        return Reads(
            outside=any(is_tainted or outside for is_tainted, outside, _ in found),
            private=any(private for *_, private in found),
        )

    @reading
    async def replaced(self, turn: TurnRow) -> Mapping[str, str]:
        """The turns out of view since the one before this, of the same words or others: their texts, by id.

        What they did, its branch has not heard of: those made earlier were out of view when the one before it began.
        """
        before = (
            TurnTable.owner_id == self.owner_id,
            TurnTable.conversation_id == turn.conversation_id,
            TurnTable.ordinal < turn.ordinal,
        )
        kept = select(func.coalesce(func.max(TurnTable.ordinal), 0)).where(*before, ~TurnTable.is_dropped)
        dropped = select(TurnTable.id, TurnTable.text).where(
            *before, TurnTable.is_dropped, TurnTable.ordinal > kept.scalar_subquery()
        )
        return {id: text for id, text in (await self.session.execute(dropped.order_by(TurnTable.ordinal))).all()}

    @reading
    async def running(self, conversation_id: str) -> TurnRow | None:
        """The turn that runs or waits for an answer now."""
        return await self._row_of(
            TurnRow,
            turn_statements.first_in_states(TurnRow),
            conversation_id=conversation_id,
            states=("running", "waiting"),
        )

    @reading
    async def ids(self) -> Sequence[str]:
        """Of all of them."""
        statement = select(TurnTable.id).where(TurnTable.owner_id == self.owner_id)
        return (await self.session.execute(statement)).scalars().all()

    @reading
    async def active(self) -> Sequence[TurnRow]:
        """Every turn of the user that has not ended, oldest first."""
        return await self._rows_of(TurnRow, turn_statements.active(TurnRow))

    @reading
    async def queued(self, conversation_id: str) -> Sequence[TurnRow]:
        """The messages that wait for their turn, oldest first."""
        return await self._rows_of(TurnRow, turn_statements.waiting(TurnRow), conversation_id=conversation_id)

    async def is_behind(self, turn: TurnRow) -> bool:
        """Tell whether another turn of its conversation runs, or waits ahead of it."""
        ahead = [one for one in await self.queued(turn.conversation_id) if one.ordinal < turn.ordinal]
        return bool(ahead) or await self.running(turn.conversation_id) is not None

    async def take_queued(self, conversation_id: str, by: str, after_round: int) -> Sequence[TurnRow]:
        """Take the queued messages into the running turn `by` as steering; all it took at that round, oldest first.

        A queued run of a job stays what it is, and so does a message that carries what others wrote or what was read
        before it: a branch off the turn `by` would lose that mark.

        Asked again for the same round it gives the same ones and those that came since.
        """
        ids = [turn.id for turn in await self.queued(conversation_id) if turn.channel == "chat" and not turn.is_marked]
        # Still queued: on PostgreSQL another may have begun or taken one since it was read.
        change = self._change(TurnTable).where(TurnTable.id.in_(ids), TurnTable.state == "queued")
        await self.session.execute(
            change.values(state="done", taken_by=by, taken_round=after_round, ended_at=self.clock())
        )
        return await self.taken_at(by, after_round)

    @reading
    async def taken_at(self, by: str, round: int) -> Sequence[TurnRow]:
        """The messages that this turn took in after exactly this round, oldest first."""
        taken = self._mine(TurnRow, TurnTable).where(TurnTable.taken_by == by, TurnTable.taken_round == round)
        return await self._all(TurnRow, taken.order_by(TurnTable.ordinal))

    @reading
    async def taken(self, by: TurnRow, round: int) -> Sequence[TurnRow]:
        """The messages that this turn took in last before this round, oldest first."""
        mine = self._of(by.conversation_id).where(TurnTable.taken_by == by.id, TurnTable.taken_round < round)
        rows = await self._all(TurnRow, mine.order_by(TurnTable.ordinal))
        last = max((row.taken_round or 0 for row in rows), default=0)
        return [row for row in rows if row.taken_round == last]

    @reading
    async def list(
        self,
        conversation_id: str,
        include_dropped: bool = False,
        *,
        before: int | None = None,
        limit: int | None = None,
    ) -> Sequence[TurnRow]:
        """The turns in order; the last `limit` of those ahead of the ordinal `before`."""
        bounds = {"before": before, "limit": limit}
        given = {name: value for name, value in bounds.items() if value is not None}
        statement = turn_statements.listed(TurnRow, tuple(given), include_dropped=include_dropped)
        newest_first = await self._rows_of(TurnRow, statement, conversation_id=conversation_id, **given)
        return newest_first[::-1]

    @reading
    async def typed(self, conversation_id: str) -> Sequence[str]:
        """The texts of the turns in view that are the person's own (`TurnRow.is_typed`), in order."""
        return (await self._run(turn_statements.typed(), conversation_id=conversation_id)).scalars().all()

    @reading
    async def at(self, conversation_id: str, ordinal: int) -> TurnRow | None:
        """The turn with this ordinal, in view or not."""
        found = await self._where(TurnRow, TurnTable, conversation_id=conversation_id, ordinal=ordinal)
        return found[0] if found else None

    async def put(self, turn: TurnRow) -> None:
        """Lay a turn down exactly as given, under this user (a branch's copy)."""
        await self.put_all([turn])

    async def put_all(self, turns: Sequence[TurnRow]) -> None:
        """Lay turns down exactly as given, under this user."""
        await self._add(TurnTable, [as_row(turn) for turn in turns])

    async def _next_ordinal(self, conversation_id: str) -> int:
        # The counter's row is locked until the commit, so that no two turns get one ordinal.
        count: int | None = (await self._run(turn_statements.counting(), id=conversation_id)).scalar()
        if count is None:
            raise NotFound("This conversation does not exist.")
        return count

    async def _last_in_view(self, conversation_id: str) -> str:
        return (await self._run(turn_statements.last_in_view(), conversation_id=conversation_id)).scalar() or ""

    def _of(self, conversation_id: str) -> Select[Any]:
        return self._mine(TurnRow, TurnTable).where(TurnTable.conversation_id == conversation_id)


class AllTurnsRepository(SharedRepository):
    """The turns of everybody: for the engine's start, and to know whose trace is asked for."""

    @reading
    async def owner(self, id: str) -> str:
        """Return whose turn this is; "" when there is none."""
        statement = select(TurnTable.owner_id).where(TurnTable.id == id)
        return (await self.session.execute(statement)).scalar() or ""

    @reading
    async def agents_ended(self, since: datetime) -> Sequence[TurnRow]:
        """The turns of background agents that have ended since then, oldest first."""
        is_agents = (TurnTable.channel == "agent") & TurnTable.id.contains(SUB, autoescape=True)
        statement = selected(TurnRow, TurnTable).where(is_agents, TurnTable.created_at >= since - AGENT_MOST)
        ended = statement.where(TurnTable.ended_at >= since)
        return await self._all(TurnRow, ended.order_by(TurnTable.ended_at, TurnTable.id))

    @reading
    async def unfinished(self, *, to_stop: bool = False) -> Sequence[TurnRow]:
        """Every turn that has not ended, oldest first; `owner_id` says whose. `to_stop`: those somebody stopped."""
        return await self._rows_of(TurnRow, turn_statements.unfinished(TurnRow, to_stop=to_stop))
