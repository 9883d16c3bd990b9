"""The sockets that tools open by `ctx.use` and that are neither a table nor a client of the outside."""

from typing import Protocol

from msgspec import Struct


class Discovered(Struct, frozen=True, kw_only=True):
    """The finds of a search for tools: words for the model (signatures among them) and the names it may now call.

    is_tainted: words of MCP servers are among them.
    """

    text: str
    names: tuple[str, ...] = ()
    is_tainted: bool = False


class Discovery(Protocol):
    """Searches what this user's turn may use; behind `tools_discover`."""

    async def discover(self, turn_id: str, query: str) -> Discovered:
        """Up to five permitted tools that fit, or the domains that exist."""
        ...


class Status(Protocol):
    """The state of the server; behind `cortex_status`."""

    async def lines(self) -> tuple[str, ...]:
        """One line a fact (version, up since, models, database, sandbox, what is not configured); no secret."""
        ...


class Logs(Protocol):
    """The newest log lines; behind `cortex_logs`. `base/log.py` has the one that the daemon uses."""

    def tail(self, count: int, level: str = "INFO", contains: str = "") -> tuple[str, ...]:
        """Up to `count` newest lines of at least this level that contain the words, oldest first."""
        ...


class Upgrade(Struct, frozen=True, kw_only=True):
    """The news of another version: `version` ("" = nothing newer), a line a change, how many migrations.

    progress: what is being prepared now, "" for nothing.
    """

    current: str
    version: str = ""
    changes: tuple[str, ...] = ()
    migrations: int = 0
    progress: str = ""


class Restarting(Protocol):
    """Restarting the daemon; behind `cortex_restart`. What runs ends first, or is taken up again afterwards."""

    async def must_be_possible(self) -> None:
        """UserError where it cannot be done from here."""
        ...

    async def restart(self, reason: str) -> int:
        """Ask for a clean restart once this turn has ended; how many other turns it will wait for."""
        ...


class Upkeep(Protocol):
    """Updating the daemon; behind `cortex_update`. It is prepared beside what runs, then the daemon restarts."""

    async def must_be_possible(self) -> None:
        """UserError where it cannot be done from here."""
        ...

    async def earlier(self) -> str:
        """The version before the last update, "" where there is no way back."""
        ...

    async def preview(self) -> Upgrade:
        """Return what an update would change now; changes nothing."""
        ...

    async def update(self, version: str) -> str:
        """Begin to prepare it; a line that says what follows. Conflict while another one is prepared."""
        ...

    async def roll_back(self, version: str) -> str:
        """Begin to go back to the version before the last update; a line that says what follows."""
        ...
