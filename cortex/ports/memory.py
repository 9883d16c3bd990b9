"""The socket of what Cortex remembers of a user: single facts, each with its source and date."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct


class Fact(Struct, frozen=True, kw_only=True):
    """A fact. `source`: who said it or what it was read in; `is_tainted`: it came from outside.

    `is_proposed`: it is not remembered until the person says so.
    """

    id: str
    text: str
    source: str
    at: datetime
    is_tainted: bool
    is_proposed: bool = False


class Memory(Protocol):
    """One user's facts. What is proposed only is not found; it can be forgotten."""

    async def search(self, query: str, most: int) -> Sequence[Fact]:
        """The facts nearest in meaning, best first; all of them, the newest first, for an empty query."""
        ...

    async def add(self, id: str, text: str, source: str, is_tainted: bool, turn_id: str = "") -> Fact:
        """Keep a fact, or propose one that came from outside.

        The one that stands under this id or says exactly the same is handed back. `turn_id`: where it was said.
        """
        ...

    async def forget(self, id: str) -> Fact:
        """Forget it, kept for `restore` a day long; NotFound."""
        ...

    async def restore(self, id: str) -> Fact:
        """Remember a forgotten one again."""
        ...
