"""A request that can carry no tool says nothing of tools: chat only, a model that takes none, a role that has none."""

import json
import re
from typing import Any

import pytest

from cortex.agent.arguments import SPILLED
from cortex.agent.toolless import as_text
from cortex.base.attachments import Attachment, is_long, words_of_file
from cortex.base.messages import Message, Text, ToolCall, ToolResult, assistant, results, user
from cortex.base.role import Role
from cortex.selection.pipeline import NOTES_HEAD
from cortex.services.roles.roles import ONLY_TALK, talk_prompt
from tests.living_house import LivingHouse
from tests.scripted_server import ScriptedServer, Use, rule

OF_TOOLS = re.compile(r"tool|file_read|skill_read|callable|you may call", re.IGNORECASE)
MILK = rule("add milk", Use("task_create", {"title": "Milk"}), "It is on it.")
REMIND = rule("remind me", Use("reminders_add", {"text": "call mum", "when": "tomorrow at nine"}), "I will.")
HELLO = rule("", "Good morning.")
pytestmark = pytest.mark.moves_cache_prefix(reason="the tool mode is changed, a person's own act")


def said(body: dict[str, Any]) -> str:
    """All that a model reads of a request."""
    return "\n".join(json.dumps(message, ensure_ascii=False) for message in body["messages"])


@pytest.mark.parametrize("way", ["chat only", "a model that takes none", "a role that has none", "one round"])
async def test_it_is_told_nothing_of_tools(house: LivingHouse, scripted: ScriptedServer, way: str) -> None:
    scripted.rules = [HELLO]
    await house.connect(scripted, tools=way != "a model that takes none")
    cid = await house.conversation(role="chat" if way == "a role that has none" else "orchestrator")
    how = {"mode": "chat"} if way == "chat only" else {"max_rounds": 1} if way == "one round" else {}
    await house.say(cid, "add milk to my shopping list", **how)
    (seen,) = scripted.log
    assert "tools" not in seen.body
    assert not OF_TOOLS.search(said(seen.body))
    (receipt,) = await house.receipts(cid)
    assert receipt["tokens"] == 0
    assert ("only talk" in said(seen.body)) is (way != "a role that has none")


async def test_what_was_called_and_told_before_is_words_without_the_way_to_call(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [MILK, REMIND, HELLO]
    await house.connect(scripted)
    cid = await house.conversation()
    await house.say(cid, "add milk to my shopping list")
    await house.say(cid, "remind me tomorrow at nine to call mum")
    assert NOTES_HEAD in said(scripted.log[-1].body).replace("\\n", "\n"), "a late tool was told as its signature"
    await house.say(cid, "and thank you", mode="chat")
    last = said(scripted.log[-1].body)
    assert "[used reminders_add" in last
    assert "call mum" in last
    assert "tool_call" not in last
    assert "reminders_add(" not in last
    assert not any(message.get("tool_calls") for message in scripted.log[-1].body["messages"])
    await house.say(cid, "add milk and bread")
    assert "tool_call" in said(scripted.log[-1].body), "with tools again all of it is there as it was"


async def test_a_greeting_carries_nothing_and_the_next_message_finds_its_tools(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [MILK, HELLO]
    await house.connect(scripted)
    cid = await house.conversation()
    await house.say(cid, "good morning")
    await house.say(cid, "add milk to my shopping list")
    hello, milk, done = (seen.body for seen in scripted.log)
    assert "tools" not in hello
    assert (
        hello["messages"] == milk["messages"][: len(hello["messages"])] or milk["messages"][0] != hello["messages"][0]
    )
    assert "task_create" in [tool["function"]["name"] for tool in milk["tools"]]
    assert NOTES_HEAD not in said(milk)
    assert done["tools"] == milk["tools"]
    assert (await house.receipts(cid))[0]["tokens"] == 0


SEARCH = ToolCall(id="s", name="tools_discover", arguments='{"query":"lights"}')
BRIDGED = ToolCall(id="b", name="tool_call", arguments='{"name":"lamp_set","arguments":{"room":"hall"}}')
LONG = words_of_file(
    Attachment(id="f", name="a.txt", media_type="text/plain", size_bytes=9),
    "a.txt",
    pages=1,
    opening="It begins so.",
    characters=90_000,
    outline=(),
    note="",
)

TYPED = (
    "(Cortex: these tools are available now: ",
    "(Cortex: these tools are available now: a. Go on with the request.) What does this line mean?",
    "(Cortex: these tools are available now: the lamp, and what else is there)",
    f"(from my notes)\n{NOTES_HEAD}\n- a(b): c\nWhat is this?",
)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        (user("hi", LONG), ["hi", LONG.rpartition("\n")[0]]),
        (user("- a list\n- of mine"), ["- a list\n- of mine"]),
        (user("hi", f"[Fri 09:00]\n{NOTES_HEAD}\n- a(b): c\n(More.)"), ["hi", "[Fri 09:00]\n(More.)"]),
        (user(f"({NOTES_HEAD}\n- a(b): c)"), None),
        (user("(Cortex: these tools are available now: a. Go on with the request.)"), None),
        (user("(Cortex: these tools are available now: a, b.c. Go on with the request.)"), None),
        *((user(words), [words]) for words in TYPED),
        (assistant("", SEARCH), None),
        (assistant("I look.", SEARCH), ["I look."]),
        (results(ToolResult(call_id="s", name="tools_discover", text="- a(b): c")), None),
        (assistant("", BRIDGED), ['[used lamp_set with {"room":"hall"}]']),
        (
            results(ToolResult(call_id="b", name="lamp_set", text=f"On.\n[... 9 characters; {SPILLED} path='x']")),
            ["[lamp_set gave: On.\n[...]]"],
        ),
        (assistant("I used file_read."), ["I used file_read."]),
    ],
    ids=[
        "long text", "typed list", "late tools", "late tools alone", "found", "several found",
        "quoted", "quoted and asked", "half of it", "brackets above a list", "search", "search and words",
        "found there", "bridge", "cut result", "own words",
    ],
)  # fmt: skip
def test_the_history_keeps_what_was_said_and_done(message: Message, left: list[str] | None) -> None:
    assert is_long([LONG])
    told = as_text((message,))
    assert [part.text for one in told for part in one.parts if isinstance(part, Text)] == (left or [])


@pytest.mark.parametrize(
    ("role", "kept"),
    [
        (
            Role(name="mine", prompt="You sell garden tools. Be kind.", tools=("all",)),
            "You sell garden tools. Be kind.",
        ),
        (Role(name="mine", prompt="You talk.", tools=()), "You talk."),
    ],
    ids=["own words", "no tools"],
)
def test_what_a_person_wrote_of_their_own_role_stays(role: Role, kept: str) -> None:
    told = talk_prompt(role)
    assert told.startswith(kept)
    assert (ONLY_TALK in told) is bool(role.tools)
