"""Journals from the chat: found by words, written, extended, disabled softly and brought back, one user at a time."""

from collections import defaultdict
from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from cortex.base.errors import Conflict, NotFound, ToolFailed
from cortex.base.user import User
from cortex.ports.aether import EntryChange, Journal, JournalEntry, Journals
from tests.plain_clients import MemoryJournals
from tests.tool_world import World

ENTRY = "The dahlias are in."


class DeadJournals(MemoryJournals):
    async def list(self) -> Sequence[Journal]:
        raise ToolFailed("The Aether server did not answer within 10 seconds.")

    async def entry(self, id: str) -> JournalEntry:
        raise ToolFailed("The Aether server did not answer within 10 seconds.")


@pytest.fixture
def kept(world: World) -> dict[str, MemoryJournals]:
    made: dict[str, MemoryJournals] = defaultdict(MemoryJournals)
    world.bound[Journals] = made.__getitem__
    return made


async def _frost(world: World, user: User) -> None:
    await world.text(user, "ae_journal_entry_create", text=ENTRY, journal="Garden", title="First frost")


async def _texts(kept: dict[str, MemoryJournals], user: User) -> list[str]:
    return [row.text for row in await kept[user.id].entries(None, "", None, None, 99)]


async def _titles(kept: dict[str, MemoryJournals], user: User) -> list[str]:
    return [row.title for row in await kept[user.id].entries(None, "", None, None, 99)]


@pytest.mark.usefixtures("kept")
async def test_an_entry_is_written_listed_and_read(world: World, ann: User) -> None:
    assert "ae_journal_entry_create" in await world.text(ann, "ae_journal_list")
    await _frost(world, ann)
    assert await world.text(ann, "ae_journal_list") == "- Garden (1 entry)"
    text = await world.text(ann, "ae_journal_entries_list")
    assert text.startswith("- First frost (id ")
    assert text.endswith(f"Garden, 2026-11-20 09:00): {ENTRY}")
    assert (await world.text(ann, "ae_journal_entry_read", entry="frost")).endswith(f"\n{ENTRY}")


async def test_a_repeated_step_writes_one(world: World, ann: User, kept: dict[str, MemoryJournals]) -> None:
    for _ in range(2):
        await world.run(world.ctx(ann, call_id="one"), "ae_journal_entry_create", text="a", journal="Garden")
    assert len(kept[ann.id].rows) == 1


async def test_an_entry_without_a_title_bears_the_users_day(
    world: World, ann: User, kept: dict[str, MemoryJournals]
) -> None:
    await world.text(ann, "ae_journal_entry_create", text="Slept well.")
    assert [(row.title, row.journal) for row in kept[ann.id].rows.values()] == [("2026-11-20", "Journal")]


@pytest.mark.parametrize("spoken", ["Garden", "garden", "my garden journal", "garden diary", ""])
async def test_a_journal_is_known_however_it_is_spoken(
    world: World, ann: User, kept: dict[str, MemoryJournals], spoken: str
) -> None:
    await _frost(world, ann)
    await world.text(ann, "ae_journal_entry_create", text="Snow.", journal=spoken)
    assert {row.journal for row in kept[ann.id].rows.values()} == {"Garden"}


@pytest.mark.usefixtures("kept")
async def test_which_journal_is_asked_when_there_are_several(world: World, ann: User) -> None:
    for name in ("Garden", "Work"):
        await world.text(ann, "ae_journal_entry_create", text="a", journal=name)
    with pytest.raises(ToolFailed, match="Say which journal: Garden, Work"):
        await world.text(ann, "ae_journal_entry_create", text="b")
    with pytest.raises(ToolFailed, match=r"no journal 'boat'\. Journals: Garden, Work"):
        await world.text(ann, "ae_journal_search", query="a", journal="boat")


@pytest.mark.usefixtures("kept")
async def test_entries_are_found_by_words_journal_and_day(world: World, ann: User) -> None:
    await _frost(world, ann)
    long = "Nothing of note happened here, " * 5 + "but the Otter came back." + " And so on." * 30
    await world.text(ann, "ae_journal_entry_create", text=long, journal="River", title="Walk")
    text = await world.text(ann, "ae_journal_search", query="otter")
    assert text.count("\n") == 0
    assert "..." in text
    assert "Otter came back" in text
    assert "Walk" not in await world.text(ann, "ae_journal_search", query="the", journal="garden")
    assert "No entry" in await world.text(ann, "ae_journal_entries_list", since="2026-11-21")
    assert (await world.text(ann, "ae_journal_entries_list", count=1)).count("(id ") == 1
    with pytest.raises(ToolFailed):
        await world.text(ann, "ae_journal_search", query=" ")


@pytest.mark.usefixtures("kept")
async def test_a_long_entry_is_read_in_stretches(world: World, ann: User) -> None:
    await world.text(ann, "ae_journal_entry_create", text="x" * 7_000 + "the end", title="Long")
    assert "offset=6000" in await world.text(ann, "ae_journal_entry_read", entry="Long")
    assert (await world.text(ann, "ae_journal_entry_read", entry="Long", offset=6_990)).endswith("the end")


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("ae_journal_entry_update", {"text": "All lost."}, "All lost."),
        ("ae_journal_entry_append", {"text": "And watered."}, f"{ENTRY}\nAnd watered."),
        ("ae_journal_entry_prepend", {"text": "Cold night."}, f"Cold night.\n{ENTRY}"),
    ],
)
async def test_an_entry_is_changed_and_put_back(
    world: World, ann: User, kept: dict[str, MemoryJournals], name: str, arguments: dict[str, str], text: str
) -> None:
    await _frost(world, ann)
    _, note = await world.noted(ann, name, entry="frost", **arguments)
    assert await _texts(kept, ann) == [text]
    await world.undo(ann, "aether", note)
    assert await _texts(kept, ann) == [ENTRY]


@pytest.mark.usefixtures("kept")
async def test_a_title_is_changed_and_put_back(world: World, ann: User, kept: dict[str, MemoryJournals]) -> None:
    await _frost(world, ann)
    _, note = await world.noted(ann, "ae_journal_entry_update", entry="frost", title="Second frost")
    assert await _titles(kept, ann) == ["Second frost"]
    await world.undo(ann, "aether", note)
    assert await _titles(kept, ann) == ["First frost"]


async def test_disabling_is_soft(world: World, ann: User, kept: dict[str, MemoryJournals]) -> None:
    await _frost(world, ann)
    _, note = await world.noted(ann, "ae_journal_entry_disable", entry="frost")
    assert await _texts(kept, ann) == []
    assert len(kept[ann.id].rows) == 1
    await world.undo(ann, "aether", note)
    assert await _texts(kept, ann) == [ENTRY]


async def test_writing_can_be_taken_back(world: World, ann: User, kept: dict[str, MemoryJournals]) -> None:
    _, note = await world.noted(ann, "ae_journal_entry_create", text="a")
    await world.undo(ann, "aether", note)
    assert await _texts(kept, ann) == []


async def test_what_changed_since_is_left(world: World, ann: User, kept: dict[str, MemoryJournals]) -> None:
    _, note = await world.noted(ann, "ae_journal_entry_create", text="a")
    await kept[ann.id].change(note.target, 1, EntryChange(text="by hand"))
    with pytest.raises(Conflict):
        await world.undo(ann, "aether", note)
    assert await _texts(kept, ann) == ["by hand"]


@pytest.mark.usefixtures("kept")
async def test_two_that_fit_are_named_instead_of_guessed(world: World, ann: User) -> None:
    for title in ("Early frost", "Late frost"):
        await world.text(ann, "ae_journal_entry_create", text="a", journal="Garden", title=title)
    with pytest.raises(ToolFailed, match="2 entries fit 'frost'"):
        await world.text(ann, "ae_journal_entry_disable", entry="frost")
    for words in ("unicorn", ""):
        with pytest.raises(ToolFailed):
            await world.text(ann, "ae_journal_entry_read", entry=words)


@pytest.mark.parametrize(
    ("name", "arguments", "left"),
    [
        ("ae_journal_entry_disable", {}, {"Late frost": "b"}),
        ("ae_journal_entry_update", {"text": "c", "title": "Snow"}, {"Snow": "c", "Late frost": "b"}),
    ],
    ids=["disable", "update"],
)
async def test_a_call_that_is_run_again_after_a_kill_leaves_other_entries_alone(
    world: World, ann: User, kept: dict[str, MemoryJournals], name: str, arguments: dict[str, str], left: dict[str, str]
) -> None:
    for title, text in (("Frost", "a"), ("Late frost", "b")):
        await world.text(ann, "ae_journal_entry_create", text=text, journal="Garden", title=title)
    await world.run(world.ctx(ann, call_id="one"), name, entry="frost", **arguments)
    again = world.ctx(ann, call_id="one", is_again=True)
    await world.run(again, name, entry="frost", **arguments)
    rows = await kept[ann.id].entries(None, "", None, None, 99)
    assert {row.title: row.text for row in rows} == left
    await world.undo(ann, "aether", again.undo_notes[-1])
    rows = await kept[ann.id].entries(None, "", None, None, 99)
    assert {row.title: row.text for row in rows} == {"Frost": "a", "Late frost": "b"}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("ae_journal_entry_create", {"text": "  "}),
        ("ae_journal_entry_create", {"text": "x" * 100_001}),
        ("ae_journal_entry_update", {"entry": "frost"}),
        ("ae_journal_entry_update", {"entry": "frost", "text": " "}),
        ("ae_journal_entry_append", {"entry": "frost", "text": ""}),
        ("ae_journal_entry_append", {"entry": "frost", "text": "x" * 99_990}),
    ],
)
async def test_what_is_no_entry_is_not_written(
    world: World, ann: User, kept: dict[str, MemoryJournals], name: str, arguments: dict[str, str]
) -> None:
    await _frost(world, ann)
    with pytest.raises(ToolFailed):
        await world.text(ann, name, **arguments)
    assert await _texts(kept, ann) == [ENTRY]


@pytest.mark.usefixtures("kept")
async def test_wrong_arguments_run_nothing(world: World, ann: User) -> None:
    with pytest.raises(ValidationError):
        await world.text(ann, "ae_journal_entries_list", since="last week")


@pytest.mark.usefixtures("kept")
async def test_words_from_outside_stay_marked(world: World, ann: User) -> None:
    await _frost(world, ann)
    assert not (await world.run(world.ctx(ann), "ae_journal_entry_read", entry="frost")).is_tainted
    ctx = world.ctx(ann, is_tainted=True)
    await world.run(ctx, "ae_journal_entry_append", entry="frost", text="Read on a page.")
    for name, arguments in (("ae_journal_entry_read", {"entry": "frost"}), ("ae_journal_search", {"query": "page"})):
        assert (await world.run(world.ctx(ann), name, **arguments)).is_tainted


async def test_another_users_journals_are_out_of_reach(
    world: World, ann: User, ben: User, kept: dict[str, MemoryJournals]
) -> None:
    _, note = await world.noted(ann, "ae_journal_entry_create", text="ann's secret", journal="Private")
    assert "Private" not in await world.text(ben, "ae_journal_list")
    assert "No entry" in await world.text(ben, "ae_journal_entries_list")
    for name in ("ae_journal_entry_read", "ae_journal_entry_disable"):
        with pytest.raises(ToolFailed):
            await world.text(ben, name, entry=note.target)
    with pytest.raises(NotFound):
        await world.undo(ben, "aether", note)
    assert await _texts(kept, ann) == ["ann's secret"]


async def test_a_server_that_does_not_answer_is_no_silent_success(world: World, ann: User) -> None:
    world.wired[Journals] = DeadJournals()
    for name, arguments in (
        ("ae_journal_list", {}),
        ("ae_journal_entry_create", {"text": "a"}),
        ("ae_journal_entry_append", {"entry": "frost", "text": "a"}),
    ):
        with pytest.raises(ToolFailed, match="did not answer"):
            await world.text(ann, name, **arguments)
