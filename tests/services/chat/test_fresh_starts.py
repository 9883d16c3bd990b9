"""A long chat goes on in a new one that begins with its summary: one booked call, once, marked as what it was read."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.services.chat.fresh_starts import ALL_STOPPED, NO_MODEL
from cortex.storage.messages import MessagesRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import Reads, TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import ScriptedServer, rule

SUMMARY = "Ada has eleven plums and wants a cake on Sunday."
OF_SCRIPT = "^user: "


@pytest.fixture
async def house(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[LivingHouse]:
    scripted.rules = [rule(OF_SCRIPT, SUMMARY), rule("", "They are in the bowl.")]
    async with living_house(tmp_path / "home") as opened:
        await opened.connect(scripted)
        yield opened


def scripts(scripted: ScriptedServer) -> list[str]:
    said = [seen.body["messages"][-1]["content"] for seen in scripted.log]
    return [text for text in said if text.startswith("user: ")]


async def begun(house: LivingHouse, cid: str) -> str:
    return await house.cortex.fresh_starts.begin(house.admin, cid)


async def test_the_new_chat_begins_with_the_summary_which_its_model_reads_and_which_is_booked(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    await house.say(cid, "where are the eleven plums?")
    new = await begun(house, cid)
    (script,) = scripts(scripted)
    assert "eleven plums" in script
    assert "in the bowl" in script
    (booked,) = await house.rows(RoundsRepository).of_turn(new)
    assert (booked.role, booked.state, booked.input_tokens > 0) == ("distill", "answered", True)
    beginning = (await house.cortex.chat.log(house.admin, new)).folded().beginning
    assert beginning is not None
    assert (beginning.text, beginning.why, beginning.source) == (SUMMARY, "", cid)
    await house.say(new, "and the cake?")
    told = [message["content"] for message in scripted.log[-1].body["messages"]]
    assert any(SUMMARY in words for words in told)
    assert not any("in the bowl" in words for words in told)


async def test_pressed_twice_at_once_and_again_it_is_one_chat_and_one_call(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    await house.say(cid, "where are the plums?")
    first, second = await asyncio.gather(begun(house, cid), begun(house, cid))
    assert first == second == await begun(house, cid)
    assert len(scripts(scripted)) == 1
    await house.say(cid, "and the pears?")
    assert await begun(house, cid) != first, "the chat went on since"


async def test_one_that_was_deleted_is_made_anew(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "where are the plums?")
    first = await begun(house, cid)
    await house.cortex.conversations.delete(house.admin, first)
    second = await begun(house, cid)
    assert second != first
    assert (await house.cortex.chat.log(house.admin, second)).folded().beginning is not None


@pytest.mark.parametrize("reads", [Reads(), Reads(outside=True), Reads(private=True)], ids=["nothing", "out", "own"])
async def test_what_the_old_chat_had_read_the_new_one_has_read(house: LivingHouse, reads: Reads) -> None:
    cid = await house.conversation()
    turn = await house.say(cid, "where are the plums?")
    await house.rows(TurnsRepository).add_reads(turn, reads)
    new = await begun(house, cid)
    later = await house.rows(TurnsRepository).get(await house.say(new, "and the cake?"))
    assert await house.rows(TurnsRepository).reads(later) == reads
    first, *_ = await house.rows(MessagesRepository).of_conversation(new)
    assert first.is_tainted == reads.outside


async def test_settings_go_along_and_a_branch_keeps_the_beginning(house: LivingHouse) -> None:
    cid = (await house.cortex.conversations.new(house.admin, is_temporary=True)).id
    await house.say(cid, "where are the plums?")
    new = await begun(house, cid)
    head = await house.cortex.conversations.get(house.admin, new)
    assert (head.source, head.uses_memory, head.parent_id) == ("temporary", False, cid)
    assert await begun(house, cid) == new
    turn = await house.say(new, "and the cake?")
    branch = await house.cortex.conversations.branch(house.admin, new, turn)
    beginning = (await house.cortex.chat.log(house.admin, branch)).folded().beginning
    assert beginning is not None
    assert beginning.text == SUMMARY


async def test_without_a_model_it_begins_with_the_last_words_and_says_why(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        cid = await house.conversation()
        await house.say(cid, "hello there")
        beginning = (await house.cortex.chat.log(house.admin, await begun(house, cid))).folded().beginning
    assert beginning is not None
    assert beginning.why == NO_MODEL
    assert beginning.text.startswith("You: hello there")


async def test_a_model_that_fails_and_a_stop_of_everything_leave_the_last_words(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    await house.say(cid, "where are the plums?")
    scripted.refuses = lambda body: (400, {"error": {"message": "not today"}})
    failed = (await house.cortex.chat.log(house.admin, await begun(house, cid))).folded().beginning
    assert failed is not None
    assert failed.why
    assert "in the bowl" in failed.text
    scripted.refuses = lambda body: None
    await house.say(cid, "and the pears?")
    await house.cortex.stop_all.stop(house.admin, house.admin)
    stopped = (await house.cortex.chat.log(house.admin, await begun(house, cid))).folded().beginning
    assert stopped is not None
    assert stopped.why == ALL_STOPPED


async def test_an_empty_chat_and_one_that_is_being_answered_are_refused(house: LivingHouse) -> None:
    cid = await house.conversation()
    with pytest.raises(UserError, match="Nothing has been said"):
        await begun(house, cid)
