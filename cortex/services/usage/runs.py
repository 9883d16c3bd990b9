"""The list of runs: one person's own, or for an admin anybody's; what was said stays with whom it was said by.

Reads only. A run whole is `services/usage/traces.py`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import NotAllowed, NotFound
from cortex.base.turn import TurnState
from cortex.base.user import User
from cortex.services.accounts.accounts import Accounts
from cortex.services.chat.transcript_views import key_of
from cortex.services.models.models import Models
from cortex.services.runtime import Runtime
from cortex.storage.jobs import AllJobsRepository
from cortex.storage.runs import AllRunsRepository, RunFilter, RunRow, RunsRepository, RunSum

Status = Literal["running", "done", "failed", "stopped"]
STATES: dict[Status, tuple[TurnState, ...]] = {
    "running": ("queued", "running", "waiting"),
    "done": ("done", "out_of_rounds"),
    "failed": ("failed", "interrupted"),
    "stopped": ("stopped",),
}
ALL = "all"
PAGE = 40
TEXT_CHARS = 160


class RunQuery(Struct, frozen=True, kw_only=True):
    """The filter as asked for; what is empty narrows nothing. `person`: empty for the reader, all, or an account."""

    status: str = ""
    role: str = ""
    tool: str = ""
    conversation: str = ""
    job: str = ""
    person: str = ""
    page: int = 1


class RunLine(Struct, frozen=True, kw_only=True):
    """One line. `text` and `title` are "" for another person's; `ms` None = it has not begun."""

    key: str
    row: RunRow
    who: str
    text: str
    title: str
    sum: RunSum
    tools: tuple[str, ...]
    ms: float | None

    @property
    def is_live(self) -> bool:
        """Tell whether it has not ended."""
        return self.row.state in STATES["running"]

    @property
    def cost_usd(self) -> float | None:
        """Return what it cost; None when no price is known."""
        return None if self.sum.unpriced and not self.sum.cost_usd else self.sum.cost_usd


class RunList(Struct, frozen=True, kw_only=True):
    """A page of runs. `narrowed`: the title of the one conversation shown, or ""; `people`: for an admin's choice.

    `jobs`: what the reader's own jobs are called, by their ids.
    """

    runs: tuple[RunLine, ...]
    page: int
    has_more: bool
    roles: tuple[str, ...]
    people: tuple[User, ...]
    narrowed: str
    jobs: Mapping[str, str]

    @property
    def is_live(self) -> bool:
        """Tell whether one of them has not ended."""
        return any(run.is_live for run in self.runs)


class RunsService(Struct, frozen=True, kw_only=True):
    """Reads runs for the page."""

    runtime: Runtime
    accounts: Accounts
    models: Models

    async def list(self, user: User, wanted: RunQuery) -> RunList:
        """The newest first, 40 a page. NotAllowed for anybody else's unless an admin asks."""
        is_own = wanted.person in ("", user.id)
        if not (is_own or user.is_admin):
            raise NotAllowed("Only an admin can see other people's runs.")
        people = tuple(await self.accounts.users()) if user.is_admin else ()
        if not is_own and wanted.person != ALL and wanted.person not in {one.id for one in people}:
            raise NotFound("This person does not exist.")
        page = max(1, wanted.page)
        rows, roles = await self._rows(user, wanted, (page - 1) * PAGE)
        shown = rows[:PAGE]
        return RunList(
            runs=await self._runs(user, shown, {one.id: one.name for one in people}),
            page=page,
            has_more=len(rows) > PAGE,
            roles=tuple(roles),
            people=people,
            narrowed=next((row.title for row in shown if row.owner_id == user.id), "") if wanted.conversation else "",
            jobs={job.id: job.name for job in await self.runtime.db.repository(AllJobsRepository).names(user.id)},
        )

    async def _rows(self, user: User, wanted: RunQuery, skip: int) -> tuple[Sequence[RunRow], Sequence[str]]:
        fits = RunFilter(
            states=next((states for status, states in STATES.items() if status == wanted.status), ()),
            role=wanted.role,
            tool=wanted.tool,
            conversation_id=wanted.conversation,
            job_id=wanted.job,
        )
        if wanted.person in ("", user.id):
            runs = self.runtime.db.repository(RunsRepository, user.id)
            return await runs.list(fits, skip=skip, limit=PAGE + 1), await runs.roles()
        everybody = self.runtime.db.repository(AllRunsRepository)
        owner_id = "" if wanted.person == ALL else wanted.person
        return await everybody.list(fits, skip=skip, limit=PAGE + 1, owner_id=owner_id), await everybody.roles()

    async def _runs(self, user: User, rows: Sequence[RunRow], names: dict[str, str]) -> tuple[RunLine, ...]:
        ids = [row.id for row in rows]
        sums, tools = (
            await self.runtime.db.repository(AllRunsRepository).sums(ids),
            await self.runtime.db.repository(AllRunsRepository).tools(ids),
        )
        blotter = await self.models.blotter(user.id)
        blotter.add(self.runtime.settings.secret_key, self.runtime.settings.brave_api_key)
        now = self.runtime.clock()
        return tuple(
            RunLine(
                key=key_of(row.id),
                row=_quiet(row, user),
                who="" if row.owner_id == user.id else names.get(row.owner_id, ""),
                text=blotter.blot(row.text)[:TEXT_CHARS] if row.owner_id == user.id else "",
                title=row.title if row.owner_id == user.id else "",
                sum=sums.get(row.id, _NOTHING),
                tools=tools.get(row.id, ()),
                ms=_ms(row, now),
            )
            for row in rows
        )


_NOTHING = RunSum(turn_id="", rounds=0, input_tokens=0, output_tokens=0, cost_usd=0.0, unpriced=0)


def _quiet(row: RunRow, user: User) -> RunRow:
    """The row without the words of another person."""
    return row if row.owner_id == user.id else replace(row, text="", title="", error="")


def _ms(row: RunRow, now: datetime) -> float | None:
    """From the start to the end, or to this moment."""
    return None if row.started_at is None else ((row.ended_at or now) - row.started_at).total_seconds() * 1000
