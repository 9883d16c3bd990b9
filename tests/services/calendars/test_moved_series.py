"""A series that moves takes along what was said of its single dates, in the clock of its own zone."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.appointments.reading import appointments_of
from cortex.integrations.foreign.appointments.series import Window
from cortex.integrations.foreign.appointments.writing import written

BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), "TZID=America/New_York"
WINDOW = Window(datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 6, 1, tzinfo=UTC))
CET = "TZID=Europe/Berlin"


def calendar(*lines: str) -> str:
    return "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Phone//EN", *lines, "END:VCALENDAR", ""])


def event(*lines: str) -> list[str]:
    return ["BEGIN:VEVENT", "UID:one", "DTSTAMP:20260101T000000Z", *lines, "END:VEVENT"]


def moved(data: str, starts: str, ends: str, *, of: str = "", zone: str = "Europe/Berlin", **more: object) -> str:
    fields = {"starts": starts, "ends": ends, "zone": zone, "is_all_day": len(starts) == 10, **more}
    return edited(data, {"key": "", "of": of, "fields": fields})


def edited(data: str, edit: dict[str, object]) -> str:
    order = {"data": data, "zone": "Europe/Berlin", "now": "2026-11-28T12:00:00+00:00"}
    return written({**order, "edit": {"kind": "change", "uid": "one", **edit}})


def dates(data: str) -> list[str]:
    """The dates as people in Berlin read them, with the title where it is another one."""
    (one,) = appointments_of(data, WINDOW, BERLIN)
    return [_said(date) for date in one["dates"]]


def _said(date: dict[str, str]) -> str:
    at = date["day"] or f"{datetime.fromisoformat(date['starts_at']).astimezone(BERLIN):%Y-%m-%d %H:%M}"
    return " ".join(filter(None, [at, date.get("title", "")]))


WEEKLY = event(
    "SUMMARY:Run", f"DTSTART;{CET}:20261006T090000", f"DTEND;{CET}:20261006T100000",
    "RRULE:FREQ=WEEKLY;BYDAY=TU;UNTIL=20261110T080000Z", f"EXDATE;{CET}:20261020T090000",
)  # fmt: skip
LATER = event(
    "SUMMARY:Run", f"RECURRENCE-ID;{CET}:20261103T090000", f"DTSTART;{CET}:20261103T140000",
    f"DTEND;{CET}:20261103T150000",
)  # fmt: skip
RENAMED = event(
    "SUMMARY:Race", f"RECURRENCE-ID;{CET}:20261027T090000", f"DTSTART;{CET}:20261027T090000",
    f"DTEND;{CET}:20261027T110000",
)  # fmt: skip


def test_what_was_taken_out_stays_out_and_what_was_moved_stands_once() -> None:
    data = calendar(*WEEKLY, *LATER, *RENAMED)
    assert dates(data) == [
        "2026-10-06 09:00", "2026-10-13 09:00", "2026-10-27 09:00 Race", "2026-11-03 14:00", "2026-11-10 09:00",
    ]  # fmt: skip
    after = moved(data, "2026-10-13T10:30", "2026-10-13T11:30", of="2026-10-13T07:00:00+00:00")
    assert dates(after) == [
        "2026-10-06 10:30", "2026-10-13 10:30", "2026-10-27 10:30 Race", "2026-11-03 14:00", "2026-11-10 10:30",
    ]  # fmt: skip


def test_to_another_day_its_rule_goes_along() -> None:
    after = moved(calendar(*WEEKLY, *LATER), "2026-10-15T09:00", "2026-10-15T10:00", of="2026-10-13T07:00:00+00:00")
    assert dates(after) == [
        "2026-10-08 09:00", "2026-10-15 09:00", "2026-10-29 09:00", "2026-11-03 14:00", "2026-11-12 09:00",
    ]  # fmt: skip


def test_over_a_change_of_the_clocks_its_hour_stays() -> None:
    after = moved(calendar(*WEEKLY), "2026-11-11T09:00", "2026-11-11T10:00", of="2026-11-10T08:00:00+00:00")
    assert dates(after) == [
        "2026-10-07 09:00", "2026-10-14 09:00", "2026-10-28 09:00", "2026-11-04 09:00", "2026-11-11 09:00",
    ]  # fmt: skip


def test_it_keeps_the_zone_that_it_has() -> None:
    data = calendar(*event(
        "SUMMARY:Call", f"DTSTART;{NEW_YORK}:20261012T180000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=4",
    ))  # fmt: skip
    assert dates(data) == ["2026-10-13 00:00", "2026-10-20 00:00", "2026-10-26 23:00", "2026-11-03 00:00"]
    after = moved(data, "2026-10-13T01:00", "2026-10-13T02:00", of="2026-10-12T22:00:00+00:00")
    assert dates(after) == ["2026-10-13 01:00", "2026-10-20 01:00", "2026-10-27 00:00", "2026-11-03 01:00"]
    assert f"DTSTART;{NEW_YORK}:20261012T190000" in after


def test_every_other_week_stays_every_other_week() -> None:
    data = calendar(*event(
        "SUMMARY:Bins", "DTSTART;VALUE=DATE:20261004", "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,TU;COUNT=4",
        "EXDATE;VALUE=DATE:20261013",
    ))  # fmt: skip
    before = [datetime.fromisoformat(one) for one in dates(data)]
    after = [datetime.fromisoformat(one) for one in dates(moved(data, "2026-10-05", "2026-10-05", of="2026-10-04"))]
    assert [(new - old).days for old, new in zip(before, after, strict=True)] == [1] * len(before) == [1, 1, 1]


@pytest.mark.parametrize(
    ("starts", "rule", "to", "then"),
    [
        ("20261005", "FREQ=MONTHLY;BYMONTHDAY=5", "2026-10-07", "FREQ=MONTHLY;BYMONTHDAY=7"),
        ("20261005", "FREQ=MONTHLY", "2026-10-07", "FREQ=MONTHLY"),
        ("20261013", "FREQ=MONTHLY;BYDAY=2TU", "2026-10-14", "FREQ=MONTHLY;BYDAY=2WE"),
        ("20261027", "FREQ=MONTHLY;BYDAY=-1TU", "2026-10-30", "FREQ=MONTHLY;BYDAY=-1FR"),
        ("20261027", "FREQ=YEARLY;BYMONTH=10;BYMONTHDAY=27", "2026-11-02", "FREQ=YEARLY;BYMONTHDAY=2;BYMONTH=11"),
    ],
)  # fmt: skip
def test_the_day_of_a_month_goes_along(starts: str, rule: str, to: str, then: str) -> None:
    after = moved(calendar(*event("SUMMARY:Rent", f"DTSTART;VALUE=DATE:{starts}", f"RRULE:{rule}")), to, to)
    assert dates(after)[0] == to
    found = re.search("RRULE:(.*)\r\n", after)
    assert found is not None
    assert sorted(found[1].split(";")) == sorted(then.split(";"))


@pytest.mark.parametrize(
    "lines",
    [
        ["RRULE:FREQ=MONTHLY;BYDAY=FR;BYSETPOS=-1"],
        ["RRULE:FREQ=MONTHLY;BYMONTHDAY=5,20"],
        ["RRULE:FREQ=MONTHLY;BYMONTHDAY=5", "EXDATE;VALUE=DATE:20261105"],
        ["RRULE:FREQ=WEEKLY;BYMONTH=10,11"],
        ["RRULE:FREQ=YEARLY;BYYEARDAY=278"],
    ],
)
def test_a_rule_that_would_mean_something_else_is_refused_in_words(lines: list[str]) -> None:
    data = calendar(*event("SUMMARY:Rent", "DTSTART;VALUE=DATE:20261005", *lines))
    with pytest.raises(UnreadableError, match="cannot move"):
        moved(data, "2026-10-07", "2026-10-07")


def test_a_new_rule_is_taken_as_it_is_said() -> None:
    data = calendar(*event("SUMMARY:Rent", "DTSTART;VALUE=DATE:20261005", "RRULE:FREQ=MONTHLY;BYDAY=FR;BYSETPOS=-1"))
    assert dates(moved(data, "2026-10-07", "2026-10-07", rule="FREQ=MONTHLY;COUNT=2")) == ["2026-10-07", "2026-11-07"]


def test_days_become_hours_with_all_that_was_said_of_them() -> None:
    data = calendar(*event(
        "SUMMARY:Fair", "DTSTART;VALUE=DATE:20261005", "RRULE:FREQ=DAILY;UNTIL=20261008", "EXDATE;VALUE=DATE:20261006",
    ))  # fmt: skip
    after = moved(data, "2026-10-05T09:00", "2026-10-05T10:00", of="2026-10-05")
    assert dates(after) == ["2026-10-05 09:00", "2026-10-07 09:00", "2026-10-08 09:00"]


def test_a_longer_series_moves_nothing_even_when_asked_of_a_moved_date() -> None:
    after = moved(calendar(*WEEKLY, *LATER), "2026-11-03T14:00", "2026-11-03T16:00", of="2026-11-03T08:00:00+00:00")
    assert dates(after) == dates(calendar(*WEEKLY, *LATER))
    (one,) = appointments_of(after, WINDOW, BERLIN)
    lengths = [datetime.fromisoformat(d["ends_at"]) - datetime.fromisoformat(d["starts_at"]) for d in one["dates"]]
    assert lengths[0] == timedelta(hours=2)


def test_a_new_name_of_the_series_reaches_its_changed_dates_but_not_those_with_their_own() -> None:
    after = edited(calendar(*WEEKLY, *LATER, *RENAMED), {"key": "", "fields": {"title": "Jog"}})
    (one,) = appointments_of(after, WINDOW, BERLIN)
    assert one["title"] == "Jog"
    assert [date.get("title", "Jog") for date in one["dates"]] == ["Jog", "Jog", "Race", "Jog", "Jog"]


def test_one_date_moves_alone() -> None:
    fields = {"starts": "2026-10-13T12:00", "ends": "2026-10-13T13:00", "zone": "Europe/Berlin", "is_all_day": False}
    after = edited(calendar(*WEEKLY), {"key": "2026-10-13T07:00:00+00:00", "fields": fields})
    assert dates(after) == [
        "2026-10-06 09:00", "2026-10-13 12:00", "2026-10-27 09:00", "2026-11-03 09:00", "2026-11-10 09:00",
    ]  # fmt: skip
