"""Calls that wait for a person's yes, and standing grants. Each yes is bound to exact arguments and used once."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal, NotRequired, TypedDict, Unpack

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, or_, update

from cortex.base.errors import Conflict
from cortex.base.ids import new_id
from cortex.base.turn import LIVING
from cortex.storage import kept
from cortex.storage.repository import Repository, SharedRepository, reading, selected
from cortex.storage.schema import ApprovalTable, ConversationTable, GrantTable, TurnTable

ApprovalState = Literal["asked", "allowed", "denied", "expired", "used", "changed"]

# From the person's answer to the effect a signal has to travel: an answer in time does not come too late for it.
_GRACE = timedelta(seconds=60)
_RUN_OUT = "This request ran out or was closed, so your answer changed nothing. Ask again in its chat."
_LATE: dict[str, str] = {
    "asked": _RUN_OUT,
    "expired": _RUN_OUT,
    "denied": "This request was denied before. Your answer changed nothing.",
    "allowed": "This request was allowed before. Your answer changed nothing.",
    "used": "This request was allowed before. Your answer changed nothing.",
    "changed": "This request was changed and allowed before. Your answer changed nothing.",
}


class ApprovalRow(Struct, frozen=True, kw_only=True):
    """A question to the person. `detail` is the whole command or diff; `why` says what the model read before.

    `readers`: keys of who else will read what it writes (`ports/loop.py: Readers`), with blanks between.
    `notify_at`: when the person is notified, unless they look at it before; None when they were, or need not be.
    `continued_by`: the turn in which the call went on after its own had ended, or was asked for again.
    """

    id: str
    call_id: str
    turn_id: str
    conversation_id: str
    tool: str
    arguments_hash: str
    destination: str
    verb: str
    detail: str
    readers: str
    why: str
    risk: str
    state: ApprovalState
    created_at: datetime
    expires_at: datetime
    answered_at: datetime | None
    answered_by: str | None
    notify_at: datetime | None
    continued_by: str | None


class ApprovalQuestion(TypedDict):
    """The question to the person, as `ApprovalRow` has it."""

    tool: str
    arguments_hash: str
    destination: str
    verb: str
    detail: str
    why: str
    risk: str
    expires_at: datetime
    readers: NotRequired[str]
    notify_at: NotRequired[datetime | None]


class ApprovalsRepository(Repository):
    """The questions to one user."""

    async def ask(self, call_id: str, turn_id: str, **question: Unpack[ApprovalQuestion]) -> ApprovalRow:
        """Put the question; the one that stands for this call already is handed back as it is."""
        await self._must_own(TurnTable, turn_id, "turn")
        head = {"id": new_id(self.clock), "call_id": call_id, "turn_id": turn_id, "created_at": self.clock()}
        await self._is_new(ApprovalTable, {**question, **head})
        return await self._question(ApprovalTable.call_id == call_id)

    @reading
    async def get(self, id: str) -> ApprovalRow:
        """The question; NotFound when it is absent or put to another user."""
        return await self._question(ApprovalTable.id == id)

    @reading
    async def of_call(self, call_id: str) -> ApprovalRow | None:
        """The question about a call, None when there was none."""
        return await self._first(ApprovalRow, self._questions().where(ApprovalTable.call_id == call_id))

    @reading
    async def of_turn(self, turn_id: str) -> Sequence[ApprovalRow]:
        """The questions of a turn, oldest first."""
        return await self._rows_of(ApprovalRow, _of_turn(), turn_id=turn_id)

    @reading
    async def pending(self) -> Sequence[ApprovalRow]:
        """Return what waits for an answer and can still get one, oldest first."""
        statement = self._questions().where(ApprovalTable.state == "asked", ApprovalTable.expires_at > self.clock())
        return await self._all(ApprovalRow, statement.order_by(ApprovalTable.created_at, ApprovalTable.id))

    @reading
    async def asked_in(self, conversation_id: str) -> Sequence[ApprovalRow]:
        """Return what of this conversation has no answer yet, oldest first."""
        statement = self._questions().where(
            ApprovalTable.state == "asked", TurnTable.conversation_id == conversation_id
        )
        return await self._all(ApprovalRow, statement.order_by(ApprovalTable.created_at, ApprovalTable.id))

    @reading
    async def closed_late(self, conversation_id: str, after: datetime, upto: datetime) -> Sequence[ApprovalRow]:
        """Those that were denied, or ran out, in this stretch of time while their turn had ended, oldest first."""
        given = {"conversation_id": conversation_id, "after": after, "upto": upto}
        return await self._rows_of(ApprovalRow, _closed_late(), **given)

    @reading
    async def continued(self, turn_id: str) -> ApprovalRow | None:
        """The question whose call goes on in this turn, or is asked for again in it."""
        return await self._first(ApprovalRow, self._questions().where(ApprovalTable.continued_by == turn_id))

    async def continue_in(self, id: str, turn_id: str) -> bool:
        """Note the turn in which the call goes on; False when there is one."""
        change = self._change(ApprovalTable).where(ApprovalTable.id == id, ApprovalTable.continued_by.is_(None))
        return bool(await self._touched(change.values(continued_by=turn_id), ApprovalTable.id))

    async def seen(self, id: str, notify_at: datetime) -> bool:
        """The person looks at it now: notify them then, unless they look again; False when nothing is to be sent."""
        change = self._change(ApprovalTable).where(
            ApprovalTable.id == id, ApprovalTable.state == "asked", ApprovalTable.notify_at.is_not(None)
        )
        return bool(await self._touched(change.values(notify_at=notify_at), ApprovalTable.id))

    async def notified(self, id: str) -> bool:
        """Note that the person is notified now, once; False when they looked, answered or were notified meanwhile."""
        change = self._change(ApprovalTable).where(
            ApprovalTable.id == id, ApprovalTable.state == "asked", ApprovalTable.notify_at <= self.clock()
        )
        return bool(await self._touched(change.values(notify_at=None), ApprovalTable.id))

    async def told(self, id: str) -> None:
        """The person has the question before them, wherever that is: they need not be notified of it."""
        change = self._change(ApprovalTable).where(ApprovalTable.id == id, ApprovalTable.state == "asked")
        await self.session.execute(change.values(notify_at=None))

    async def answer(self, id: str, answer: Literal["allowed", "changed", "denied"], actor: str) -> ApprovalRow:
        """Keep the answer, once; Conflict when there is one already or the time is up.

        changed: this call will not run; one with other arguments, under an approval of its own, runs instead.
        """
        at = self.clock()
        change = self._change(ApprovalTable).where(
            ApprovalTable.id == id, ApprovalTable.state == "asked", ApprovalTable.expires_at > at
        )
        touched = await self._touched(change.values(state=answer, answered_at=at, answered_by=actor), ApprovalTable.id)
        approval = await self.get(id)
        if not touched:
            raise Conflict(_LATE[approval.state])
        return approval

    async def expire(self, id: str, *, is_alone: bool = False) -> bool:
        """Close a question that nobody answered; False when somebody just did. `is_alone`: its turn ended before."""
        change = self._change(ApprovalTable).where(ApprovalTable.id == id, ApprovalTable.state == "asked")
        at = {"answered_at": self.clock()} if is_alone else {}
        return bool(await self._touched(change.values(state="expired", **at), ApprovalTable.id))

    async def consume(self, id: str, arguments_hash: str) -> bool:
        """Use the yes, once: whether it was given, for these very arguments, in time, and not used before."""
        at = self.clock()
        change = self._change(ApprovalTable).where(
            ApprovalTable.id == id,
            ApprovalTable.state == "allowed",
            ApprovalTable.arguments_hash == arguments_hash,
            ApprovalTable.expires_at > at - _GRACE,
        )
        return bool(await self._touched(change.values(state="used", used_at=at), ApprovalTable.id))

    def _questions(self) -> Select[Any]:
        statement = self._mine(ApprovalRow, ApprovalTable, TurnTable.conversation_id)
        return statement.join(TurnTable, TurnTable.id == ApprovalTable.turn_id)

    async def _question(self, which: ColumnElement[bool]) -> ApprovalRow:
        return await self._one(ApprovalRow, self._questions().where(which), "This approval request does not exist.")


@cache
def _of_turn() -> Select[Any]:
    question, turn = kept.columns(ApprovalTable), kept.columns(TurnTable)
    found = kept.owned(ApprovalRow, ApprovalTable, turn.conversation_id)
    found = found.join(TurnTable.__table__, turn.id == question.turn_id)
    return found.where(question.turn_id == kept.given("turn_id")).order_by(question.created_at, question.id)


@cache
def _closed_late() -> Select[Any]:
    question, turn = kept.columns(ApprovalTable), kept.columns(TurnTable)
    found = kept.owned(ApprovalRow, ApprovalTable, turn.conversation_id)
    found = found.join(TurnTable.__table__, turn.id == question.turn_id)
    found = found.where(turn.conversation_id == kept.given("conversation_id"))
    found = found.where(question.state.in_(("denied", "expired")), turn.ended_at < question.answered_at)
    found = found.where(question.answered_at > kept.given("after"), question.answered_at <= kept.given("upto"))
    return found.order_by(question.created_at, question.id)


class GrantRow(Struct, frozen=True, kw_only=True):
    """A standing yes for a tool and one exact destination; everywhere when `conversation_id` is None.

    `readers`: for whatever tool (`tool` is ""), where exactly these others will read it, in the conversation or by the
    job `job_id`; "" for any other grant.
    """

    id: str
    tool: str
    destination: str
    readers: str
    conversation_id: str | None
    job_id: str | None
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


class GrantsRepository(Repository):
    """The standing yeses of one user."""

    async def add(
        self,
        tool: str,
        destination: str,
        conversation_id: str | None,
        expires_at: datetime,
        *,
        readers: str = "",
        job_id: str | None = None,
    ) -> GrantRow:
        """Keep a new grant, and return it."""
        id = new_id(self.clock)
        if conversation_id is not None:
            await self._must_own(ConversationTable, conversation_id, "conversation")
        values: dict[str, Any] = {
            "id": id,
            "tool": tool,
            "destination": destination,
            "readers": readers,
            "job_id": job_id,
        }
        values |= {"conversation_id": conversation_id, "created_at": self.clock(), "expires_at": expires_at}
        await self._is_new(GrantTable, values)
        return await self._get(GrantRow, GrantTable, id, "This permission does not exist.")

    @reading
    async def find(self, tool: str, destination: str, conversation_id: str | None) -> GrantRow | None:
        """The grant that covers this tool and exact destination here and now."""
        everywhere = GrantTable.conversation_id.is_(None)
        statement = self._live().where(
            GrantTable.tool == tool,
            GrantTable.destination == destination,
            GrantTable.readers == "",
            or_(everywhere, GrantTable.conversation_id == conversation_id) if conversation_id else everywhere,
        )
        return await self._first(GrantRow, statement.order_by(GrantTable.expires_at.desc()))

    @reading
    async def readers(self, conversation_id: str, job_id: str) -> frozenset[str]:
        """The keys of those whom this conversation, or for a job's run (`job_id`) the job alone, may write for."""
        place = GrantTable.job_id == job_id if job_id else GrantTable.conversation_id == conversation_id
        live = self._live().where(GrantTable.readers != "", place)
        return frozenset(row.readers for row in await self._all(GrantRow, live))

    @reading
    async def of_job(self, job_id: str) -> Sequence[GrantRow]:
        """Return what this job may write where others read it."""
        return await self._all(GrantRow, self._live().where(GrantTable.job_id == job_id))

    @reading
    async def list(self) -> Sequence[GrantRow]:
        """The grants in force, the newest first."""
        return await self._all(GrantRow, self._live().order_by(GrantTable.created_at.desc(), GrantTable.id.desc()))

    async def revoke(self, id: str) -> None:
        """End one; NotFound when it is absent or another user's."""
        change = self._change(GrantTable).where(GrantTable.id == id).values(revoked_at=self.clock())
        await self._must_touch(change, GrantTable.id, "This permission does not exist.")

    def _live(self) -> Select[Any]:
        statement = self._mine(GrantRow, GrantTable)
        return statement.where(GrantTable.revoked_at.is_(None), GrantTable.expires_at > self.clock())


class OwnedApproval(ApprovalRow, frozen=True, kw_only=True):
    """A question with whose it is."""

    owner_id: str


class OwnedGrant(GrantRow, frozen=True, kw_only=True):
    """A standing yes with whose it is."""

    owner_id: str


class AllApprovalsRepository(SharedRepository):
    """The questions to everybody; who may read them is the services' matter."""

    @reading
    async def to_notify(self, until: datetime) -> Sequence[OwnedApproval]:
        """Those whose person is to be notified by then, the first due first."""
        statement = self._questions().where(ApprovalTable.state == "asked", ApprovalTable.notify_at <= until)
        return await self._all(OwnedApproval, statement.order_by(ApprovalTable.notify_at, ApprovalTable.id))

    @reading
    async def run_out(self, until: datetime) -> Sequence[OwnedApproval]:
        """Those that run out by then without a turn that waits for the answer, the first due first."""
        statement = self._questions().where(
            ApprovalTable.state == "asked", ApprovalTable.expires_at <= until, TurnTable.state.not_in(LIVING)
        )
        return await self._all(OwnedApproval, statement.order_by(ApprovalTable.expires_at, ApprovalTable.id))

    @reading
    async def pending(self) -> Sequence[OwnedApproval]:
        """Return what waits for an answer and can still get one, oldest first."""
        statement = self._questions().where(ApprovalTable.state == "asked", ApprovalTable.expires_at > self.clock())
        return await self._all(OwnedApproval, statement.order_by(ApprovalTable.created_at, ApprovalTable.id))

    @reading
    async def list(
        self, limit: int, before: str = "", *, owner_id: str = "", state: str = "", tool: str = ""
    ) -> Sequence[OwnedApproval]:
        """The newest first, those ahead of the id `before`; what is given narrows it."""
        statement = self._questions()
        for column, value in (
            (ApprovalTable.owner_id, owner_id),
            (ApprovalTable.state, state),
            (ApprovalTable.tool, tool),
        ):
            if value:
                statement = statement.where(column == value)
        if before:
            statement = statement.where(ApprovalTable.id < before)
        return await self._all(OwnedApproval, statement.order_by(ApprovalTable.id.desc()).limit(limit))

    def _questions(self) -> Select[Any]:
        statement = selected(OwnedApproval, ApprovalTable).add_columns(TurnTable.conversation_id)
        return statement.join(TurnTable, TurnTable.id == ApprovalTable.turn_id)


class AllGrantsRepository(SharedRepository):
    """The standing yeses of everybody."""

    @reading
    async def list(self) -> Sequence[OwnedGrant]:
        """Those in force, the newest first."""
        live = selected(OwnedGrant, GrantTable).where(
            GrantTable.revoked_at.is_(None), GrantTable.expires_at > self.clock()
        )
        return await self._all(OwnedGrant, live.order_by(GrantTable.created_at.desc(), GrantTable.id.desc()))

    async def revoke(self, user_id: str | None) -> int:
        """End those in force, of one user or (None) of everybody; how many."""
        change = update(GrantTable).where(GrantTable.revoked_at.is_(None), GrantTable.expires_at > self.clock())
        if user_id is not None:
            change = change.where(GrantTable.owner_id == user_id)
        return len(await self._touched(change.values(revoked_at=self.clock()), GrantTable.id))
