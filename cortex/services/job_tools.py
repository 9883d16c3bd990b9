"""What a job's runs carry: a short list of its own goes out whole, so that no job waits for a phrase to match.

A longer one is chosen from as for any message; the same prompt on the same registry then gets the same tools.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cortex.base.role import Channel, ToolMode
from cortex.base.user import User
from cortex.selection.types import META
from cortex.services.accounts import Accounts
from cortex.services.house import House
from cortex.services.tools import ToolsService
from cortex.storage.job_rows import JobRow

WHOLE_TOKENS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A list of tools as it would go out. `names`: those that the owner may use; `is_whole`: all in each request."""

    names: tuple[str, ...]
    tokens: int

    @property
    def is_whole(self) -> bool:
        """Whether it is short enough to go out whole."""
        return self.tokens <= WHOLE_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTools:
    """Counts the tools of jobs."""

    house: House
    accounts: Accounts
    tools: ToolsService

    async def carried(self, user: User, words: Sequence[str], channel: Channel = "cron") -> Carried:
        """What these names and categories come to for this owner."""
        tools = self.house.registry.tools
        open_to = await self.tools.grantable(user, channel=channel)
        names = tuple(name for name in sorted(open_to) if {"all", name, tools[name].category} & set(words))
        cost = {row["name"]: row["tokens_full"] for row in await self.tools.listing() if row["category"] != META}
        return Carried(names=names, tokens=sum(cost[name] for name in names))

    async def mode(self, job: JobRow) -> ToolMode:
        """The tool mode of its next run: what the job says, else all of a short list, else chosen."""
        if job.mode:
            return job.mode
        if job.tools is None:
            return "auto"
        user = await self.accounts.user(job.owner_id)
        found = await self.carried(user, job.tools, channel_of(job))
        return "all" if found.is_whole else "auto"


def channel_of(job: JobRow) -> Channel:
    """The channel of its turns, which says what they lack."""
    return "maker" if job.may_make_jobs else "cron"
