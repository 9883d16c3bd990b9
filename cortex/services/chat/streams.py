"""The open streams of this process: who watches which conversation. They end at once when a person's access ends."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct, field

from cortex.base.errors import Throttled
from cortex.base.settings import Settings
from cortex.ports.engine import SharedHub


class OpenStreams(Struct, frozen=True, kw_only=True):
    """`watched`: user -> key of the hub -> watchers. `ended`: user -> how often all their streams were ended.

    `held`: user -> open connections that stream; `settings` say how many one person may have in this process.
    """

    hub: SharedHub
    settings: Settings
    held: Counter[str] = field(default_factory=Counter)
    watched: dict[str, Counter[str]] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def holding(self, user_id: str) -> Iterator[None]:
        """Counts a connection that streams to this person; Throttled when they hold too many already."""
        most = self.settings.streams_per_person
        if self.held[user_id] >= most:
            raise Throttled(f"You have {most} live pages open, which is the limit. Close some.", wait_s=5.0)
        self.held[user_id] += 1
        try:
            yield
        finally:
            self.held[user_id] -= 1
            if not self.held[user_id]:
                del self.held[user_id]

    @contextmanager
    def watching(self, user_id: str, key: str) -> Iterator[Callable[[], bool]]:
        """Counts a watcher in; what it gives says whether the user may still watch.

        `key`: a conversation, or whatever else of the hub the watcher waits on.
        """
        watched = self.watched.setdefault(user_id, Counter())
        watched[key] += 1
        try:
            yield self.allowed(user_id)
        finally:
            watched[key] -= 1
            if not +watched:
                self.watched.pop(user_id, None)

    def allowed(self, user_id: str) -> Callable[[], bool]:
        """Give what says whether the user may still watch, for a watcher that does not count as one who sees it."""
        started = self.ended.get(user_id, 0)
        return lambda: self.ended.get(user_id, 0) == started

    @property
    def count(self) -> int:
        """Return how many streams are open in this process."""
        return sum(watched.total() for watched in self.watched.values())

    def is_watched(self, user_id: str, conversation_id: str) -> bool:
        """Tell whether the user has the conversation open, in whatever process."""
        is_here = self.watched.get(user_id, Counter())[conversation_id] > 0
        return is_here or self.hub.is_watched_elsewhere(conversation_id)

    def end_streams(self, user_id: str) -> None:
        """Close the user's streams in this process."""
        self.ended[user_id] = self.ended.get(user_id, 0) + 1
        for key in list(self.watched.get(user_id, ())):
            self.hub.announce(key)

    def end_all_streams(self) -> None:
        """Close every stream of this process, which is about to end."""
        for user_id in list(self.watched):
            self.end_streams(user_id)
