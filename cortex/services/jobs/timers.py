"""Timers of the alarm, on APScheduler: each calls once, at its time. Loaded with the first one that is set.

Keeps them in memory only. Reading its library takes a tenth of a second and 3 MB (2026-11-21).
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler  # type: ignore[import-untyped]  # it ships no types
from apscheduler.triggers.date import DateTrigger  # type: ignore[import-untyped]


class Timers:
    """They run from the start, on the running loop; `cancel_all` in the end."""

    def __init__(self) -> None:
        """None is set."""
        logging.getLogger("apscheduler").setLevel(logging.WARNING)  # it logs each firing, twice
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        self._scheduler.start()

    def set(self, name: str, at: datetime, call: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Call it at that time, or at once when that is over. One of the same name is replaced."""
        trigger = DateTrigger(at, timezone=UTC)
        # No grace time: one that comes late is called all the same, and the table then says what is due.
        self._scheduler.add_job(call, trigger, args=args, id=name, replace_existing=True, misfire_grace_time=None)

    def drop(self, name: str) -> None:
        """Call it no more; it may have been called already."""
        if self._scheduler.get_job(name):
            self._scheduler.remove_job(name)

    def cancel_all(self) -> None:
        """Drop them all."""
        self._scheduler.shutdown(wait=False)
