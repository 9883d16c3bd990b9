"""Stands where the engine would in services at rest (the commands): nothing runs, nothing can be started."""

from collections.abc import Sequence
from typing import Any

from cortex.base.errors import Conflict


class NullEngine:
    """Implements `Runner` and `Signals` of `ports/engine.py`."""

    async def start(
        self, run_id: str, workflow: str, argument: dict[str, Any], *, queue: str = "", key: str = ""
    ) -> None:
        """Refuse."""
        raise Conflict("Cortex is not running: start it with `cortex serve`.")

    async def cancel(self, run_id: str) -> None:
        """Nothing to cancel."""

    async def status(self, run_id: str) -> str:
        """Nobody knows."""
        return "unknown"

    async def unfinished(self) -> list[str]:
        """None of ours."""
        return []

    async def forget(self, run_ids: Sequence[str]) -> None:
        """Refuse."""
        raise Conflict("Cortex is not running: start it with `cortex serve`.")

    async def hold(self) -> None:
        """Nothing runs."""

    async def has_moved(self) -> None:
        """Nothing runs."""

    async def signal(self, run_id: str, topic: str, value: str) -> None:
        """Refuse."""
        raise Conflict("Cortex is not running: start it with `cortex serve`.")

    async def wait_for_signal(self, topic: str, timeout_s: float) -> str | None:
        """Nothing comes."""
        return None
