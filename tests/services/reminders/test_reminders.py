"""Reminders over a real database: said in words, told once when due, heard, put off, taken away and brought back."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.errors import Conflict, NotFound, ToolFailed, UserError
from cortex.base.events import Event
from cortex.base.user import User
from cortex.engine.hub import LocalHub
from cortex.ports.schedule import Timing
from cortex.schedule.reading import Reader
from cortex.services.notifier import PageOnlyNotifier, wake
from cortex.services.reminders.due import DueReminders, Waking
from cortex.services.reminders.reminders import REPEATS_S, TOLD_MOST, ReminderRow, RemindersService, Snooze
from cortex.storage.accounts import AccountsRepository
from cortex.storage.notices import NoticeRow, NoticesRepository
from tests.databases import house_settings
from tests.still_clock import StillClock

BERLIN = "Europe/Berlin"
BREAD = "take the bread out"


class PageNotifier(PageOnlyNotifier):
    """Tells on the page alone."""

    def __init__(self, hub: LocalHub) -> None:
        self.hub = hub

    def wake(self, user_id: str = "") -> None:
        wake(self.hub, user_id)


class HeardHub(LocalHub):
    """Notes whose pages were told to look."""

    def __init__(self) -> None:
        super().__init__()
        self.rung: list[str] = []

    def announce(self, conversation_id: str, events: Sequence[Event] = ()) -> None:
        super().announce(conversation_id, events)
        if conversation_id.startswith("notices:"):
            self.rung.append(conversation_id.removeprefix("notices:"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One person's reminders, the timer's side of them, and what was told."""

    reminders: RemindersService
    due: DueReminders
    ann: User
    ben: User
    clock: StillClock
    rung: list[str]

    async def notices(self) -> list[NoticeRow]:
        return list(await self.reminders.runtime.db.repository(NoticesRepository, self.ann.id).list())

    async def fire_due(self) -> int:
        """Tell all that is due now, as the alarm clock does; how many were told."""
        return sum([await self.due.tell_one(one) for one in await self.due.armed(self.clock())])

    async def told(self) -> list[tuple[str, str]]:
        """Title and text of what was told, the oldest first; replaced ones are in no list."""
        return [(row.title, row.text) for row in reversed(await self.notices())]


def waking(row: ReminderRow) -> Waking:
    assert row.wakes_at
    return Waking(id=row.id, owner_id=row.owner_id, next_at=row.wakes_at)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    clock = StillClock(datetime(2026, 11, 20, 9, 0, tzinfo=UTC))  # a Friday, 10:00 in Berlin
    async with Cortex.at_rest(house_settings(tmp_path), clock=clock) as cortex:
        rows = [
            await cortex.runtime.db.repository(AccountsRepository).add(name, name, "member", None, BERLIN)
            for name in ("ann", "ben")
        ]
        ann, ben = (User(id=row.id, name=row.name, rank="member", time_zone=BERLIN) for row in rows)
        hub = HeardHub()
        runtime = replace(cortex.runtime, hub=hub)
        service = RemindersService(runtime=runtime, timings=Reader())
        due = DueReminders(runtime=runtime, timings=Reader(), notifier=PageNotifier(hub))
        yield Desk(reminders=service, due=due, ann=ann, ben=ben, clock=clock, rung=hub.rung)


# --- saying it


@pytest.mark.parametrize(
    ("said", "text", "words"),
    [
        ("take the bread out in 20 minutes", BREAD, "once on Friday 2026-11-20 at 10:20"),
        ("Remind me in 20 minutes to take the bread out", BREAD, "once on Friday 2026-11-20 at 10:20"),
        ("tomorrow call mum at 9", "call mum", "once on Saturday 2026-11-21 at 09:00"),
        ("read chapter 5 tomorrow", "read chapter 5", "once on Saturday 2026-11-21 at 09:00"),
        ("dentist, Monday 14:30", "dentist", "once on Monday 2026-11-23 at 14:30"),
        ("every friday at 18:00 water the plants", "water the plants", "every Friday at 18:00"),
        ("send the card 24 December", "send the card", "once on Thursday 2026-12-24 at 09:00"),
    ],
)
async def test_a_sentence_is_parted_into_what_and_when(desk: Desk, said: str, text: str, words: str) -> None:
    reading = desk.reminders.read(desk.ann, said)
    assert (reading.text, reading.timing.words) == (text, words)
    assert reading.times[0] > desk.clock()


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("", "Enter what to remind you of"),
        ("remind me", "Enter what to remind you of"),
        ("call mum", "no time in the future"),
        ("tomorrow at 9", "only a time"),
        ("call mum on 2020-01-01 at 9", "has passed"),
        ("x" * 600 + " tomorrow", "500 characters"),
        ("so " * 400 + "tomorrow", "too long"),
    ],
    ids=["empty", "no text", "no time", "time alone", "past", "long word", "long"],
)
async def test_what_lacks_a_part_says_which(desk: Desk, said: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as refused:
        await desk.reminders.add(desk.ann, said)
    assert refused.value.field == "words"
    assert (await desk.reminders.listing(desk.ann)).next == []


async def test_the_page_has_what_is_next_what_repeats_and_what_is_over(desk: Desk) -> None:
    await desk.reminders.add(desk.ann, "stretch every day at 12")
    await desk.reminders.add(desk.ann, "call mum tomorrow at 9")
    bread = await desk.reminders.add(desk.ann, "take the bread out in 20 minutes")
    listing = await desk.reminders.listing(desk.ann)
    assert [row.text for row in listing.next] == [BREAD, "call mum"]
    assert [row.text for row in listing.repeating] == ["stretch"]
    desk.clock.forward(minutes=20)
    await desk.fire_due()
    assert [row.text for row in (await desk.reminders.listing(desk.ann)).due] == [BREAD]
    await desk.reminders.acknowledge(desk.ann.id, bread.id)
    listing = await desk.reminders.listing(desk.ann, query="bread")
    assert ([row.text for row in listing.past], listing.due, listing.next) == ([BREAD], [], [])


async def test_nobody_sees_or_moves_anothers(desk: Desk) -> None:
    mine = await desk.reminders.add(desk.ann, "call mum tomorrow at 9")
    assert (await desk.reminders.listing(desk.ben)).next == []
    with pytest.raises(NotFound):
        await desk.reminders.acknowledge(desk.ben.id, mine.id)
    with pytest.raises(NotFound):
        await desk.reminders.change(desk.ben, mine.id, mine.version, text="mine", when="")
    assert await desk.reminders.remove(desk.ben.id, [mine.id]) == 0
    assert await desk.reminders.get(desk.ann, mine.id) == mine


# --- being due


async def test_it_is_told_once_when_due(desk: Desk) -> None:
    row = await desk.reminders.add(desk.ann, "take the bread out in 20 minutes")
    assert await desk.fire_due() == 0
    desk.clock.forward(minutes=20)
    assert await desk.fire_due() == 1
    assert await desk.fire_due() == 0
    assert not await desk.due.tell_one(waking(row))
    (notice,) = await desk.notices()
    assert (notice.title, "10:20" in notice.text) == (BREAD, True)
    assert (notice.kind, notice.actions, notice.subject_id) == ("reminder", ("ack", "snooze"), row.id)


async def test_two_alarms_at_once_tell_it_once(desk: Desk) -> None:
    row = await desk.reminders.add(desk.ann, "take the bread out in 20 minutes")
    desk.clock.forward(minutes=20)
    told = await asyncio.gather(*(desk.due.tell_one(waking(row)) for _ in range(6)))
    assert sorted(told) == [False] * 5 + [True]
    assert len(await desk.notices()) == 1


async def test_what_was_due_while_cortex_was_down_is_told_at_the_start_as_late(desk: Desk) -> None:
    await desk.reminders.add(desk.ann, "take the bread out in 20 minutes")
    await desk.reminders.add(desk.ann, "stretch every day at 12")
    desk.clock.forward(days=2, minutes=200)
    assert await desk.fire_due() == 2
    told = dict(await desk.told())
    assert told.keys() == {"stretch", BREAD}
    assert ("2026-11-20 at 12:00" in told["stretch"], "2026-11-20 at 10:20" in told[BREAD]) == (True, True)
    assert all(text.startswith("Late:") for text in told.values())
    (stretch,) = (await desk.reminders.listing(desk.ann)).repeating
    assert stretch.next_at == datetime(2026, 11, 23, 11, 0, tzinfo=UTC), "the days between are not caught up"


async def test_a_repeating_one_moves_on_and_the_later_notice_takes_the_place(desk: Desk) -> None:
    row = await desk.reminders.add(desk.ann, "stretch every day at 12")
    for _ in range(3):
        desk.clock.forward(days=1)
        assert await desk.fire_due() == 1
    ((title, text),) = await desk.told()
    assert (title, text.startswith("Late:"), "2026-11-22 at 12:00" in text) == ("stretch", True, True)
    await desk.reminders.acknowledge(desk.ann.id, row.id)
    listing = await desk.reminders.listing(desk.ann)
    assert (listing.due, [one.id for one in listing.repeating]) == ([], [row.id])


async def test_it_comes_again_until_somebody_says_yes(desk: Desk) -> None:
    row = await desk.reminders.add(desk.ann, "take the pill in 20 minutes", repeat_s=REPEATS_S[0])
    desk.clock.forward(minutes=20)
    assert await desk.fire_due() == 1
    desk.clock.forward(minutes=4)
    assert await desk.fire_due() == 0
    desk.clock.forward(minutes=1)
    assert await desk.fire_due() == 1
    ((title, text),) = await desk.told()
    assert (title, text.startswith("Again:"), "10:20" in text) == ("take the pill", True, True)
    await desk.reminders.acknowledge(desk.ann.id, row.id)
    desk.clock.forward(minutes=60)
    assert await desk.fire_due() == 0
    assert [notice.acknowledged_at is None for notice in await desk.notices()] == [False]


async def test_nobody_is_rung_for_ever(desk: Desk) -> None:
    row = await desk.reminders.add(desk.ann, "take the pill in 20 minutes", repeat_s=REPEATS_S[0])
    desk.clock.forward(minutes=20)
    for _ in range(TOLD_MOST):
        assert await desk.fire_due() == 1
        desk.clock.forward(minutes=5)
    last = "Again, for the last time: it was due at 10:20. It stays under Reminders until you mark it done."
    assert await desk.told() == [("take the pill", last)]
    desk.clock.forward(days=3)
    assert await desk.fire_due() == 0
    (waits,) = (await desk.reminders.listing(desk.ann)).due
    assert (waits.told_count, waits.is_given_up) == (TOLD_MOST, True)
    await desk.reminders.snooze(desk.ann, row.id, "10min")
    desk.clock.forward(minutes=10)
    assert await desk.fire_due() == 1
    (begun_anew,) = (await desk.reminders.listing(desk.ann)).due
    assert (begun_anew.told_count, begun_anew.again_at) == (1, desk.clock() + timedelta(minutes=5))


async def test_a_text_from_outside_stays_marked(desk: Desk) -> None:
    timing = Timing(kind="at", expression="2026-11-20T09:20:00+00:00", time_zone=BERLIN, words="once")
    tool = desk.reminders.for_user(desk.ann.id)
    added = await tool.add("r1", "pay this invoice", timing, desk.clock() + timedelta(minutes=20), True)
    await desk.reminders.change(desk.ann, "r1", added.version, text="pay it", when="", repeat_s=300)
    desk.clock.forward(minutes=20)
    await desk.fire_due()
    assert [notice.is_tainted for notice in await desk.notices()] == [True]


# --- answers


@pytest.mark.parametrize(
    ("choice", "words", "until"),
    [
        ("10min", "", datetime(2026, 11, 20, 9, 30, tzinfo=UTC)),
        ("1h", "", datetime(2026, 11, 20, 10, 20, tzinfo=UTC)),
        ("morning", "", datetime(2026, 11, 21, 8, 0, tzinfo=UTC)),
        ("words", "Sunday at 15:00", datetime(2026, 11, 22, 14, 0, tzinfo=UTC)),
    ],
)
async def test_it_is_put_off_and_comes_back(desk: Desk, choice: Snooze, words: str, until: datetime) -> None:
    row = await desk.reminders.add(desk.ann, "take the bread out in 20 minutes")
    desk.clock.forward(minutes=20)
    await desk.fire_due()
    assert (await desk.reminders.snooze(desk.ann, row.id, choice, words)).again_at == until
    assert [one.id for one in (await desk.reminders.listing(desk.ann)).next] == [row.id]
    desk.clock.at = until
    assert await desk.fire_due() == 1
    assert [one.id for one in (await desk.reminders.listing(desk.ann)).due] == [row.id]


async def test_only_what_waits_can_be_put_off(desk: Desk) -> None:
    row = await desk.reminders.add(desk.ann, "take the bread out in 20 minutes")
    with pytest.raises(Conflict):
        await desk.reminders.snooze(desk.ann, row.id, "10min")
    desk.clock.forward(minutes=20)
    await desk.fire_due()
    for words in ("whenever", "every day at 9"):
        with pytest.raises(UserError):
            await desk.reminders.snooze(desk.ann, row.id, "words", words)


@pytest.mark.parametrize(("choice", "state"), [("", "done"), ("10min", "snoozed"), ("in 3 hours", "snoozed")])
async def test_the_answer_from_a_notification_reaches_the_reminder(desk: Desk, choice: str, state: str) -> None:
    row = await desk.reminders.add(desk.ann, "take the bread out in 20 minutes")
    desk.clock.forward(minutes=20)
    await desk.fire_due()
    (notice,) = await desk.notices()
    await desk.reminders.answered(desk.ann.id, notice, choice)
    assert (await desk.reminders.get(desk.ann, row.id)).state == state
    assert [one.acknowledged_at is None for one in await desk.notices()] == [False]


# --- changing


async def test_text_alone_is_changed_and_the_time_stays(desk: Desk) -> None:
    row = await desk.reminders.add(desk.ann, "stretch every day at 12")
    changed = await desk.reminders.change(desk.ann, row.id, row.version, text="stretch well", when=row.words)
    assert (changed.text, changed.next_at, changed.expression) == ("stretch well", row.next_at, row.expression)
    moved = await desk.reminders.change(desk.ann, row.id, changed.version, text="stretch", when="every day at 13")
    assert moved.next_at == datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    with pytest.raises(Conflict):
        await desk.reminders.change(desk.ann, row.id, row.version, text="too late", when="")
    with pytest.raises(UserError, match="interval"):
        await desk.reminders.change(desk.ann, row.id, moved.version, text="stretch", when="", repeat_s=7)


async def test_one_that_is_over_needs_a_new_time(desk: Desk) -> None:
    row = await desk.reminders.add(desk.ann, "take the bread out in 20 minutes")
    desk.clock.forward(minutes=20)
    await desk.fire_due()
    over = await desk.reminders.acknowledge(desk.ann.id, row.id)
    with pytest.raises(UserError) as refused:
        await desk.reminders.change(desk.ann, row.id, over.version, text="bread", when=over.words)
    assert refused.value.field == "when"
    again = await desk.reminders.change(desk.ann, row.id, over.version, text="bread", when="in 5 minutes")
    assert (again.state, again.next_at) == ("planned", desk.clock() + timedelta(minutes=5))


async def test_removed_ones_are_not_told_and_come_back_due(desk: Desk) -> None:
    row = await desk.reminders.add(desk.ann, "take the bread out in 20 minutes")
    await desk.reminders.add(desk.ann, "stretch every day at 12")
    assert await desk.reminders.clear(desk.ann) == 2
    desk.clock.forward(minutes=30)
    assert await desk.fire_due() == 0
    assert not await desk.due.tell_one(waking(row))
    assert await desk.reminders.restore(desk.ann.id, [row.id]) == 1
    assert await desk.fire_due() == 1
    ((title, text),) = await desk.told()
    assert (title, text.startswith("Late:"), "10:20" in text) == (BREAD, True, True)
    assert await desk.reminders.restore_cleared(desk.ann) == 1
    assert [one.text for one in (await desk.reminders.listing(desk.ann)).repeating] == ["stretch"]


async def test_open_pages_are_told_to_look_again(desk: Desk) -> None:
    row = await desk.reminders.add(desk.ann, "take the bread out in 20 minutes")
    desk.clock.forward(minutes=20)
    await desk.fire_due()
    await desk.reminders.acknowledge(desk.ann.id, row.id)
    assert desk.rung == [desk.ann.id] * 3


async def test_the_tools_see_what_is_to_come_and_what_waits_for_an_answer(desk: Desk) -> None:
    tool = desk.reminders.for_user(desk.ann.id)
    row = await desk.reminders.add(desk.ann, "take the bread out in 20 minutes")
    await desk.reminders.add(desk.ann, "stretch every day at 12")
    assert [one.text for one in await tool.list()] == [BREAD, "stretch"]
    desk.clock.forward(minutes=20)
    await desk.fire_due()
    assert [one.text for one in await tool.list()] == [BREAD, "stretch"], "it stands under Now until it is answered"
    await desk.reminders.acknowledge(desk.ann.id, row.id)
    assert [one.text for one in await tool.list()] == ["stretch"]
    assert await tool.remove([row.id]) == 1
    assert await tool.restore([row.id]) == 1
    with pytest.raises(ToolFailed):
        desk.reminders.timings.read("never", desk.clock(), BERLIN)


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("yesterday", -1),
        ("today", 0),
        ("tomorrow", 1),
        ("", None),
    ],
)
async def test_a_day_is_read_from_words(desk: Desk, words: str, day: int | None) -> None:
    today = desk.clock().date()
    read = desk.reminders.read_day(desk.ann, words)
    assert read == (None if day is None else today + timedelta(days=day))


async def test_a_day_behind_us_is_the_last_one_of_its_name(desk: Desk) -> None:
    today = desk.clock().date()
    for back in range(1, 7):
        day = today - timedelta(days=back)
        assert desk.reminders.read_day(desk.ann, f"{day:%A}", is_past=True) == day
    day = today - timedelta(days=20)
    assert desk.reminders.read_day(desk.ann, f"{day.day} {day:%b}", is_past=True) == day
    assert desk.reminders.read_day(desk.ann, f"{day.day} {day:%b}") == day.replace(year=day.year + 1)
    with pytest.raises(UserError) as refused:
        desk.reminders.read_day(desk.ann, "soon", "since", is_past=True)
    assert refused.value.field == "since"


@pytest.mark.parametrize(
    ("words", "clock"),
    [("22:00", "22:00"), ("7:30", "07:30"), ("10 pm", "22:00"), ("half past nine in the evening", "21:30"), (" ", "")],
)
async def test_a_time_of_day_is_read_from_words(desk: Desk, words: str, clock: str) -> None:
    assert desk.reminders.read_clock(words, "quiet") == clock


@pytest.mark.parametrize("words", ["late", "every day at 9", "tomorrow at 9", "in 2 hours", "9 and 10 pm"])
async def test_what_is_no_time_of_day_is_refused(desk: Desk, words: str) -> None:
    with pytest.raises(UserError, match="22:00"):
        desk.reminders.read_clock(words, "quiet")
