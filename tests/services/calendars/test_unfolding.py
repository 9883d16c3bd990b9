"""Series unfolded, against a reckoning of its own: day by day, each asked whether the rule means it.

The reckoning knows nothing of the library; it walks the calendar from the first date on and applies RFC 5545's words.
"""

from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import assume, example, given
from hypothesis import strategies as st

from cortex.integrations.foreign.appointments.reading import appointments_of
from cortex.integrations.foreign.appointments.series import DATES_MOST, Window
from cortex.integrations.foreign.appointments.writing import written

HERE = ZoneInfo("Europe/Berlin")
WINDOW = Window(datetime(2025, 11, 1, tzinfo=UTC), datetime(2028, 2, 1, tzinfo=UTC))
WEEK = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "UTC")
Rule = Mapping[str, Any]


def means(rule: Rule, first: date, day: date) -> bool:
    """Tell whether a rule without an end means this day."""
    every, freq = rule["INTERVAL"], rule["FREQ"]
    months = (day.year - first.year) * 12 + day.month - first.month
    begins = WEEK.index(rule.get("WKST", "MO"))
    weeks = (_week(day, begins) - _week(first, begins)).days // 7
    away = {"DAILY": (day - first).days, "WEEKLY": weeks, "MONTHLY": months, "YEARLY": day.year - first.year}[freq]
    if away % every or (rule.get("BYMONTH") and day.month not in rule["BYMONTH"]):
        return False
    of_month, of_week = rule.get("BYMONTHDAY"), rule.get("BYDAY")
    if of_month and not {day.day, day.day - monthrange(day.year, day.month)[1] - 1} & set(of_month):
        return False
    if of_week and not any(_is_named(one, day) for one in of_week):
        return False
    if freq == "WEEKLY" and not of_week:
        return day.weekday() == first.weekday()
    if freq in ("MONTHLY", "YEARLY") and not of_month and not of_week:
        return day.day == first.day and (freq == "MONTHLY" or bool(rule.get("BYMONTH")) or day.month == first.month)
    return True


def _week(day: date, begins: int) -> date:
    return day - timedelta(days=(day.weekday() - begins) % 7)


def _is_named(name: str, day: date) -> bool:
    """Tell whether `TU`, `2TU` or `-1TU` names this day in its month."""
    if WEEK[day.weekday()] != name[-2:]:
        return False
    left = monthrange(day.year, day.month)[1] - day.day
    return name[:-2] in ("", str((day.day - 1) // 7 + 1), str(-(left // 7) - 1))


def reckoned(rule: Rule, first: datetime, until: datetime) -> Iterator[datetime]:
    """The wall times of the series, the first one always."""
    yield first
    count, day = 1, first.date()
    while day < until.date():
        day += timedelta(days=1)
        at = datetime.combine(day, first.time())
        if "UNTIL" in rule and day > rule["UNTIL"]:
            return
        if means(rule, first.date(), day):
            count += 1
            if "COUNT" in rule and count > rule["COUNT"]:
                return
            yield at


def said(rule: Rule) -> str:
    parts = [f"{name}={_value(value)}" for name, value in rule.items() if name != "UNTIL"]
    return ";".join(parts)


def _value(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


@st.composite
def rules(draw: Callable[[Any], Any], first: date) -> dict[str, Any]:
    """A rule that means its first date, as programs write them."""
    freq = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    rule: dict[str, Any] = {"FREQ": freq, "INTERVAL": draw(st.integers(1, 4))}
    kind = draw(st.sampled_from(["", "days", "month", "months"]))
    if kind == "days" and freq in ("DAILY", "WEEKLY"):
        rule["BYDAY"] = draw(st.lists(st.sampled_from(WEEK), min_size=1, max_size=4, unique=True))
    if kind == "days" and freq == "MONTHLY":
        rule["BYDAY"] = draw(st.lists(st.sampled_from(["MO", "2TU", "-1FR", "1SU", "5WE"]), min_size=1, max_size=2))
    if kind == "month" and freq == "MONTHLY":
        rule["BYMONTHDAY"] = draw(
            st.lists(st.sampled_from([1, 13, 29, 31, -1, -2]), min_size=1, max_size=3, unique=True)
        )
    if kind == "months" and freq != "YEARLY":
        rule["BYMONTH"] = draw(st.lists(st.integers(1, 12), min_size=1, max_size=5, unique=True))
    if freq == "WEEKLY" and draw(st.booleans()):
        rule["WKST"] = draw(st.sampled_from(["SU", "MO"]))
    assume(means(rule, first, first))
    ends = draw(st.sampled_from(["", "COUNT", "UNTIL"]))
    if ends == "COUNT":
        rule["COUNT"] = draw(st.integers(1, 40))
    if ends == "UNTIL":  # a day of its own, or any
        walls = reckoned(rule, datetime.combine(first, time()), WINDOW.until.replace(tzinfo=None))
        own = [at.date() for at in islice(walls, 20)]
        rule["UNTIL"] = draw(st.sampled_from(own) | st.integers(0, 900).map(lambda days: first + timedelta(days=days)))
    return rule


FIRSTS = st.datetimes(datetime.fromisoformat("2024-06-01"), datetime.fromisoformat("2027-06-01")).map(
    lambda at: at.replace(second=0, microsecond=0, fold=0)
)
SERIES = FIRSTS.flatmap(lambda at: st.tuples(st.just(at), rules(at.date()), st.sampled_from(ZONES)))


def resource(first: datetime, rule: Rule, zone: str, *more: str, whole: bool = False) -> str:
    until = ""
    if "UNTIL" in rule:
        last = datetime.combine(rule["UNTIL"], first.time(), ZoneInfo(zone)).astimezone(UTC)
        until = f";UNTIL={rule['UNTIL']:%Y%m%d}" if whole else f";UNTIL={last:%Y%m%dT%H%M%SZ}"
    at = f"DTSTART;VALUE=DATE:{first:%Y%m%d}" if whole else f"DTSTART;TZID={zone}:{first:%Y%m%dT%H%M%S}"
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Phone//EN", "BEGIN:VEVENT", "UID:one", "SUMMARY:Run"]
    lines += ["DTSTAMP:20240101T000000Z", at, *([] if whole else ["DURATION:PT45M"]), f"RRULE:{said(rule)}{until}"]
    return "\r\n".join([*lines, *more, "END:VEVENT", "END:VCALENDAR", ""])


def found(data: str) -> list[str]:
    (one,) = appointments_of(data, WINDOW, HERE)
    assert not one["note"], one["note"]
    return [date["day"] or date["starts_at"] for date in one["dates"]]


def inside(first: datetime, rule: Rule, zone: str) -> list[str]:
    """The instants of the series that the window holds, by the reckoning."""
    walls = reckoned(rule, first, WINDOW.until.replace(tzinfo=None) + timedelta(days=2))
    instants = (at.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for at in walls)
    return [at.isoformat() for at in sorted(instants) if WINDOW.has(at, at + timedelta(minutes=45))]


@given(SERIES)
@example((datetime.fromisoformat("2026-03-01T02:30"), {"FREQ": "DAILY", "INTERVAL": 1, "COUNT": 40}, "Europe/Berlin"))
@example((datetime.fromisoformat("2026-10-01T02:30"), {"FREQ": "DAILY", "INTERVAL": 1, "COUNT": 40}, "Europe/Berlin"))
@example((datetime.fromisoformat("2024-08-31T09:00"), {"FREQ": "MONTHLY", "INTERVAL": 1}, "America/New_York"))
@example((datetime.fromisoformat("2025-12-29T09:00"), {"FREQ": "YEARLY", "INTERVAL": 1}, "UTC"))
def test_a_series_is_what_its_rule_says_day_by_day(series: tuple[datetime, Rule, str]) -> None:
    first, rule, zone = series
    assert found(resource(first, rule, zone)) == inside(first, rule, zone)


@given(SERIES)
def test_a_series_of_whole_days_has_the_same_days_in_every_zone(series: tuple[datetime, Rule, str]) -> None:
    first, rule, _ = series
    days = [at.date() for at in reckoned(rule, first, WINDOW.until.replace(tzinfo=None) + timedelta(days=2))]
    midnights = [(day, datetime.combine(day, time(), HERE).astimezone(UTC)) for day in days]
    shown = [day.isoformat() for day, at in midnights if WINDOW.has(at, at + timedelta(days=1))]
    assert found(resource(first, rule, "UTC", whole=True)) == shown


@given(SERIES, st.data())
def test_taking_out_a_date_takes_out_that_one(series: tuple[datetime, Rule, str], data: st.DataObject) -> None:
    before = inside(*series)
    assume(before)
    gone = data.draw(st.sampled_from(before))
    after = _edited(resource(*series), {"kind": "remove", "key": gone})
    assert found(after) == [one for one in before if one != gone]


@given(SERIES, st.data(), st.integers(-60 * 24 * 3, 60 * 24 * 3))
def test_moving_a_date_moves_that_one(series: tuple[datetime, Rule, str], data: st.DataObject, by: int) -> None:
    before = inside(*series)
    assume(before)
    key = data.draw(st.sampled_from(before))
    to = datetime.fromisoformat(key) + timedelta(minutes=by)
    assume(WINDOW.since + timedelta(days=1) < to < WINDOW.until - timedelta(days=1))
    after = _edited(resource(*series), {"kind": "change", "key": key, "fields": _fields(to, "UTC")})
    assert found(after) == sorted([*(one for one in before if one != key), to.isoformat()])


@given(SERIES, st.integers(0, 3), st.integers(0, 23), st.booleans())
def test_a_moved_series_keeps_its_gaps(series: tuple[datetime, Rule, str], days: int, hour: int, drops: bool) -> None:
    """In wall time, with what was taken out of it; where its rule is one that can move."""
    first, rule, zone = series
    assume(rule["FREQ"] in ("DAILY", "WEEKLY") and "BYMONTH" not in rule)
    walls = list(reckoned(rule, first, WINDOW.until.replace(tzinfo=None) - timedelta(days=10)))
    assume(walls[-1] >= WINDOW.since.replace(tzinfo=None) + timedelta(days=10))
    out = [f"EXDATE;TZID={zone}:{walls[-1]:%Y%m%dT%H%M%S}"] if drops and len(walls) > 1 else []
    data, moved = resource(first, rule, zone, *out), datetime.combine(first.date() + timedelta(days=days), time(hour))
    after = _edited(
        data, {"kind": "change", "key": "", "of": "", "fields": _fields(moved.replace(tzinfo=ZoneInfo(zone)), zone)}
    )
    expected = [at + (moved - first) for at in (walls[:-1] if out else walls)]
    instants = [at.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for at in expected]
    shown = [at.isoformat() for at in sorted(instants) if WINDOW.has(at, at + timedelta(minutes=45))]
    assert found(after)[: len(shown)] == shown
    assert not set(found(data)) & {walls[-1].replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).isoformat()} or not out


@given(st.text(alphabet="FREQ=;BYDAYINTERVALCOUNT,0123456789-SECONDLYHOURLYMINUTELYWKST", max_size=80))
@example("FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30")
@example("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30")
@example("FREQ=HOURLY;INTERVAL=0")
@example("FREQ=DAILY;INTERVAL=999999999")
@example("FREQ=SECONDLY")
def test_whatever_stands_as_a_rule_costs_little_and_leaves_the_first_date(rule: str) -> None:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", "BEGIN:VEVENT", "UID:one", "DTSTART:20260101T090000Z"]
    data = "\r\n".join([*lines, f"RRULE:{rule}", "END:VEVENT", "END:VCALENDAR", ""])
    (one,) = appointments_of(data, WINDOW, HERE)
    assert 1 <= len(one["dates"]) <= DATES_MOST
    assert one["dates"][0]["starts_at"] == "2026-01-01T09:00:00+00:00"


def _fields(at: datetime, zone: str) -> dict[str, Any]:
    ends = at.replace(tzinfo=None) + timedelta(minutes=45)
    starts = at.replace(tzinfo=None).isoformat()
    return {"starts": starts, "ends": ends.isoformat(), "zone": zone, "is_all_day": False}


def _edited(data: str, edit: dict[str, Any]) -> str:
    order = {"data": data, "zone": "Europe/Berlin", "now": "2026-11-28T12:00:00+00:00", "edit": {"uid": "one", **edit}}
    return written(order)
