"""Calendars from the chat: which calendar, which date and which time words mean, and what is free."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cortex.base.errors import ToolFailed
from cortex.base.user import User
from cortex.base.zone import moment
from cortex.ports.calendars import CalendarName, Calendars, Details, Occasion
from cortex.ports.schedule import Timings
from cortex.services.timings import LazyReader
from cortex.toolkit.appointments import rhythm_of, rule_of
from cortex.toolkit.occasions import MeantTime, meant, moment_of, named, writable
from tests.tool_world import World

NOW = datetime(2026, 11, 20, 22, 30, tzinfo=UTC)  # in Berlin Friday, 23:30
OWN = CalendarName(id="own", name="Home", access="write")
READ_ONLY = CalendarName(id="holidays", name="Holidays", access="read")
BENS = CalendarName(id="bens", name="Home", owner="Ben", access="read")


def on(day: int, hour: int = 9, *, id: str = "", title: str = "Piano", calendar: CalendarName = OWN) -> Occasion:
    """An hour of November 2026."""
    begins = datetime(2026, 11, day, hour, tzinfo=UTC)
    ends = begins + timedelta(hours=1)
    return Occasion(id=id or title.lower(), key="", calendar=calendar, starts_at=begins, ends_at=ends, title=title)


@dataclass
class HeldCalendars:
    """What somebody sees: these calendars with these dates."""

    calendars: Sequence[CalendarName] = (OWN, READ_ONLY, BENS)
    dates: list[Occasion] = field(default_factory=list)

    async def names(self) -> Sequence[CalendarName]:
        return self.calendars

    async def between(self, since: datetime, until: datetime, *, words: str = "") -> Sequence[Occasion]:
        found = [one for one in self.dates if one.starts_at < until and one.ends_at > since]
        return sorted((one for one in found if words.casefold() in one.title.casefold()), key=lambda one: one.starts_at)

    async def details(self, occasion: Occasion) -> Details:
        return Details(is_foreign=bool(occasion.calendar.owner))


@pytest.fixture
def held(world: World) -> HeldCalendars:
    calendars = HeldCalendars()
    world.wired |= {Calendars: calendars, Timings: LazyReader()}
    return calendars


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("11:00", "2026-11-21 11:00"),
        ("23:45", "2026-11-20 23:45"),
        ("at 9", "2026-11-21 09:00"),
        ("at 2", "2026-11-21 14:00"),
        ("02:30", "2026-11-21 02:30"),
        ("12 am", "2026-11-21 00:00"),
        ("12 pm", "2026-11-21 12:00"),
        ("7:15 pm", "2026-11-21 19:15"),
        ("tomorrow at 9", "2026-11-21 09:00"),
        ("2026-12-01T16:00", "2026-12-01 16:00"),
        ("Friday at 10", "2026-11-27 10:00"),
    ],
)
async def test_a_time_is_meant_by_the_clock_of_the_user(
    world: World, held: HeldCalendars, ann: User, words: str, meant: str
) -> None:
    found = moment_of(world.ctx(ann), words)
    assert (moment(found.at, "Europe/Berlin"), found.is_day) == (meant, False)


async def test_a_time_alone_is_one_of_the_day_that_is_spoken_of(world: World, held: HeldCalendars, ann: User) -> None:
    found = moment_of(world.ctx(ann), "11:00", on=date(2026, 12, 4))
    assert moment(found.at, "Europe/Berlin") == "2026-12-04 11:00"
    with pytest.raises(ToolFailed, match="in the past"):
        moment_of(world.ctx(ann), "11:00", on=date(2026, 11, 20))


@pytest.mark.parametrize(
    "words", ["2026-11-19 9:00", "every Tuesday at 9", "25:00", "soon", "2026-11-19", "2026-13-01"]
)
async def test_what_is_past_or_no_time_is_refused(world: World, held: HeldCalendars, ann: User, words: str) -> None:
    with pytest.raises(ToolFailed):
        moment_of(world.ctx(ann), words)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("today", "2026-11-20"),
        ("2026-11-20", "2026-11-20"),
        ("tomorrow", "2026-11-21"),
        ("Friday", "2026-11-27"),
        ("24 December", "2026-12-24"),
        ("next week", "2026-11-23"),
        ("in 3 days", "2026-11-23"),
    ],
)
async def test_a_day_alone_is_a_whole_day_which_may_be_today(
    world: World, held: HeldCalendars, ann: User, words: str, meant: str
) -> None:
    midnight = datetime.fromisoformat(f"{meant}T00:00").replace(tzinfo=ZoneInfo("Europe/Berlin"))
    assert moment_of(world.ctx(ann), words) == MeantTime(midnight, is_day=True)


@pytest.mark.parametrize("words", ["tomorrow night", "tomorrow morning", "noon", "in 3 hours", "Friday at 5"])
async def test_a_part_of_the_day_is_no_whole_day(world: World, held: HeldCalendars, ann: User, words: str) -> None:
    assert not moment_of(world.ctx(ann), words).is_day


async def test_of_a_series_the_next_date_is_meant(world: World, held: HeldCalendars, ann: User) -> None:
    held.dates = [on(20), on(27), on(25, title="Dentist")]
    ctx = world.ctx(ann)
    assert (await meant(ctx, "piano", None)).starts_at.day == 27, "the one of today is over"
    assert (await meant(ctx, "piano", date(2026, 11, 20))).starts_at.day == 20


async def test_ones_own_is_meant_before_anothers(world: World, held: HeldCalendars, ann: User) -> None:
    held.dates = [on(23, id="theirs", calendar=BENS), on(27, id="own")]
    ctx = world.ctx(ann)
    assert (await meant(ctx, "piano", None)).id == "own"
    held.dates.append(on(28, id="other"))
    with pytest.raises(ToolFailed, match="Several fit") as caught:
        await meant(ctx, "piano", None)
    assert caught.value.is_tainted
    held.dates = []
    with pytest.raises(ToolFailed, match="to come is called 'piano'"):
        await meant(ctx, "piano", None)


async def test_a_calendar_is_found_by_its_name_or_its_person(held: HeldCalendars) -> None:
    names = held.calendars
    assert [one.id for one in named(names, "ben")] == ["bens"]
    assert [one.id for one in named(names, "home (ben)")] == ["bens"]
    assert [one.id for one in named(names, "holi")] == ["holidays"]
    assert writable(names, "").id == "own"
    for wanted in ("holidays", "ben"):
        with pytest.raises(ToolFailed, match="may not write"):
            writable(names, wanted)
    with pytest.raises(ToolFailed, match="There are: Home, Holidays, Home"):
        named(names, "work")


async def test_all_who_are_asked_must_be_free(world: World, held: HeldCalendars, ann: User) -> None:
    held.dates = [on(23, 8), on(23, 11, calendar=BENS)]
    given = {"first": "2026-11-23", "days": 1, "from_hour": 9, "to_hour": 13}
    alone = await world.text(ann, "calendar_find", **given)
    assert alone == "Free:\n- Mon 23 Nov 2026 10:00 to 13:00"
    both = await world.text(ann, "calendar_find", **given, people="Ben")
    assert both == "Free:\n- Mon 23 Nov 2026 10:00 to 12:00"


async def test_what_others_wrote_taints_and_ones_own_does_not(world: World, held: HeldCalendars, ann: User) -> None:
    held.dates = [on(23)]
    assert not (await world.run(world.ctx(ann), "calendar_list")).is_tainted
    held.dates.append(on(24, calendar=BENS))
    assert (await world.run(world.ctx(ann), "calendar_list")).is_tainted


async def test_without_a_calendar_it_says_where_to_get_one(world: World, held: HeldCalendars, ann: User) -> None:
    held.calendars = ()
    with pytest.raises(ToolFailed, match="page Calendar"):
        await world.text(ann, "calendar_list")


async def test_a_series_ends_with_its_last_day_in_the_zone_of_the_user(world: World, ann: User) -> None:
    ctx, begins = world.ctx(ann), datetime(2026, 12, 1, 8, tzinfo=UTC)
    rules = {
        "every other week until 2026-12-15": "FREQ=WEEKLY;INTERVAL=2;UNTIL=20261215T225959Z",
        "Every 3 months": "FREQ=MONTHLY;INTERVAL=3",
        "yearly": "FREQ=YEARLY",
    }
    for words, rule in rules.items():
        rhythm = rhythm_of(words)
        assert rhythm is not None
        assert rule_of(ctx, rhythm, begins, whole=False) == rule
    daily = rhythm_of("daily until 2026-12-15")
    assert daily is not None
    assert rule_of(ctx, daily, begins, whole=True) == "FREQ=DAILY;UNTIL=20261215"
    early = rhythm_of("weekly until 2026-11-30")
    assert early is not None
    with pytest.raises(ToolFailed, match="before its first date"):
        rule_of(ctx, early, begins, whole=False)


@pytest.mark.parametrize("words", ["often", "every 0 weeks", "weekly until 2026-13-01", "every Tuesday"])
def test_what_is_no_rhythm_is_refused_with_how_to_say_it(words: str) -> None:
    with pytest.raises(ToolFailed, match="every 2 weeks"):
        rhythm_of(words)
    assert rhythm_of(" ") is None
