"""Scratchpad, the person's notes and the assistant's: the same page rules in each place."""

from dataclasses import dataclass, field

import pytest

from cortex.base.errors import Conflict, ToolFailed, UserError
from cortex.base.user import User
from cortex.storage.home import Home, HomeFile
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.page import KEEP_CHARACTERS, Page, mark_of
from tests.tool_world import World

BOTH = pytest.mark.parametrize(("category", "prefix"), [("scratchpad", "scratch"), ("notes", "agent_notes")])


@BOTH
async def test_writing_adding_reading_and_emptying(world: World, ann: User, category: str, prefix: str) -> None:
    assert "is empty" in await world.text(ann, f"{prefix}_read")
    await world.text(ann, f"{prefix}_write", text="one")
    await world.text(ann, f"{prefix}_append", text="two\n")
    assert await world.text(ann, f"{prefix}_read") == "one\ntwo\n"
    assert "is empty now" in await world.text(ann, f"{prefix}_clear")
    assert "was empty already" in await world.text(ann, f"{prefix}_clear")


@BOTH
async def test_each_change_can_be_taken_back(world: World, ann: User, category: str, prefix: str) -> None:
    _, first = await world.noted(ann, f"{prefix}_append", text="one")
    _, added = await world.noted(ann, f"{prefix}_append", text="two")
    _, again = await world.undo_twice(ann, category, added)
    assert await world.text(ann, f"{prefix}_read") == "one\ntwo\n"
    await world.undo(ann, category, again)
    assert await world.text(ann, f"{prefix}_read") == "one\n"
    _, cleared = await world.noted(ann, f"{prefix}_clear")
    _, again = await world.undo_twice(ann, category, cleared)
    assert "is empty" in await world.text(ann, f"{prefix}_read")
    await world.undo(ann, category, again)
    assert await world.text(ann, f"{prefix}_read") == "one\n"
    await world.undo(ann, category, first)
    assert "is empty" in await world.text(ann, f"{prefix}_read")


@BOTH
async def test_what_changed_since_is_not_taken_back(world: World, ann: User, category: str, prefix: str) -> None:
    _, note = await world.noted(ann, f"{prefix}_write", text="one")
    await world.text(ann, f"{prefix}_append", text="two")
    with pytest.raises(Conflict):
        await world.undo(ann, category, note)
    assert await world.text(ann, f"{prefix}_read") == "one\ntwo\n"


@BOTH
async def test_words_from_outside_stay_marked_until_written_anew(
    world: World, ann: User, category: str, prefix: str
) -> None:
    await world.text(ann, f"{prefix}_write", text="mine")
    assert not (await world.run(world.ctx(ann), f"{prefix}_read")).is_tainted
    ctx = world.ctx(ann, is_tainted=True)
    await world.run(ctx, f"{prefix}_append", text="from a page")
    await world.text(ann, f"{prefix}_append", text="mine again")
    assert (await world.run(world.ctx(ann), f"{prefix}_read")).is_tainted
    await world.text(ann, f"{prefix}_write", text="all mine")
    assert not (await world.run(world.ctx(ann), f"{prefix}_read")).is_tainted


@BOTH
async def test_taking_back_a_clean_write_brings_the_mark_back(
    world: World, ann: User, category: str, prefix: str
) -> None:
    await world.run(world.ctx(ann, is_tainted=True), f"{prefix}_write", text="from a page")
    _, note = await world.noted(ann, f"{prefix}_write", text="mine")
    await world.undo(ann, category, note)
    made = await world.run(world.ctx(ann), f"{prefix}_read")
    assert (made.text, made.is_tainted) == ("from a page\n", True)


async def test_a_note_is_made_added_to_in_any_case_and_read(world: World, ann: User) -> None:
    assert "no notes yet" in await world.text(ann, "notes_read")
    await world.text(ann, "notes_append", text="roses cut", note="Garden")
    assert "Garden" in await world.text(ann, "notes_append", text="seeds in", note=" garden ")
    assert await world.text(ann, "notes_read", note="GARDEN") == "# Garden\n\nroses cut\nseeds in\n"
    await world.text(ann, "notes_append", text="call Ben")
    assert (await world.text(ann, "notes_read")).splitlines()[1:] == ["- Notes", "- Garden"]


async def test_what_was_added_to_a_note_can_be_undone(world: World, ann: User) -> None:
    _, first = await world.noted(ann, "notes_append", text="one", note="Car")
    _, second = await world.noted(ann, "notes_append", text="two", note="Car")
    with pytest.raises(Conflict):
        await world.undo(ann, "scratchpad", first)
    await world.undo(ann, "scratchpad", second)
    assert await world.text(ann, "notes_read", note="Car") == "# Car\n\none\n"
    await world.undo(ann, "scratchpad", first)
    assert "no notes yet" in await world.text(ann, "notes_read")


@pytest.mark.parametrize("name", ["", "  ", "a/b", "../agent_notes/chat", ".hidden", "x" * 81, "a\\b", "a\0b"])
async def test_a_name_that_is_none_writes_nothing(world: World, ann: User, name: str) -> None:
    with pytest.raises((ToolFailed, UserError)):
        await world.text(ann, "notes_append", text="one", note=name)
    assert "no notes yet" in await world.text(ann, "notes_read")


async def test_a_note_that_is_not_there_is_not_read(world: World, ann: User, ben: User) -> None:
    await world.text(ben, "notes_append", text="his", note="Car")
    with pytest.raises(ToolFailed, match="There is no note “Car”"):
        await world.text(ann, "notes_read", note="Car")


async def test_a_note_with_words_from_outside_is_marked_with_its_name(world: World, ann: User) -> None:
    await world.text(ann, "notes_append", text="mine", note="Car")
    assert not (await world.run(world.ctx(ann), "notes_read")).is_tainted
    await world.run(world.ctx(ann, is_tainted=True), "notes_append", text="theirs", note="Ads")
    assert (await world.run(world.ctx(ann), "notes_read", note="Ads")).is_tainted
    assert (await world.run(world.ctx(ann), "notes_read")).is_tainted
    assert not (await world.run(world.ctx(ann), "notes_read", note="Car")).is_tainted


@dataclass
class Watched:
    """A home that notes with each write whether the page is marked: what a kill just then would leave."""

    home: Home
    marks: PreferencesRepository
    seen: list[bool] = field(default_factory=list)

    async def read(self, path: str) -> HomeFile:
        return await self.home.read(path)

    async def write(self, path: str, text: str, expected_version: str | None = None) -> str:
        made = await self.home.write(path, text, expected_version)
        self.seen.append(bool(await self.marks.get(mark_of(path), False)))
        return made

    async def remove(self, path: str, expected_version: str | None = None) -> object:
        return await self.home.remove(path, expected_version)


@BOTH
async def test_words_from_outside_come_back_with_their_mark(
    world: World, ann: User, category: str, prefix: str
) -> None:
    await world.run(world.ctx(ann, is_tainted=True), f"{prefix}_write", text="buy now")
    _, note = await world.noted(ann, f"{prefix}_write", text="mine")
    marks = world.db.repository(PreferencesRepository, ann.id)
    texts = Watched(world.homes.home_of(ann.id), marks)
    page = Page(ctx=world.ctx(ann), texts=texts, marks=marks, path=note.target, title="page")
    await page.undo(note.before, note.expected)
    assert texts.seen == [True]
    assert (await world.run(world.ctx(ann), f"{prefix}_read")).is_tainted


@BOTH
@pytest.mark.parametrize("text", ["", "  \n", "x" * (KEEP_CHARACTERS + 1)], ids=["empty", "blank", "long"])
async def test_text_that_cannot_be_kept_is_refused(
    world: World, ann: User, category: str, prefix: str, text: str
) -> None:
    with pytest.raises(ToolFailed):
        await world.text(ann, f"{prefix}_write", text=text)


@BOTH
async def test_a_long_page_is_read_in_stretches(world: World, ann: User, category: str, prefix: str) -> None:
    await world.text(ann, f"{prefix}_write", text="x" * 6_000 + "the end")
    assert "offset=6000" in await world.text(ann, f"{prefix}_read")
    assert await world.text(ann, f"{prefix}_read", offset=6_000) == "the end\n"


@BOTH
async def test_another_users_page_is_out_of_reach(
    world: World, ann: User, ben: User, category: str, prefix: str
) -> None:
    _, note = await world.noted(ann, f"{prefix}_write", text="ann's")
    assert "ann's" not in await world.text(ben, f"{prefix}_read")
    with pytest.raises(Conflict):
        await world.undo(ben, category, note)
    await world.text(ben, f"{prefix}_write", text="ben's")
    assert await world.text(ann, f"{prefix}_read") == "ann's\n"


async def test_each_role_has_its_own_notes(world: World, ann: User) -> None:
    await world.run(world.ctx(ann, role="coder"), "agent_notes_write", text="likes tabs")
    assert "tabs" not in (await world.run(world.ctx(ann, role="research"), "agent_notes_read")).text
    assert "tabs" in (await world.run(world.ctx(ann, role="coder"), "agent_notes_read")).text


async def test_the_scratchpad_is_a_file_that_a_person_can_open(world: World, ann: User) -> None:
    await world.text(ann, "scratch_write", text="door code 4417")
    assert (world.homes.root / ann.id / "scratchpad.md").read_text() == "door code 4417\n"
