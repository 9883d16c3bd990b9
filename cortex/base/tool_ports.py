"""The sockets that tools open by `ctx.use` and that are neither a table nor a client of the outside."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """What a search for tools found: words for the model (signatures among them) and the names it may now call."""

    text: str
    names: tuple[str, ...] = ()


class Discovery(Protocol):
    """Searches what this user's turn may use; behind `tools_discover`."""

    async def discover(self, turn_id: str, query: str) -> Discovered:
        """Up to five permitted tools that fit, or the domains that exist."""
        ...


class Status(Protocol):
    """How the house is doing; behind `cortex_status`."""

    async def lines(self) -> tuple[str, ...]:
        """One line a fact (version, up since, models, database, sandbox, what is not configured); no secret."""
        ...


class Logs(Protocol):
    """The newest log lines; behind `cortex_logs`. `base/logbook.py` has the one that the daemon uses."""

    def tail(self, count: int, level: str = "INFO", contains: str = "") -> tuple[str, ...]:
        """Up to `count` newest lines of at least this level that contain the words, oldest first."""
        ...
