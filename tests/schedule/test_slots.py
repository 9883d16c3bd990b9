"""Which slots run and which are missed, policy by policy. The daemon was down for an hour over 24 slots."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from cortex.base.job import OnMiss
from cortex.ports.schedule import Timing
from cortex.schedule.moments import following
from cortex.schedule.policies import MissedPolicy
from cortex.schedule.slots import LISTED_MOST, DueSlots, due, slots_between

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
TWO_AND_A_HALF = Timing(kind="every", expression=f"150 from {NOON.isoformat()}", time_zone="UTC", words="")
EVERY_MINUTE = Timing(kind="cron", expression="* * * * *", time_zone="UTC", words="")
DAY_S = 86_400


def whole(decision: DueSlots) -> list[datetime]:
    return sorted([*decision.run, *(one.slot for one in decision.missed)])


@pytest.mark.parametrize(
    ("on_miss", "fire_within_s", "most", "run", "missed"),
    [
        ("skip", DAY_S, 24, 1, 23),  # the one that is due this moment
        ("once", DAY_S, 24, 1, 23),
        ("catchup", DAY_S, 24, 24, 0),
        ("catchup", DAY_S, 10, 10, 14),
        ("catchup", 900, 24, 7, 17),
        ("catchup", 0, 24, 1, 23),
        ("once", 0, 24, 1, 23),
        ("catchup", DAY_S, 0, 0, 24),
    ],
)
def test_an_hour_down_over_24_slots(on_miss: OnMiss, fire_within_s: int, most: int, run: int, missed: int) -> None:
    policy = MissedPolicy(on_miss=on_miss, fire_within_s=fire_within_s, catchup_most=most)
    decision = due(TWO_AND_A_HALF, NOON, NOON + timedelta(hours=1), policy)
    assert (len(decision.run), len(decision.missed), decision.unlisted) == (run, missed, None)
    assert tuple(whole(decision)) == slots_between(TWO_AND_A_HALF, NOON, NOON + timedelta(hours=1))
    assert list(decision.run) == whole(decision)[24 - run :]
    assert decision.next_at == NOON + timedelta(hours=1, seconds=150)


@pytest.mark.parametrize(
    ("on_miss", "late_s", "is_run"),
    [
        ("skip", 2, True),
        ("skip", 60, True),
        ("skip", 61, False),
        ("once", 61, True),
        ("once", 900, True),
        ("once", 901, False),
        ("catchup", 900, True),
        ("catchup", 901, False),
    ],
)
def test_a_single_late_slot(on_miss: OnMiss, late_s: int, is_run: bool) -> None:
    daily = Timing(kind="cron", expression="0 12 * * *", time_zone="UTC", words="")
    decision = due(daily, NOON - timedelta(days=1), NOON + timedelta(seconds=late_s), MissedPolicy(on_miss=on_miss))
    assert (decision.run == (NOON,), bool(decision.missed)) == (is_run, not is_run)
    assert decision.last_slot == NOON


@pytest.mark.parametrize(
    ("policy", "whys"),
    [
        (MissedPolicy(on_miss="skip"), {"it was more than 1 minute late"}),
        (MissedPolicy(on_miss="once", fire_within_s=DAY_S), {"a later one ran for it"}),
        (MissedPolicy(on_miss="catchup", fire_within_s=900), {"it was more than 15 minutes late"}),
        (MissedPolicy(on_miss="catchup", fire_within_s=DAY_S, catchup_most=3), {"3 at most are caught up"}),
        (MissedPolicy(on_miss="once", fire_within_s=90), {"it was more than 90 seconds late"}),
    ],
)
def test_what_is_missed_says_why(policy: MissedPolicy, whys: set[str]) -> None:
    decision = due(TWO_AND_A_HALF, NOON, NOON + timedelta(hours=1), policy)
    assert {one.why for one in decision.missed} == whys


def test_nothing_is_due_before_its_time() -> None:
    decision = due(TWO_AND_A_HALF, NOON, NOON + timedelta(seconds=149), MissedPolicy())
    assert decision == DueSlots(next_at=NOON + timedelta(seconds=150))
    assert decision.last_slot is None


def test_a_moment_that_came_is_the_last() -> None:
    once = Timing(kind="at", expression=NOON.isoformat(), time_zone="UTC", words="")
    assert due(once, NOON - timedelta(days=1), NOON, MissedPolicy()) == DueSlots(run=(NOON,), next_at=None)
    assert due(once, NOON, NOON + timedelta(hours=1), MissedPolicy()) == DueSlots(next_at=None)


def test_a_year_of_minutes_is_not_listed_one_by_one_and_not_lost() -> None:
    now = NOON + timedelta(days=365)
    decision = due(EVERY_MINUTE, NOON, now, MissedPolicy(on_miss="once"))
    listed = whole(decision)
    assert decision.run == (now,)
    assert LISTED_MOST <= len(listed) <= 2 * LISTED_MOST + 60
    assert decision.unlisted is not None
    assert decision.unlisted == (NOON, listed[0] - timedelta(minutes=1))


def test_decisions_in_a_row_decide_each_slot_once() -> None:
    last, seen = NOON, list[datetime]()
    for minutes in (1, 3, 4, 10, 10, 47, 60):
        decision = due(TWO_AND_A_HALF, last, NOON + timedelta(minutes=minutes), MissedPolicy(on_miss="catchup"))
        seen += whole(decision)
        last = decision.last_slot or last
    assert tuple(seen) == slots_between(TWO_AND_A_HALF, NOON, NOON + timedelta(hours=1))


JOBS = [
    ("cron", "30 2 * * *", "Europe/Berlin"),
    ("cron", "30 7 * * 1-5", "America/New_York"),
    ("cron", "45 1 * * 0", "Australia/Lord_Howe"),
    ("every", "21600 from 2026-01-01T00:00+00:00", "Asia/Kolkata"),
    ("every", "2 days from 2026-01-01T02:30", "Europe/Berlin"),
]


@pytest.mark.parametrize(("kind", "expression", "zone"), JOBS)
def test_ten_years_of_a_job_end_each_slot_once(kind: str, expression: str, zone: str) -> None:
    """Fired by a clock that is up to a minute late, and off for a day and a half of each month."""
    timing = Timing(kind=kind, expression=expression, time_zone=zone, words="")  # type: ignore[arg-type]  # a table's
    chance = random.Random(4)  # noqa: S311 - the same each time
    start = now = datetime(2026, 1, 1, tzinfo=UTC)
    ran, missed = list[datetime](), list[datetime]()
    next_at: datetime | None = following(timing, start - timedelta(seconds=1), 1)[0]
    while next_at is not None and now.year < 2036:
        is_off = next_at.month != now.month
        now = max(now, next_at) + timedelta(seconds=chance.uniform(0, 59), hours=36 * is_off)
        decision = due(timing, next_at - timedelta(microseconds=1), now, MissedPolicy(on_miss="skip"))
        ran += decision.run
        missed += [one.slot for one in decision.missed]
        next_at = decision.next_at
    assert sorted([*ran, *missed]) == list(slots_between(timing, start - timedelta(seconds=1), now))
    assert len(set(ran)) == len(ran)
    assert not set(ran) & set(missed)
    assert len(missed) >= 100
