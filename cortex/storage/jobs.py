"""Jobs as they are kept, with a version that guards a person's change. Their slots stand in `slots.py`.

`AllJobsRepository` is for the timer and for housekeeping. When a job is due next is computed by the services.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, case, delete, func, literal, or_, select, update

from cortex.base.errors import Conflict
from cortex.base.ids import new_id
from cortex.storage.job_rows import ArmedJob, JobCounts, JobFilter, JobName, JobRow, JobValues
from cortex.storage.repository import Repository, SharedRepository, as_row, reading, selected
from cortex.storage.schema import AccountTable, ConversationTable, JobTable, SecretTable, SlotTable
from cortex.storage.table import each_word, moment

KEPT_FOR_RESTORE = timedelta(days=1)
_GONE = "This job does not exist."


class JobsRepository(Repository):
    """The jobs of one user."""

    @reading
    async def list(
        self,
        wanted: JobFilter | None = None,
        *,
        by: Literal["name", "next"] = "name",
        skip: int = 0,
        limit: int | None = None,
    ) -> Sequence[JobRow]:
        """The jobs by name, or the next to run first (those that never run again last)."""
        by_name = (func.lower(JobTable.name), JobTable.id)
        order = by_name if by == "name" else (JobTable.next_at.is_(None), JobTable.next_at, *by_name)
        statement = self._standing().where(*_narrowed(wanted or JobFilter()))
        return await self._all(JobRow, statement.order_by(*order).offset(skip).limit(limit))

    @reading
    async def count(self, words: str = "") -> JobCounts:
        """Return how many jobs have these words, in each state."""
        columns: tuple[ColumnElement[Any], ...] = (
            func.count().label("all"),
            *(_sum(_STATES[state]).label(state) for state in _STATES),
        )
        statement = select(*columns).where(JobTable.owner_id == self.owner_id, JobTable.removed_at.is_(None))
        found = await self._first(JobCounts, statement.where(*_narrowed(JobFilter(words=words))))
        return found or JobCounts(all=0, enabled=0, over=0, paused=0, failing=0)

    @reading
    async def get(self, id: str) -> JobRow:
        """The job; NotFound when it is absent, removed or another user's."""
        return await self._one(JobRow, self._standing().where(JobTable.id == id), _GONE)

    @reading
    async def removed(self, id: str) -> JobRow:
        """A removed job that can still be restored; else NotFound."""
        statement = self._mine(JobRow, JobTable).where(
            JobTable.id == id, JobTable.removed_at > self.clock() - KEPT_FOR_RESTORE
        )
        return await self._one(JobRow, statement, _GONE)

    @reading
    async def lately(self, id: str) -> JobRow | None:
        """The job, also one that was removed while it may still run; None when there is none."""
        return await self._first(JobRow, self._mine(JobRow, JobTable).where(JobTable.id == id))

    async def add(
        self, id: str | None, values: JobValues, next_at: datetime | None, *, is_enabled: bool = True
    ) -> JobRow:
        """A new job (`id` None: a fresh one); one that stands already is handed back as it is.

        NotFound for a foreign conversation, and for the id of a job that is another's or was removed.
        """
        await self._check(values)
        at = self.clock()
        job_id = id or new_id(self.clock)
        row = {
            **as_row(values, JobValues),
            "id": job_id,
            "is_enabled": is_enabled,
            "next_at": next_at if is_enabled else None,
            "created_at": at,
            "updated_at": at,
        }
        await self._is_new(JobTable, row)
        return await self.get(job_id)

    async def change(self, id: str, expected_version: int, values: JobValues, next_at: datetime | None) -> JobRow:
        """Give it these values (a `JobRow` will do: the rest of it is not read); the job as it then stands.

        Conflict when it no longer stands at that version. `next_at` is kept only where the job is switched on. It
        keeps its conversation where the values name none: a run may have given it one in between.
        """
        await self._check(values)
        written = {**as_row(values, JobValues), "next_at": case((JobTable.is_enabled, moment(next_at)))}
        if values.conversation_id is None:
            del written["conversation_id"]
        return await self._guarded(id, expected_version, **written)

    async def enable(self, id: str, expected_version: int, next_at: datetime | None) -> JobRow:
        """Switch it on, with no failure counted; Conflict when it no longer stands at that version."""
        return await self._guarded(
            id, expected_version, is_enabled=True, paused_because="", failures=0, next_at=next_at
        )

    async def pause(self, id: str, expected_version: int | None, because: str = "") -> JobRow:
        """Switch it off; its slots that wait are skipped, but for those begun by hand. Conflict as above.

        `expected_version` None: the server pauses it, whatever its version.
        """
        made = await self._guarded(id, expected_version, is_enabled=False, paused_because=because, next_at=None)
        await self._skip_waiting(id, "the job was paused", ~SlotTable.is_by_hand)
        return made

    async def remove(self, id: str, expected_version: int) -> JobRow:
        """Take it off with its waiting slots, kept for `restore` a day long; Conflict as above. What it was."""
        before = await self.get(id)
        await self._guarded(id, expected_version, removed_at=self.clock())
        await self._skip_waiting(id, "the job was deleted")
        return before

    async def restore(self, id: str, next_at: datetime | None) -> JobRow:
        """Put a removed job back as it was, due at `next_at` if it was on; one that stands is left as it is."""
        change = self._change(JobTable).where(JobTable.id == id, JobTable.removed_at > self.clock() - KEPT_FOR_RESTORE)
        values = {"removed_at": None, "next_at": case((JobTable.is_enabled, moment(next_at)))}
        await self.session.execute(change.values(**values, **self._counted_up()))
        return await self.get(id)

    async def settle_in(self, id: str, conversation_id: str, *, in_place_of: str | None = None) -> str:
        """Give a job that has none, or that one, its conversation: no person's change; the one that it then has."""
        await self._must_own(ConversationTable, conversation_id, "conversation")
        # Only in place of the one that was found gone: it may have been given another meanwhile.
        change = self._change(JobTable).where(
            JobTable.id == id, JobTable.conversation_id.is_not_distinct_from(in_place_of)
        )
        await self.session.execute(change.values(conversation_id=conversation_id))
        return (await self.get(id)).conversation_id or ""

    @reading
    async def in_role(self, role: str) -> Sequence[JobRow]:
        """The jobs that run in this role, by name."""
        statement = self._standing().where(JobTable.role == role)
        return await self._all(JobRow, statement.order_by(func.lower(JobTable.name), JobTable.id))

    async def move_role(self, ids: Sequence[str], before: str, role: str) -> None:
        """Give those of these that are in the role `before` another one, from their next run on."""
        change = self._change(JobTable).where(JobTable.id.in_(ids), JobTable.role == before)
        await self.session.execute(change.values(role=role, **self._counted_up()))

    async def keep_plan(self, id: str, planned: tuple[str, ...] | None, planned_for: str) -> None:
        """Keep which tools were chosen for it, and for what: no person's change."""
        change = self._change(JobTable).where(JobTable.id == id)
        await self.session.execute(change.values(planned=planned, planned_for=planned_for))

    async def advance(self, id: str, due: datetime, version: int, next_at: datetime | None) -> bool:
        """Set the next time, once: False when another did, or the job was changed, paused or removed since."""
        change = self._change(JobTable).where(
            JobTable.id == id,
            JobTable.next_at == due,  # several processes fire the same job: one moves it on
            JobTable.version == version,  # a person changed it since: what was decided for the old times is void
            JobTable.is_enabled,
            JobTable.removed_at.is_(None),
        )
        return bool(await self._touched(change.values(next_at=next_at), JobTable.id))

    async def _check(self, values: JobValues) -> None:
        if values.conversation_id is not None:
            await self._must_own(ConversationTable, values.conversation_id, "conversation")

    async def _guarded(self, id: str, expected_version: int | None, **values: Any) -> JobRow:  # Any: columns' types
        before = await self.get(id)
        change = self._change(JobTable).where(JobTable.id == id, JobTable.removed_at.is_(None))
        if expected_version is not None:
            change = change.where(JobTable.version == expected_version)
        if not await self._touched(change.values(**{**values, **self._counted_up()}), JobTable.id):
            raise Conflict(f"The job {before.name!r} was changed in the meantime. Check it again.")
        return await self._get(JobRow, JobTable, id, _GONE)

    async def _skip_waiting(self, id: str, why: str, *more: ColumnElement[bool]) -> None:
        change = self._change(SlotTable).where(SlotTable.job_id == id, SlotTable.state == "planned", *more)
        await self.session.execute(change.values(state="skipped", why=why, ended_at=self.clock()))

    def _counted_up(self) -> dict[str, Any]:
        return {"version": JobTable.version + 1, "updated_at": self.clock()}

    def _standing(self) -> Select[Any]:
        return self._mine(JobRow, JobTable).where(JobTable.removed_at.is_(None))


class AllJobsRepository(SharedRepository):
    """The jobs of everybody."""

    @reading
    async def armed(self, until: datetime | None = None, limit: int | None = None) -> Sequence[ArmedJob]:
        """Give what is due next, by `until` at the latest, soonest first: jobs switched on, of people who may sign in.

        Of those that are due now a person's second one comes behind everybody's first; messages are counted apart.
        """
        line = (JobTable.owner_id, JobTable.kind == "message")
        place = func.row_number().over(partition_by=line, order_by=(JobTable.next_at, JobTable.id))
        is_due = JobTable.next_at <= self.clock()
        order = (case((is_due, 0), else_=1), case((is_due, place), else_=0), JobTable.next_at, JobTable.id)
        statement = (
            selected(ArmedJob, JobTable)
            .join(AccountTable, AccountTable.id == JobTable.owner_id)
            .where(AccountTable.is_active, JobTable.is_enabled, JobTable.removed_at.is_(None))
            .where(JobTable.next_at.is_not(None) if until is None else JobTable.next_at <= until)
        )
        return await self._all(ArmedJob, statement.order_by(*order).limit(limit))

    async def look_again(self) -> None:
        """Have every job that stands beside appointments look now what is due, and what comes next.

        Each is touched, so that on PostgreSQL one that is fired at this moment waits, or this does.
        """
        at = moment(self.clock())
        is_to_come = or_(JobTable.next_at.is_(None), JobTable.next_at > at)
        beside = JobTable.timing_kind == "appointment", JobTable.is_enabled, JobTable.removed_at.is_(None)
        change = update(JobTable).where(*beside).execution_options(synchronize_session=False)
        await self.session.execute(change.values(next_at=case((is_to_come, at), else_=JobTable.next_at)))

    @reading
    async def of(self, ids: Collection[str]) -> Sequence[JobRow]:
        """These jobs, as far as they were not removed."""
        return await self._all(
            JobRow, selected(JobRow, JobTable).where(JobTable.id.in_(ids), JobTable.removed_at.is_(None))
        )

    @reading
    async def names(self, owner_id: str = "") -> Sequence[JobName]:
        """Return what jobs are called, by name, also those that were deleted lately; `owner_id`: only that person's."""
        whose = (JobTable.owner_id == owner_id,) if owner_id else ()
        return await self._all(
            JobName, selected(JobName, JobTable).where(*whose).order_by(func.lower(JobTable.name), JobTable.id)
        )

    async def prune(self, before: datetime | None = None) -> int:
        """Forget the jobs, with all their slots and secrets, that were removed before then (a day ago); how many."""
        is_over = JobTable.removed_at < (before or self.clock() - KEPT_FOR_RESTORE)
        secrets = select(literal("hook:") + JobTable.id).where(is_over)
        await self.session.execute(delete(SecretTable).where(SecretTable.name.in_(secrets)))
        gone = delete(JobTable).where(is_over)
        return len(await self._touched(gone, JobTable.id))


_IS_ON = JobTable.is_enabled.is_(True)
_IS_TO_COME = JobTable.next_at.is_not(None)
_WAITS = JobTable.timing_kind.in_(("called", "appointment"))  # without a time to come it is not over
_STATES: dict[str, ColumnElement[bool]] = {
    "enabled": _IS_ON & (_IS_TO_COME | _WAITS),
    "over": _IS_ON & ~_IS_TO_COME & ~_WAITS,
    "paused": ~_IS_ON,
    "failing": JobTable.failures > 0,
}


def _narrowed(wanted: JobFilter) -> list[ColumnElement[bool]]:
    found = [_STATES[wanted.state]] if wanted.state else []
    return [*found, *each_word(wanted.words, JobTable.name, JobTable.prompt, JobTable.tool, JobTable.words)]


def _sum(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)
