"""Facts remembered from the chat: with source and mark, forgotten and brought back, one user at a time."""

from collections import defaultdict
from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from cortex.base.errors import CortexError, NotFound, ToolFailed
from cortex.base.user import User
from cortex.ports.memory import Fact, Memory
from tests.plain_clients import PlainMemory
from tests.tool_world import World

FACT = "Ann eats no nuts."


class DeadMemory(PlainMemory):
    async def search(self, query: str, most: int) -> Sequence[Fact]:
        raise ToolFailed("The memory cannot be reached now.")


@pytest.fixture
def kept(world: World) -> dict[str, PlainMemory]:
    made: dict[str, PlainMemory] = defaultdict(PlainMemory)
    world.bound[Memory] = made.__getitem__
    return made


async def _facts(world: World, user: User, query: str = "") -> list[str]:
    """Return the facts that the search lists, without what stands behind them."""
    listed = await world.text(user, "memory_search", **({"query": query} if query else {}))
    return [line[2:].partition(" (id ")[0] for line in listed.splitlines() if line.startswith("- ")]


@pytest.mark.usefixtures("kept")
async def test_a_fact_is_kept_with_its_source_and_the_users_day(world: World, ann: User) -> None:
    assert await _facts(world, ann) == []
    await world.text(ann, "memory_add", fact=" Ann eats \n no nuts. ")
    assert await _facts(world, ann) == [FACT]
    text = await world.text(ann, "memory_search", query="nuts.")
    assert text.startswith(f"- {FACT} (id ")
    assert text.endswith("2026-11-21, from the user)")
    assert await _facts(world, ann, "boat") == []


async def test_a_repeated_step_and_a_known_fact_are_kept_once(
    world: World, ann: User, kept: dict[str, PlainMemory]
) -> None:
    for _ in range(2):
        await world.run(world.ctx(ann, call_id="one"), "memory_add", fact=FACT)
    ctx = world.ctx(ann)
    done = await world.run(ctx, "memory_add", fact=FACT)
    assert (done.text.endswith(FACT), ctx.undo_notes) == (True, [])
    assert len(kept[ann.id].rows) == 1


@pytest.mark.parametrize("fact", ["", "  ", "x" * 501])
async def test_what_is_no_fact_is_not_kept(world: World, ann: User, kept: dict[str, PlainMemory], fact: str) -> None:
    with pytest.raises(ToolFailed):
        await world.text(ann, "memory_add", fact=fact)
    assert kept[ann.id].rows == {}


@pytest.mark.usefixtures("kept")
async def test_wrong_arguments_run_nothing(world: World, ann: User) -> None:
    with pytest.raises(ValidationError):
        await world.text(ann, "memory_add", text=FACT)


@pytest.mark.parametrize("words", ["no nuts", FACT, "ann nuts"])
async def test_a_fact_is_forgotten_by_its_words(
    world: World, ann: User, kept: dict[str, PlainMemory], words: str
) -> None:
    await world.text(ann, "memory_add", fact=FACT)
    await world.text(ann, "memory_add", fact="Ann has a boat.")
    await world.text(ann, "memory_forget", fact=words)
    assert [row.text for row in kept[ann.id].rows.values()] == ["Ann has a boat."]


@pytest.mark.usefixtures("kept")
async def test_what_is_not_surely_meant_is_not_forgotten(world: World, ann: User) -> None:
    for fact in (FACT, "Ann eats no fish."):
        await world.text(ann, "memory_add", fact=fact)
    for words in ("ann eats", "all that ann ever said"):
        with pytest.raises(ToolFailed, match=r"Several facts fit .*Use the id"):
            await world.text(ann, "memory_forget", fact=words)
    for words in ("boat", " "):
        with pytest.raises(ToolFailed):
            await world.text(ann, "memory_forget", fact=words)


async def test_each_step_can_be_taken_back(world: World, ann: User, kept: dict[str, PlainMemory]) -> None:
    _, added = await world.noted(ann, "memory_add", fact=FACT)
    _, gone = await world.noted(ann, "memory_forget", fact="nuts.")
    _, gone = await world.undo_twice(ann, "memory", gone)
    assert kept[ann.id].rows == {}
    await world.undo(ann, "memory", gone)
    assert [row.text for row in kept[ann.id].rows.values()] == [FACT]
    await world.undo(ann, "memory", added)
    assert kept[ann.id].rows == {}
    with pytest.raises(NotFound):
        await world.undo(ann, "memory", added)


async def test_a_turn_that_read_text_from_outside_only_proposes(
    world: World, ann: User, kept: dict[str, PlainMemory]
) -> None:
    ctx = world.ctx(ann, is_tainted=True)
    told = await world.run(ctx, "memory_add", fact="Ann likes every offer.")
    assert told.text.startswith("Not remembered yet")
    assert told.is_tainted
    assert await _facts(world, ann) == []
    assert len(ctx.undo_notes) == 1
    assert len(kept[ann.id].proposed) == 1


async def test_facts_from_outside_stay_marked(world: World, ann: User, kept: dict[str, PlainMemory]) -> None:
    await world.run(world.ctx(ann, is_tainted=True), "memory_add", fact="Ann likes every offer.")
    memory = kept[ann.id]  # the person says yes to it
    memory.rows, memory.proposed = memory.proposed, {}
    found = await world.run(world.ctx(ann), "memory_search")
    assert found.is_tainted
    assert "[from outside]" in found.text
    assert (await world.run(world.ctx(ann), "memory_forget", fact="every offer")).is_tainted


async def test_another_users_facts_are_out_of_reach(
    world: World, ann: User, ben: User, kept: dict[str, PlainMemory]
) -> None:
    _, note = await world.noted(ann, "memory_add", fact="ann's secret")
    assert await _facts(world, ben) == []
    for words in ("secret", note.target):
        with pytest.raises(ToolFailed):
            await world.text(ben, "memory_forget", fact=words)
    with pytest.raises(CortexError):
        await world.undo(ben, "memory", note)
    assert len(kept[ann.id].rows) == 1


async def test_a_memory_that_cannot_be_reached_is_said(world: World, ann: User) -> None:
    world.wired[Memory] = DeadMemory()
    for name, arguments in (("memory_search", {}), ("memory_forget", {"fact": "nuts"})):
        with pytest.raises(ToolFailed, match="cannot be reached"):
            await world.text(ann, name, **arguments)
