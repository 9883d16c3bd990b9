"""Holds what the services share: the database, the engine's sockets, the registry. Wired once by `cortex/app.py`."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import Struct, field

from cortex.base.clock import Clock
from cortex.base.events import EventKind
from cortex.base.outages import Outages
from cortex.base.settings import Settings
from cortex.ports.engine import Runner, SharedHub, Signals
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database, Opener
from cortex.toolkit.registry import Registry

WORK: frozenset[EventKind] = frozenset({"turn.start", "turn.end", "approval"})  # what makes a chat work, or wait


def work_of(user_id: str) -> str:
    """The key of the hub under which it is announced that something of this person's began or ended."""
    return f"work:{user_id}"


class Runtime(Struct, frozen=True, kw_only=True):
    """The collaborators of every service."""

    settings: Settings
    db: Database
    hub: SharedHub
    runner: Runner
    signals: Signals
    registry: Registry
    clock: Clock
    ticks_s: Callable[[], float]
    outages: Outages = field(default_factory=Outages)

    @asynccontextmanager
    async def transaction_then_notify(self, user_id: str, conversation_id: str) -> AsyncIterator[Opener]:
        """One transaction whose log rows the conversation's watchers are told after the commit."""
        async with self.db.transaction(user_id) as repository:
            yield repository
            appended = repository(ConversationsRepository).appended(conversation_id)
        self.hub.announce(conversation_id, appended)
        if any(event.kind in WORK for event in appended):
            self.hub.announce(work_of(user_id))
