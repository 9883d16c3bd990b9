"""Jobs as values: what a person or a tool says of one, the row, which are wanted. Made and read by `jobs.py`."""

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from cortex.base.job import JobKind, NotifyOn, OnMiss, Overlap, TimingKind
from cortex.base.role import ToolMode
from cortex.ports.channels import ChannelName
from cortex.ports.schedule import Timing


class JobValues(Struct, frozen=True, kw_only=True):
    """The values of a job, as a person or a tool says them. `prompt`: the text that is asked, or sent by a message job.

    `role`, `model`, `mode`: "" takes the default; `tools`: None takes the role's; `arguments`: those of a call job.
    `conversation_id`: where it posts, None before its first run. `pause_after`: failures in a row, 0 for never.
    `typed`: a repeating time as it was written, "" where `words` stand for it.
    """

    name: str
    kind: JobKind = "prompt"
    prompt: str
    tool: str = ""
    arguments: dict[str, Any] | None = None
    timing_kind: TimingKind
    expression: str
    time_zone: str
    words: str
    typed: str = ""
    role: str = ""
    model: str = ""
    tools: tuple[str, ...] | None = None
    mode: ToolMode | Literal[""] = ""
    max_rounds: int | None = None
    budget_tokens: int | None = None
    budget_usd: float | None = None
    conversation_id: str | None = None
    deliver_to: tuple[ChannelName, ...] = ()
    notify_on: NotifyOn = "always"
    on_miss: OnMiss = "once"
    fire_within_s: int = 900
    overlap: Overlap = "skip"
    retries: int = 0
    timeout_s: int = 3600
    keeps_quiet_hours: bool = True
    pause_after: int = 5
    may_make_jobs: bool = False
    is_tainted: bool
    is_private: bool

    @property
    def timing(self) -> Timing:
        """When it is due, as the readers of time take it."""
        return Timing(
            kind=self.timing_kind,
            expression=self.expression,
            time_zone=self.time_zone,
            words=self.words,
            typed=self.typed,
        )


class JobRow(JobValues, frozen=True, kw_only=True):
    """A job as it is kept. `next_at`: None when it is paused or never due again; `failures`: in a row.

    `planned`: the tools that were chosen from a long list of its own, None for no such list; `planned_for`: a digest of
    all that the choice hangs on.
    """

    id: str
    owner_id: str
    planned: tuple[str, ...] | None
    planned_for: str
    is_enabled: bool
    paused_because: str
    failures: int
    version: int
    next_at: datetime | None
    created_at: datetime
    updated_at: datetime
    removed_at: datetime | None


class JobName(Struct, frozen=True, kw_only=True):
    """The name of a job, and its owner."""

    id: str
    owner_id: str
    name: str


class JobFilter(Struct, frozen=True, kw_only=True):
    """A choice of jobs; `words`: all in name, prompt, tool or timing. What is empty narrows nothing."""

    state: Literal["", "enabled", "over", "paused", "failing"] = ""
    words: str = ""


class JobCounts(Struct, frozen=True, kw_only=True):
    """The number of jobs of each state; `over`: switched on, and no time of it is to come."""

    all: int
    enabled: int
    over: int
    paused: int
    failing: int


class ArmedJob(Struct, frozen=True, kw_only=True):
    """A job that the timer waits for."""

    id: str
    owner_id: str
    next_at: datetime
    version: int
