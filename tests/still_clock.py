"""A clock that stands still until a test moves it."""

from datetime import UTC, datetime, timedelta


class StillClock:
    """Call it for the time; `forward` moves it on."""

    def __init__(self, at: datetime | None = None) -> None:
        self.at = at or datetime(2026, 11, 20, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def forward(self, *, days: float = 0, minutes: float = 0, seconds: float = 0) -> datetime:
        self.at += timedelta(days=days, minutes=minutes, seconds=seconds)
        return self.at
