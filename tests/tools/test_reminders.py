"""Reminders from the chat: in the user's own zone, found by words, taken back, one user at a time."""

from collections import defaultdict
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from cortex.base.errors import Conflict, ToolFailed
from cortex.base.user import User
from cortex.ports.schedule import Reminder, Reminders, Timings
from cortex.toolkit.words import NO_CHANGE
from tests.tool_world import World
from tests.tools.timed import MemoryReminders, PlainTimings


class DeadReminders(MemoryReminders):
    async def list(self) -> Sequence[Reminder]:
        raise ToolFailed("The reminders cannot be reached now.")


@pytest.fixture
def kept(world: World) -> dict[str, MemoryReminders]:
    rows: dict[str, MemoryReminders] = defaultdict(MemoryReminders)
    world.wired[Timings] = PlainTimings()
    world.bound[Reminders] = rows.__getitem__
    return rows


@pytest.mark.usefixtures("kept")
async def test_a_reminder_is_told_in_the_users_zone(world: World, ann: User, ben: User) -> None:
    text = await world.text(ann, "reminders_add", text=" water the plants ", when="tomorrow at 9")
    assert "water the plants" in text
    assert text.endswith("2026-11-21 (tomorrow) 09:00)")
    text = await world.text(ben, "reminders_add", text="turn the roast", when="in 20 minutes")
    assert text.endswith("2026-11-20 (today) 22:50)")
    text = await world.text(ann, "reminders_add", text="take the pill", when="every day at 7")
    assert text.endswith("07:00, every day at 07:00)")


async def test_a_rhythm_of_another_zone_names_it(world: World, ann: User, kept: dict[str, MemoryReminders]) -> None:
    await world.text(ann, "reminders_add", text="take the pill", when="every day at 7")
    moved = replace(ann, time_zone="America/New_York")
    text = await world.text(moved, "reminders_list")
    assert text.endswith("01:00, every day at 07:00, Europe/Berlin)")


async def test_a_repeated_step_adds_one(world: World, ann: User, kept: dict[str, MemoryReminders]) -> None:
    for _ in range(2):
        await world.run(world.ctx(ann, call_id="one"), "reminders_add", text="call mum", when="tomorrow at 9")
    assert len(kept[ann.id].rows) == 1


@pytest.mark.parametrize(
    ("text", "when", "says"),
    [
        ("", "tomorrow at 9", "1 to 500"),
        ("x" * 501, "tomorrow at 9", "1 to 500"),
        ("call", "yesterday at 9", "in the past"),
        ("call", "when pigs fly", "is no time"),
    ],
    ids=["empty", "long", "past", "unreadable"],
)
async def test_what_cannot_be_reminded_is_said(
    world: World, ann: User, kept: dict[str, MemoryReminders], text: str, when: str, says: str
) -> None:
    with pytest.raises(ToolFailed, match=says):
        await world.text(ann, "reminders_add", text=text, when=when)
    assert kept[ann.id].rows == {}


@pytest.mark.usefixtures("kept")
async def test_wrong_arguments_run_nothing(world: World, ann: User) -> None:
    with pytest.raises(ValidationError):
        await world.text(ann, "reminders_add", text="call mum")


@pytest.mark.usefixtures("kept")
async def test_the_next_one_is_listed_first_and_words_narrow(world: World, ann: User) -> None:
    assert "reminders_add" in await world.text(ann, "reminders_list")
    await world.text(ann, "reminders_add", text="call mum", when="tomorrow at 9")
    await world.text(ann, "reminders_add", text="turn the roast", when="in 20 minutes")
    assert [line[2:6] for line in (await world.text(ann, "reminders_list")).splitlines()] == ["turn", "call"]
    assert "roast" not in await world.text(ann, "reminders_list", query="Mum")
    assert "'dog'" in await world.text(ann, "reminders_list", query="dog")


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("words", ["roast", "Turn the roast", "the roast", "roast 22:50"])
async def test_a_reminder_is_removed_by_its_words(world: World, ben: User, words: str) -> None:
    await world.text(ben, "reminders_add", text="turn the roast", when="in 20 minutes")
    await world.text(ben, "reminders_add", text="call mum", when="tomorrow at 9")
    await world.text(ben, "reminders_remove", reminder=words)
    assert "mum" in await world.text(ben, "reminders_list")
    assert "roast" not in await world.text(ben, "reminders_list")


@pytest.mark.usefixtures("kept")
async def test_two_that_fit_are_named_instead_of_guessed(world: World, ann: User) -> None:
    for hour in (8, 9):
        await world.text(ann, "reminders_add", text="feed the cat", when=f"tomorrow at {hour}")
    with pytest.raises(ToolFailed, match=r"2 reminders fit 'cat'.*08:00.*09:00"):
        await world.text(ann, "reminders_remove", reminder="cat")
    for words in ("dog", " "):
        with pytest.raises(ToolFailed):
            await world.text(ann, "reminders_remove", reminder=words)


async def test_each_step_can_be_taken_back(world: World, ann: User, kept: dict[str, MemoryReminders]) -> None:
    _, added = await world.noted(ann, "reminders_add", text="call mum", when="tomorrow at 9")
    _, removed = await world.noted(ann, "reminders_remove", reminder="call mum")
    assert await world.undo(ann, "reminders", removed) == "Put 1 reminder back."
    await world.text(ann, "reminders_add", text="call dad", when="tomorrow at 10")
    text, cleared = await world.noted(ann, "reminders_clear")
    assert (text, kept[ann.id].rows) == ("Removed 2 reminders.", {})
    text, cleared = await world.undo_twice(ann, "reminders", cleared)
    assert (text, kept[ann.id].rows) == ("Removed 2 reminders again.", {})
    assert await world.undo(ann, "reminders", cleared) == "Put 2 reminders back."
    text, added = await world.undo_twice(ann, "reminders", added)
    assert text == "Put 1 reminder back."
    await world.undo(ann, "reminders", added)
    assert [row.text for row in kept[ann.id].rows.values()] == ["call dad"]
    assert await world.text(ann, "reminders_clear") == "Removed 1 reminder."
    nothing = await world.run(world.ctx(ann), "reminders_clear")
    assert ("no reminder" in nothing.text, nothing.words) == (True, NO_CHANGE), "the line must not say that it deleted"


async def test_what_changed_since_is_left(world: World, ann: User, kept: dict[str, MemoryReminders]) -> None:
    _, note = await world.noted(ann, "reminders_add", text="call mum", when="tomorrow at 9")
    rows = kept[ann.id].rows
    rows[note.target] = replace(rows[note.target], version=2)
    with pytest.raises(Conflict):
        await world.undo(ann, "reminders", note)
    assert len(rows) == 1


@pytest.mark.usefixtures("kept")
async def test_words_from_outside_stay_marked(world: World, ann: User) -> None:
    arguments = {"text": "read on a page", "when": "tomorrow at 9"}
    await world.run(world.ctx(ann, is_tainted=True), "reminders_add", **arguments)
    assert (await world.run(world.ctx(ann), "reminders_list")).is_tainted
    assert (await world.run(world.ctx(ann), "reminders_remove", reminder="page")).is_tainted
    await world.text(ann, "reminders_add", text="my own", when="tomorrow at 9")
    assert not (await world.run(world.ctx(ann), "reminders_list")).is_tainted


async def test_another_users_reminders_are_out_of_reach(
    world: World, ann: User, ben: User, kept: dict[str, MemoryReminders]
) -> None:
    _, note = await world.noted(ann, "reminders_add", text="ann's secret", when="tomorrow at 9")
    assert "secret" not in await world.text(ben, "reminders_list")
    assert "no reminder" in await world.text(ben, "reminders_clear")
    with pytest.raises(ToolFailed):
        await world.text(ben, "reminders_remove", reminder=note.target)
    with pytest.raises(Conflict):
        await world.undo(ben, "reminders", note)
    assert len(kept[ann.id].rows) == 1


async def test_reminders_that_cannot_be_reached_are_no_silent_success(world: World, ann: User) -> None:
    world.wired |= {Timings: PlainTimings(), Reminders: DeadReminders()}
    for name in ("reminders_list", "reminders_clear"):
        with pytest.raises(ToolFailed, match="cannot be reached"):
            await world.text(ann, name)
