"""The rules of a job as values and pure functions: overlap, quiet hours, retries, pause after failures, deadline.

Which slots are due is `slots.py`. Storage keeps the values, the job runner asks the functions.
"""

import re
from datetime import UTC, datetime, time, timedelta
from typing import Literal

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.base.job import OnMiss, Overlap
from cortex.schedule.moments import utc_of, zone_of

QUEUE_MOST = 10
SUCH_HOURS = "Write quiet hours such as 22:00-07:00."
_QUIET = re.compile(r"(\d{1,2}):(\d{2}) ?(?:-|\u2013|to) ?(\d{1,2}):(\d{2})")


class MissedPolicy(Struct, frozen=True, kw_only=True):
    """A job's policy for slots that it did not run in time. Times in seconds.

    `on_miss`: leave late slots out, run the newest alone, or all of them up to `catchup_most`.
    `fire_within_s`: later than this no slot runs. `grace_s`: within this a slot counts as on time.
    `retries`: further tries of a failed slot, `backoff_s` after the first, twice that after the next, up to
    `backoff_most_s`. `pause_after`: failures in a row, 0 for never. `timeout_s`: how long a run may take.
    What a job keeps has the same name there; the rest is the server's.
    """

    on_miss: OnMiss = "once"
    fire_within_s: int = 900
    grace_s: int = 60
    catchup_most: int = 24
    overlap: Overlap = "skip"
    retries: int = 0
    backoff_s: int = 60
    backoff_most_s: int = 3600
    pause_after: int = 5
    timeout_s: int = 3600


class QuietHours(Struct, frozen=True, kw_only=True):
    """A span of the day in which nobody is disturbed; one that ends before it starts goes on over midnight."""

    start: time
    end: time
    time_zone: str


def quiet_hours(text: str, time_zone: str) -> QuietHours | None:
    """`22:00-07:00` read; None for no text; UserError when it is no span."""
    if not text.strip():
        return None
    found = _QUIET.fullmatch(text.strip())
    if not found:
        raise UserError(SUCH_HOURS)
    try:
        start, end = time(int(found[1]), int(found[2])), time(int(found[3]), int(found[4]))
    except ValueError as error:
        raise UserError(SUCH_HOURS) from error
    if start == end:
        raise UserError(SUCH_HOURS)
    return QuietHours(start=start, end=end, time_zone=time_zone)


def quiet_until(quiet: QuietHours | None, at: datetime) -> datetime | None:
    """When the quiet that holds at this moment ends, aware UTC; None when it is not quiet."""
    if quiet is None:
        return None
    zone = zone_of(quiet.time_zone)
    here = at.astimezone(zone)
    is_over_midnight = quiet.end <= quiet.start
    began = here.date() - timedelta(days=1 if is_over_midnight and here.time() < quiet.end else 0)
    ends_on = began + timedelta(days=1 if is_over_midnight else 0)
    start, end = utc_of(datetime.combine(began, quiet.start), zone), utc_of(datetime.combine(ends_on, quiet.end), zone)
    return end if start <= at < end else None


def on_overlap(
    policy: MissedPolicy, *, is_running: bool, waiting: int, is_catching_up: bool = False
) -> Literal["start", "wait", "skip"]:
    """Return what a slot does while the job's earlier slots still run or wait.

    Slots that are caught up wait for each other under either rule: they were decided together. A queue has
    `QUEUE_MOST` places, so that a job slower than its rhythm loses slots in the open and not its memory.
    """
    if not is_running and not waiting:
        return "start"
    if policy.overlap == "skip" and not is_catching_up:
        return "skip"
    return "wait" if waiting < QUEUE_MOST or is_catching_up else "skip"


def is_too_late(policy: MissedPolicy, slot: datetime, now: datetime) -> bool:
    """Tell whether a slot that waited may no longer start."""
    return now - slot > timedelta(seconds=policy.fire_within_s)


def retry_at(policy: MissedPolicy, attempt: int, failed_at: datetime) -> datetime | None:
    """When the slot is tried again after its failed attempt (1 is the first); None when it was the last."""
    if attempt > policy.retries:
        return None
    wait_s = min(policy.backoff_s * 2 ** min(attempt - 1, 30), policy.backoff_most_s)
    return failed_at.astimezone(UTC) + timedelta(seconds=wait_s)


def pauses(policy: MissedPolicy, failures: int) -> bool:
    """Tell whether the job pauses itself after so many failures in a row."""
    return 0 < policy.pause_after <= failures


def deadline(policy: MissedPolicy, started_at: datetime) -> datetime:
    """When a run that started then has to be over, aware UTC."""
    return started_at.astimezone(UTC) + timedelta(seconds=policy.timeout_s)
