"""Going from one version of a message and its answer to another."""

import pytest

from cortex.base.errors import Conflict, NotFound
from cortex.base.messages import Text
from cortex.storage.messages import MessagesRepository
from tests.living_house import LivingHouse
from tests.scripted_server import ScriptedServer, rule

SHOPPING = "add milk to my shopping list"


async def tried_twice(house: LivingHouse) -> tuple[str, str, str]:
    """A conversation with a message that was answered, followed by another, and sent again in other words."""
    cid = await house.conversation()
    first = await house.say(cid, SHOPPING)
    await house.say(cid, "hello")
    second = await house.cortex.chat.edit(house.admin, first, "hello there")
    await house.until(cid, "turn.end", turn=second)
    return cid, first, second


async def texts(house: LivingHouse, cid: str) -> list[str]:
    return [turn.text for turn in (await house.cortex.chat.log(house.admin, cid)).folded().turns]


async def test_switching_back_shows_what_followed_and_what_is_said_next_follows_that(house: LivingHouse) -> None:
    cid, first, second = await tried_twice(house)
    assert await texts(house, cid) == ["hello there"]
    shown = await house.cortex.versions.show(house.admin, first)
    assert not shown.is_dropped
    assert await texts(house, cid) == [SHOPPING, "hello"]
    await house.say(cid, "hello again")
    exported = await house.cortex.conversations.export_markdown(house.admin, cid)
    assert "hello again" in exported
    assert "hello there" not in exported
    await house.cortex.versions.show(house.admin, second)
    assert await texts(house, cid) == ["hello there"]
    groups = {group.kind: group.hits for group in await house.cortex.search.find(house.admin, "hello")}
    assert [hit.path.partition("/at/")[2] for hit in groups["messages"]] == [second.removeprefix("turn:")]
    await house.cortex.versions.show(house.admin, first)
    branch = await house.cortex.conversations.branch(house.admin, cid, first)
    assert await texts(house, branch) == [SHOPPING]
    page = await house.cortex.chat.log(house.admin, branch)
    assert page.versions == {}
    assert [turn.versions for turn in page.folded().turns] == [()]


async def test_a_version_says_which_model_answered_by_which_recipe_and_what_it_cost(house: LivingHouse) -> None:
    cid, first, second = await tried_twice(house)
    versions = await house.cortex.versions.of(house.admin, second)
    assert [version.turn.id for version in versions] == [first, second]
    assert [(version.models, version.recipe, version.cost_usd) for version in versions] == [
        (("offline",), "cortex", 0.0)
    ] * 2
    views = (await house.cortex.chat.log(house.admin, cid)).folded().turns
    assert [(view.versions, view.model) for view in views] == [((first, second), "offline")]


async def test_what_another_version_did_is_told_to_the_model_of_this_one(house: LivingHouse) -> None:
    cid, first, second = await tried_twice(house)
    await house.cortex.versions.show(house.admin, first)
    await house.say(cid, "add bread to my shopping list")
    await house.cortex.versions.show(house.admin, second)
    turn_id = await house.say(cid, "hello again")
    rows = await house.rows(MessagesRepository).of_turn(turn_id)
    behind = "\n".join(part.text for part in rows[0].message.parts[1:] if isinstance(part, Text))
    assert '"title":"bread"' in behind
    assert '"title":"milk"' not in behind  # the version in view has heard of that


async def test_nothing_is_switched_while_an_answer_is_written_or_a_message_waits(house: LivingHouse) -> None:
    cid, first, second = await tried_twice(house)
    running = await house.cortex.chat.send_message(house.admin, cid, "run `echo hi` in the shell")
    await house.until(cid, "approval", turn=running, state="asked")
    with pytest.raises(Conflict, match="is being written"):
        await house.cortex.versions.show(house.admin, first)
    await house.cortex.chat.stop(house.admin, cid)
    await house.until(cid, "turn.end", turn=running)
    await house.cortex.stop_all.stop(house.admin, None)
    await house.cortex.chat.send_message(house.admin, cid, "hello again")
    with pytest.raises(Conflict, match="waiting to be answered"):
        await house.cortex.versions.show(house.admin, first)
    with pytest.raises(Conflict, match="waiting to be answered"):
        await house.cortex.chat.again(house.admin, second)
    assert await house.events(cid, "turn.show") == []


async def test_nobody_elses_version_is_shown_or_listed(house: LivingHouse) -> None:
    _, first, _ = await tried_twice(house)
    with pytest.raises(NotFound):
        await house.cortex.versions.show(house.member, first)
    with pytest.raises(NotFound):
        await house.cortex.versions.of(house.member, first)


async def test_a_version_out_of_view_is_not_made_anew(house: LivingHouse) -> None:
    _, first, _ = await tried_twice(house)
    with pytest.raises(Conflict, match="Switch to this one first"):
        await house.cortex.chat.again(house.admin, first)


@pytest.mark.moves_cache_prefix(reason="another version is another history")
async def test_the_model_reads_the_version_in_view(house: LivingHouse, scripted: ScriptedServer) -> None:
    scripted.rules = [rule("", "Yes.")]
    await house.connect(scripted)
    cid = await house.conversation()
    first = await house.say(cid, "my cat is Mia", mode="chat")
    second = await house.cortex.chat.edit(house.admin, first, "my dog is Rex")
    await house.until(cid, "turn.end", turn=second)
    await house.cortex.versions.show(house.admin, first)
    await house.say(cid, "who is that?", mode="chat")
    said = str(scripted.log[-1].body["messages"])
    assert "Mia" in said
    assert "Rex" not in said
