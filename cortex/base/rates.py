"""How often somebody came within a minute, counted in this process: a guard ahead of what costs more. Pure."""

from collections import deque
from collections.abc import Hashable
from datetime import datetime, timedelta

from msgspec import Struct, field

MINUTE = timedelta(minutes=1)


class Rates(Struct, frozen=True):
    """The requests of the last minute, by whose they were."""

    _came: dict[Hashable, deque[datetime]] = field(default_factory=dict)

    def add(self, whose: Hashable, now: datetime) -> None:
        """One more came."""
        self._came.setdefault(whose, deque()).append(now)

    def count(self, whose: Hashable, now: datetime) -> int:
        """Return how many came within the last minute."""
        came = self._came.get(whose)
        if came is None:
            return 0
        while came and now - came[0] > MINUTE:
            came.popleft()
        if not came:
            del self._came[whose]
        return len(came)
