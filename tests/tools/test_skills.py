"""Skills: listed and read by name, title or words; a slip in one costs the others nothing; each user has their own."""

import pytest

from cortex.base.errors import ToolFailed
from cortex.base.user import User
from cortex.storage.home import Home
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.page import Page
from tests.tool_world import World

INVOICES = """---
title: Writing invoices
description: How we number and word invoices
tools: [file_write]
---
Number them YYYY-NNN. Never round.
"""
BREAD = "---\ntitle: Sourdough\ndescription: Times and amounts\n---\nFeed the starter at eight.\n"


async def write(world: World, user: User, name: str, text: str) -> None:
    await world.homes.home_of(user.id).write(f"skills/{name}.md", text)


async def test_skills_are_listed_by_name_title_and_description(world: World, ann: User) -> None:
    assert "no skill yet" in await world.text(ann, "skill_list")
    await write(world, ann, "invoices", INVOICES)
    await write(world, ann, "bread", BREAD)
    listed = (await world.text(ann, "skill_list")).splitlines()
    assert [line.partition(". ")[0] for line in listed] == ["- bread: Sourdough", "- invoices: Writing invoices"]
    assert ["Times and amounts" in line for line in listed] == [True, False]


@pytest.mark.parametrize(
    "name", ["invoices", "`Invoices`", "invoices.md", "Writing  invoices", "the invoices skill", "send Acme an invoice"]
)
async def test_a_skill_is_read_by_its_name_its_title_or_their_words(world: World, ann: User, name: str) -> None:
    await write(world, ann, "invoices", INVOICES)
    await write(world, ann, "bread", BREAD)
    made = await world.run(world.ctx(ann), "skill_read", name=name)
    assert made.text.startswith("# Writing invoices\n\nNumber them")
    assert (made.is_tainted, made.found) == (False, ("file_write",))


async def test_a_name_that_no_skill_has_is_refused_with_those_there_are(world: World, ann: User) -> None:
    with pytest.raises(ToolFailed, match="no skill yet"):
        await world.text(ann, "skill_read", name="invoices")
    await write(world, ann, "invoices", INVOICES)
    await write(world, ann, "bread", BREAD)
    for name in ("gardening", "", "../persona"):
        with pytest.raises(ToolFailed, match="There are: bread, invoices"):
            await world.text(ann, "skill_read", name=name)


async def test_a_slip_in_one_file_is_named_and_costs_the_others_nothing(world: World, ann: User) -> None:
    await write(world, ann, "invoices", INVOICES)
    await write(world, ann, "broken", "---\ntitle: Broken\n---\nBody\n")
    listed = await world.text(ann, "skill_list")
    assert "- invoices: " in listed
    assert "1 more" in listed
    assert "Number them" in await world.text(ann, "skill_read", name="invoices")
    with pytest.raises(ToolFailed, match=r"skills/broken\.md: 'description' is missing"):
        await world.text(ann, "skill_read", name="broken")


async def test_another_users_skills_are_out_of_reach(world: World, ann: User, ben: User) -> None:
    await write(world, ann, "invoices", INVOICES)
    assert "invoices" not in await world.text(ben, "skill_list")
    with pytest.raises(ToolFailed, match="no skill yet"):
        await world.text(ben, "skill_read", name="invoices")


async def test_a_skill_written_from_outside_words_stays_marked_and_brings_no_tool(world: World, ann: User) -> None:
    ctx = world.ctx(ann, is_tainted=True)
    path = "skills/invoices.md"
    await Page(ctx=ctx, texts=ctx.use(Home), marks=ctx.use(PreferencesRepository), path=path, title="skill").write(
        INVOICES
    )
    listed = await world.run(world.ctx(ann), "skill_list")
    read = await world.run(world.ctx(ann), "skill_read", name="invoices")
    assert ("[from outside]" in listed.text, listed.is_tainted) == (True, True)
    assert (read.is_tainted, read.found) == (True, ())
