"""The sockets of work that goes on beside the conversation: background agents and the coding agent.

Each is opened for one user; another user's runs are unknown to it (NotFound).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

RunState = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]


class AgentRun(Struct, frozen=True, kw_only=True):
    """A background run: an agent of ours or a coding agent. `result` is a short text.

    `is_tainted`: task or result may hold words from outside.
    """

    id: str
    task: str
    kind: Literal["agent", "coding"]
    role: str
    state: RunState
    started_at: datetime
    is_tainted: bool
    ended_at: datetime | None = None
    tokens: int = 0
    result: str = ""


class Agents(Protocol):
    """Background turns of depth one, each with a budget cut from its parent's; the result comes as a new turn."""

    async def start(self, id: str, parent_turn: str, task: str, role: str, is_tainted: bool) -> AgentRun:
        """Start one, once per id. ToolFailed for an unknown role, too many at once or a spent budget."""
        ...

    async def must_be_possible(self, parent_turn: str, role: str) -> None:
        """ToolFailed where `start` would refuse one of this role now; starts nothing."""
        ...

    async def list(self, most: int) -> Sequence[AgentRun]:
        """The newest runs, coding ones too."""
        ...

    async def get(self, id: str) -> AgentRun:
        """One run; NotFound."""
        ...

    async def cancel(self, id: str) -> AgentRun:
        """Stop it; one that has ended stays as it is."""
        ...


class CodeRepository(Struct, frozen=True, kw_only=True):
    """A repository that coding agents may work in, by its alias."""

    alias: str
    folder: str


class CodingTask(Struct, frozen=True, kw_only=True):
    """A task for the coding agent: files are paths inside the repository; `is_told`: push when it ends."""

    repository: str
    message: str
    files: tuple[str, ...] = ()
    is_told: bool = False


class CodingRun(Struct, frozen=True, kw_only=True):
    """A run of the coding agent. `waiting`: its diff is to be approved; judged by the commit, not by exit codes."""

    id: str
    repository: str
    message: str
    state: RunState
    started_at: datetime
    ended_at: datetime | None = None
    commit: str = ""
    diff_stat: str = ""
    said: str = ""


class CodingAgent(Protocol):
    """The coding agent (aider), a program of its own in an allowed repository, in the sandbox, with a time limit."""

    async def repositories(self) -> Sequence[CodeRepository]:
        """All of them, by alias."""
        ...

    async def start(self, id: str, task: CodingTask) -> CodingRun:
        """Start it, once per id. ToolFailed when the program, a model or the repository is missing or busy."""
        ...

    async def wait(self, id: str, timeout_s: float) -> CodingRun:
        """The run when it has ended, or as it stands when the time is up; it goes on then."""
        ...

    async def runs(self, most: int) -> Sequence[CodingRun]:
        """The newest runs."""
        ...


class AllowedFolders(Protocol):
    """The folders in which coding agents may work; listed and revoked on the page, each change audited."""

    async def list(self) -> Sequence[str]:
        """Absolute paths."""
        ...

    async def must_be_possible(self, folder: str) -> None:
        """ToolFailed where `allow` would refuse it now: no folder is there, or it may never be one; changes nothing."""
        ...

    async def allow(self, folder: str) -> bool:
        """Add a folder; False when it was allowed already. ToolFailed when it is none, or one that may never be."""
        ...
