"""Values of jobs, reminders and notices for the tests of their tables, and a second process on the same database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from cortex.storage.db import Database
from cortex.storage.job_rows import JobValues
from cortex.storage.notices import NoticeValues
from cortex.storage.reminders import ReminderValues

NINE = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

NEWS = JobValues(
    name="News",
    prompt="Sum up the news",
    timing_kind="cron",
    expression="0 9 * * *",
    time_zone="Europe/Berlin",
    words="every day at 09:00",
    is_tainted=False,
    is_private=False,
)
TEA = ReminderValues(
    text="Water the plants",
    timing_kind="at",
    expression="2026-11-21T10:00+01:00",
    time_zone="Europe/Berlin",
    words="on 21 November at 10:00",
    is_tainted=False,
)
TOLD = NoticeValues(
    kind="job", title="News", text="Nothing happened.", path="/jobs", subject_id="cron:news:1", is_tainted=False
)


def named(name: str) -> JobValues:
    return replace(NEWS, name=name)


@asynccontextmanager
async def second_process(db: Database) -> AsyncIterator[Database]:
    """The same tables through connections of their own."""
    other = Database(db.url.render_as_string(hide_password=False), clock=db.clock)
    try:
        yield other
    finally:
        await other.close()
