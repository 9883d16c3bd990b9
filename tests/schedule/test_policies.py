"""The rules of a job beside its slots, as tables."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from cortex.base.errors import UserError
from cortex.base.job import Overlap
from cortex.schedule.policies import (
    QUEUE_MOST,
    MissedPolicy,
    QuietHours,
    deadline,
    is_too_late,
    on_overlap,
    pauses,
    quiet_hours,
    quiet_until,
    retry_at,
)

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("overlap", "is_running", "waiting", "is_catching_up", "expected"),
    [
        ("skip", False, 0, False, "start"),
        ("skip", True, 0, False, "skip"),
        ("skip", True, 0, True, "wait"),
        ("skip", False, 1, False, "skip"),
        ("queue", False, 0, False, "start"),
        ("queue", True, 0, False, "wait"),
        ("queue", True, QUEUE_MOST - 1, False, "wait"),
        ("queue", True, QUEUE_MOST, False, "skip"),
        ("queue", True, QUEUE_MOST, True, "wait"),
    ],
)
def test_overlap(overlap: Overlap, is_running: bool, waiting: int, is_catching_up: bool, expected: str) -> None:
    policy = MissedPolicy(overlap=overlap)
    assert on_overlap(policy, is_running=is_running, waiting=waiting, is_catching_up=is_catching_up) == expected


@pytest.mark.parametrize(
    ("text", "at", "until"),
    [
        ("22:00-07:00", "2026-11-21T21:59", None),
        ("22:00-07:00", "2026-11-21T22:00", "2026-11-22T07:00"),
        ("22:00-07:00", "2026-11-22T00:30", "2026-11-22T07:00"),
        ("22:00-07:00", "2026-11-22T06:59", "2026-11-22T07:00"),
        ("22:00-07:00", "2026-11-22T07:00", None),
        ("12:00 to 14:00", "2026-11-21T13:00", "2026-11-21T14:00"),
        ("12:00-14:00", "2026-11-21T14:00", None),
        ("00:00-06:00", "2026-11-21T00:00", "2026-11-21T06:00"),
        ("18:00-00:00", "2026-11-21T23:59", "2026-11-22T00:00"),
        ("18:00-00:00", "2026-11-21T00:00", None),
        ("22:00-02:30", "2027-03-27T23:00", "2027-03-28T03:30"),  # 02:30 does not exist that night
        ("22:00-02:30", "2027-10-30T23:00", "2027-10-31T02:30"),  # the first of two
        ("22:00-07:00", "2027-03-27T23:00", "2027-03-28T07:00"),  # a night of eight hours
        ("22:00-07:00", "2027-03-28T06:59", "2027-03-28T07:00"),
        ("22:00-07:00", "2027-03-28T07:00", None),
        ("22:00-07:00", "2027-10-30T22:00", "2027-10-31T07:00"),  # and one of ten
        ("22:00-07:00", "2027-10-31T06:59", "2027-10-31T07:00"),
        ("02:30-07:00", "2027-03-28T03:29", None),  # its start does not exist: it is 03:30
        ("02:30-07:00", "2027-03-28T03:30", "2027-03-28T07:00"),
    ],
)
def test_quiet_hours_end_when_the_zone_says(text: str, at: str, until: str | None) -> None:
    quiet = quiet_hours(text, BERLIN)
    here = datetime.fromisoformat(at).replace(tzinfo=ZoneInfo(BERLIN))
    expected = until and datetime.fromisoformat(until).replace(tzinfo=ZoneInfo(BERLIN)).astimezone(UTC)
    assert quiet_until(quiet, here) == expected


@pytest.mark.parametrize(
    ("text", "is_quiet"),
    [("22:00-07:00", True), ("02:30-07:00", True), ("22:00-02:30", False)],
    ids=["through it", "begun in the first", "ended in the first"],
)
def test_the_second_of_two_equal_hours_is_as_quiet_as_the_first_made_it(text: str, is_quiet: bool) -> None:
    second = datetime.fromisoformat("2027-10-31T02:15+01:00")
    assert (quiet_until(quiet_hours(text, BERLIN), second) is not None) == is_quiet


@pytest.mark.parametrize("text", ["22-7", "25:00-07:00", "22:00", "07:00-07:00", "quiet", "22:00-07:60"])
def test_quiet_hours_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="22:00-07:00"):
        quiet_hours(text, BERLIN)


def test_no_quiet_hours_are_never_quiet() -> None:
    assert quiet_hours(" ", BERLIN) is None
    assert quiet_until(None, NOON) is None
    assert quiet_hours("22:00-07:00", BERLIN) == QuietHours(start=time(22), end=time(7), time_zone=BERLIN)


def test_tries_wait_twice_as_long_each_time_up_to_a_limit() -> None:
    policy = MissedPolicy(retries=5, backoff_s=60, backoff_most_s=600)
    waits = [retry_at(policy, attempt, NOON) for attempt in range(1, 7)]
    assert waits == [NOON + timedelta(seconds=wait) for wait in (60, 120, 240, 480, 600)] + [None]
    assert retry_at(MissedPolicy(retries=0), 1, NOON) is None
    assert retry_at(MissedPolicy(retries=10_000, backoff_most_s=600), 9_999, NOON) == NOON + timedelta(seconds=600)


@pytest.mark.parametrize(
    ("pause_after", "failures", "is_paused"),
    [(3, 0, False), (3, 2, False), (3, 3, True), (3, 4, True), (1, 1, True), (0, 0, False), (0, 99, False)],
)
def test_a_job_pauses_after_failures_in_a_row(pause_after: int, failures: int, is_paused: bool) -> None:
    assert pauses(MissedPolicy(pause_after=pause_after), failures) is is_paused


def test_a_slot_that_waited_and_a_run_that_lasts_have_their_limits() -> None:
    policy = MissedPolicy(fire_within_s=900, timeout_s=1800)
    assert not is_too_late(policy, NOON, NOON + timedelta(seconds=900))
    assert is_too_late(policy, NOON, NOON + timedelta(seconds=901))
    assert deadline(policy, NOON) == NOON + timedelta(minutes=30)
