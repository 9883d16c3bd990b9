"""How many requests of background work an endpoint takes at once: as many as it bears, and people never wait for them.

An endpoint that says it is overloaded (429, or an error of its own), or answers too late, gets half as many, and one
more after each run of good answers. Servers in one's own network never get more than their slots: what is beyond waits
here, not there, where its time would run out. Used by `asking.py`; one a process.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from msgspec import Struct, field

from cortex.base.address import is_inside
from cortex.base.errors import ProviderError
from cortex.base.model import ModelEntry

FAR_MOST = 64
OVERLOADED = ("rate_limit", "server")  # it says so
LATE = "timeout"


class _Place(Struct):
    """One endpoint. `most`: of background work at once now, never over `cap`; `good`: answers since that changed.

    `free_cap`: the cap while the endpoint does not say how many it answers at once.
    """

    cap: int
    most: int
    free_cap: int
    busy: int = 0
    good: int = 0
    freed: asyncio.Condition = field(default_factory=asyncio.Condition)


class Crowd:
    """The endpoints by who is behind them: address and key."""

    def __init__(self, local_most: int) -> None:
        """`local_most`: requests of background work that a server in one's own network is sent at once."""
        self._local_most = local_most
        self._places: dict[tuple[str, str, str, str], _Place] = {}

    @asynccontextmanager
    async def request(self, entry: ModelEntry, *, is_background: bool) -> AsyncIterator[None]:
        """Hold one of the endpoint's places; background work waits for a free one. What it says of load is heeded."""
        place = self._of(entry)
        _bound(place, entry.slots)
        async with place.freed:
            if is_background:
                await place.freed.wait_for(lambda: place.busy < place.most)
            place.busy += 1
        try:
            yield
        except ProviderError as error:
            if error.kind in (*OVERLOADED, LATE):
                place.most, place.good = max(1, min(place.busy, place.most) // 2), 0
            raise
        else:
            place.good += 1
            if place.good >= place.most:
                place.most, place.good = min(place.most + 1, place.cap), 0
        finally:
            place.busy -= 1
            async with place.freed:
                place.freed.notify_all()

    def is_full(self, entry: ModelEntry) -> bool:
        """Tell whether all that the endpoint answers at once is taken, so that one more waits; False if not known."""
        return 0 < entry.slots <= self._of(entry).busy

    def _of(self, entry: ModelEntry) -> _Place:
        name = (entry.provider, entry.base_url, entry.owner_id, entry.secret)
        if name not in self._places:
            host = urlsplit(entry.base_url).hostname or ""
            cap = self._local_most if host and is_inside(host) else FAR_MOST
            self._places[name] = _Place(cap=cap, most=cap, free_cap=cap)
        return self._places[name]


def _bound(place: _Place, slots: int) -> None:
    """Let the endpoint have no more than it says that it answers at once, and as many as before where it says more."""
    cap = min(place.free_cap, slots) if slots else place.free_cap
    if cap != place.cap:
        place.most = cap if place.most == place.cap else min(place.most, cap)
        place.cap = cap
