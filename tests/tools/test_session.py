"""Earlier conversations are found and read; what came from outside stays marked; other people's are not there."""

import pytest

from cortex.base.errors import ToolFailed
from cortex.base.messages import Message, ToolCall, ToolResult, assistant, results, user
from cortex.base.user import User
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.plain_world import PLAIN_TURN
from tests.tool_world import World


async def _talk(world: World, owner: User, title: str, *messages: Message, is_tainted: bool = False) -> str:
    head = await world.db.repository(ConversationsRepository, owner.id).create(
        "orchestrator", "auto", title, is_title_tainted=False
    )
    turn = f"turn:{head.id}"
    await world.db.repository(TurnsRepository, owner.id).create(NewTurn(turn, head.id, "hi", **PLAIN_TURN))
    for number, message in enumerate(messages):
        await world.db.repository(MessagesRepository, owner.id).add(
            turn, number, message, is_tainted and message.speaker == "tool"
        )
    return head.id


async def test_words_are_found_with_their_place(world: World, ann: User) -> None:
    talk = await _talk(world, ann, "Heating", user("the boiler is loud"), assistant("Bleed the radiators."))
    text = await world.text(ann, "session_search", query="boiler")
    assert talk in text
    assert "'Heating'" in text
    assert "the boiler is loud" in text


async def test_nothing_found_is_said(world: World, ann: User) -> None:
    assert "'unicorn'" in await world.text(ann, "session_search", query="unicorn")


async def test_a_conversation_is_read(world: World, ann: User) -> None:
    call = ToolCall(id="1", name="web_read", arguments="{}")
    page = results(ToolResult(call_id="1", name="web_read", text="page words", tainted=True))
    talk = await _talk(world, ann, "Trip", user("read it"), assistant("", call), page, assistant("Done."))
    made = await world.run(world.ctx(ann), "session_read", conversation=talk)
    assert made.text.index("read it") < made.text.index("[called web_read]") < made.text.index("page words")
    assert "Tool [from outside]" in made.text
    assert made.is_tainted


async def test_what_only_the_two_said_is_not_marked(world: World, ann: User) -> None:
    talk = await _talk(world, ann, "Chat", user("hello"), assistant("Hello."))
    assert not (await world.run(world.ctx(ann), "session_read", conversation=talk)).is_tainted
    assert not (await world.run(world.ctx(ann), "session_search", query="hello")).is_tainted


async def test_the_latest_are_listed_without_an_id(world: World, ann: User) -> None:
    assert "no earlier" in await world.text(ann, "session_read")
    talk = await _talk(world, ann, "Trip", user("hello"))
    assert f"'Trip' (conversation {talk})" in await world.text(ann, "session_read")


async def test_a_long_conversation_is_read_in_stretches(world: World, ann: User) -> None:
    talk = await _talk(world, ann, "Long", user("x" * 7_000 + "the end"))
    assert "offset=6000" in await world.text(ann, "session_read", conversation=talk)
    assert "the end" in await world.text(ann, "session_read", conversation=talk, offset=6_000)


async def test_another_users_conversations_are_out_of_reach(world: World, ann: User, ben: User) -> None:
    talk = await _talk(world, ann, "Ann's secret", user("the secret word is swordfish"))
    assert "secret word" not in await world.text(ben, "session_search", query="swordfish")
    assert "Ann" not in await world.text(ben, "session_read")
    with pytest.raises(ToolFailed):
        await world.text(ben, "session_read", conversation=talk)


@pytest.mark.parametrize("query", ["", '"', "* OR 1", "%", "'; DROP TABLE messages; --", "(" * 50])
async def test_any_query_is_only_words(world: World, ann: User, query: str) -> None:
    await _talk(world, ann, "Chat", user("hello"))
    assert "No earlier conversation" in await world.text(ann, "session_search", query=query)
