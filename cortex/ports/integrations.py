"""The socket that every client of an outside system fills, so that a page can test it and the server can close it."""

from typing import Protocol


class IntegrationClient(Protocol):
    """A system reached with the settings of its card. Connects by itself, at the first need."""

    async def test(self) -> str:
        """Reach it now: one sentence about what answered. ToolFailed or UserError says what is wrong and what to do."""
        ...

    async def close(self) -> None:
        """End its connections and background work."""
        ...
