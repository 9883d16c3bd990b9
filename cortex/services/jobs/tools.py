"""Chooses what a job's runs carry: a short list of its own goes out whole, so that none waits for a phrase to match.

From a longer one the tools are chosen once, when it is saved, and go with every run while prompt and tools stay as
they are. The run may still find others of its list.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import UserError
from cortex.base.ids import digest
from cortex.base.role import Channel, ToolMode
from cortex.base.user import User
from cortex.selection.types import META
from cortex.services.accounts.accounts import Accounts
from cortex.services.roles.preferences import DEFAULT_ROLE
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.tools.plans import opening
from cortex.services.tools.tools import ToolsService
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository

WHOLE_TOKENS = 600


class JobToolPlan(Struct, frozen=True, kw_only=True):
    """A list of tools as it would go out. `names`: those that the owner may use; `is_whole`: all in each request.

    `chosen`: those of a long list that its prompt picks, () where nothing is picked from it.
    """

    names: tuple[str, ...]
    tokens: int
    chosen: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Tell whether it is short enough to go out whole."""
        return self.tokens <= WHOLE_TOKENS


class JobToolRequest(Struct, frozen=True, kw_only=True):
    """The grounds on which a job's tools are chosen: its owner, its own list, its words."""

    user: User
    words: Sequence[str]
    prompt: str
    role: str
    channel: Channel


class JobTools(Struct, frozen=True, kw_only=True):
    """Counts and chooses the tools of jobs."""

    runtime: Runtime
    accounts: Accounts
    roles: Roles
    tools: ToolsService

    async def carried(self, user: User, words: Sequence[str], channel: Channel = "cron") -> JobToolPlan:
        """Return what these names and categories come to for this owner."""
        tools = self.runtime.registry.tools
        open_to = await self.tools.grantable(user, channel=channel)
        names = tuple(name for name in sorted(open_to) if {"all", name, tools[name].category} & set(words))
        cost = {row["name"]: row["tokens_full"] for row in await self.tools.listing() if row["category"] != META}
        return JobToolPlan(names=names, tokens=sum(cost[name] for name in names))

    async def chosen(self, wanted: JobToolRequest) -> tuple[str, ...]:
        """The names that its prompt picks from the list; no model is asked."""
        names = (await self.carried(wanted.user, wanted.words, wanted.channel)).names
        own = await self.roles.role(wanted.user, wanted.role)
        role = await self.roles.with_tools(wanted.user, own, wanted.words)
        asked = opening(wanted.user, role, wanted.prompt, self.runtime.clock())
        sent = (await self.tools.plan_turn(asked.with_given(channel=wanted.channel))).plan.sent
        return tuple(one.name for one in sent if one.name in names)

    async def mode(self, job: JobRow) -> ToolMode:
        """The tool mode of its next run: what the job says, else all of a short list, else chosen, as `settle` did."""
        if job.mode or job.tools is None:
            return job.mode or "auto"
        user = await self.accounts.user(job.owner_id)
        return "all" if (await self.carried(user, job.tools, channel_of(job))).is_whole else "auto"

    async def settle(self, job: JobRow) -> JobRow:
        """The job with its tools chosen, and kept, where its list is long; as they were while all they hang on is."""
        names, planned_for = None, ""
        if job.kind == "prompt" and job.tools is not None and await self.mode(job) == "auto":
            user = await self.accounts.user(job.owner_id)
            role = job.role or DEFAULT_ROLE
            wanted = JobToolRequest(user=user, words=job.tools, prompt=job.prompt, role=role, channel=channel_of(job))
            version = (await self.tools.snapshot()).version
            listed = (await self.carried(user, wanted.words, wanted.channel)).names
            planned_for = digest("\n".join((version, wanted.role, *listed, "", wanted.prompt)))
            if planned_for == job.planned_for:
                return job
            try:
                names = await self.chosen(wanted)
            except UserError:  # a slip in a file of the owner's home: the turn begins all the same, and fails with it
                return job
        if (names, planned_for) != (job.planned, job.planned_for):
            await self.runtime.db.repository(JobsRepository, job.owner_id).keep_plan(job.id, names, planned_for)
        return replace(job, planned=names, planned_for=planned_for)


def channel_of(job: JobRow) -> Channel:
    """The channel of its turns, which says what they lack."""
    return "maker" if job.may_make_jobs else "cron"
