"""The sockets of the engine: durable runs, messages to them, and the signal that wakes watchers of a conversation."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from cortex.base.events import Event, OpenPart


class KeptRuns(Protocol):
    """The records that are kept of durable runs."""

    async def status(self, run_id: str) -> str:
        """One of unknown | queued | running | done | failed | cancelled."""
        ...

    async def unfinished(self) -> list[str]:
        """Ids of the runs that have not ended."""
        ...

    async def forget(self, run_ids: Sequence[str]) -> None:
        """Forget these runs with all that they kept, whatever became of them; unknown ones are passed over."""
        ...


class Runner(KeptRuns, Protocol):
    """Durable runs of registered async functions."""

    async def start(
        self, run_id: str, workflow: str, argument: dict[str, Any], *, queue: str = "", key: str = ""
    ) -> None:
        """Start it; a second start of the same id is a no-op."""
        ...

    async def cancel(self, run_id: str) -> None:
        """Ask it to stop; a step in flight is interrupted."""
        ...

    async def hold(self) -> None:
        """Inside a run: it may not go on yet, and a process that ends meanwhile is no fault of its own."""
        ...

    async def has_moved(self) -> None:
        """Inside a step: something of it is shown, so that a process that ends meanwhile was no life in vain."""
        ...


class Signals(Protocol):
    """Durable messages to a run."""

    async def signal(self, run_id: str, topic: str, value: str) -> None:
        """Deliver a topic's value to a run, now or when it next waits. A second one of the same topic is a no-op."""
        ...

    async def wait_for_signal(self, topic: str, timeout_s: float) -> str | None:
        """Inside a run, outside any step: the value of the topic, or None after the time limit."""
        ...


class Hub(Protocol):
    """The open parts of running turns, and a signal whenever a conversation's log grows, in whatever process."""

    def publish(self, part: OpenPart) -> None:
        """The part as it now stands (whole text); wakes the conversation's watchers."""
        ...

    def end_part(self, conversation_id: str, part: str) -> None:
        """The part ended (its row is committed)."""
        ...

    def announce(self, conversation_id: str, events: Sequence[Event] = ()) -> None:
        """New rows stand in the log: these, where they are at hand."""
        ...

    def watching(self, conversation_id: str) -> AbstractContextManager[None]:
        """Keep the rows that are told of this conversation inside the block, for `since`."""
        ...

    def since(self, conversation_id: str, seq: int) -> Sequence[Event] | None:
        """The rows past `seq` as they were told here; None where the log itself must be asked."""
        ...

    def open_parts(self, conversation_id: str) -> tuple[OpenPart, ...]:
        """The parts being written now."""
        ...

    async def changed(self, conversation_id: str, since: int, timeout_s: float) -> int:
        """Wait until the conversation's counter is past `since`, or the time is up; the counter."""
        ...


class SharedHub(Hub, Protocol):
    """A hub that also knows of the server's other processes."""

    def is_watched_elsewhere(self, conversation_id: str) -> bool:
        """Tell whether another process waits on this conversation; seen up to 15 seconds after it stopped."""
        ...
