"""Scenes of what was said before: long, odd, or begun with another model's server."""

import json
from itertools import pairwise

from cortex.base.messages import Message, Text, Thinking, ToolCall, ToolResult, assistant, results, user
from tests.model_servers.scenes_talk import BREAD, MILK
from tests.model_servers.spoken import Said, Use
from tests.model_servers.stage import Stage
from tests.scripted_pipe import common


def call(number: int, arguments: str = '{"title": "milk"}') -> ToolCall:
    """A call of an earlier turn, whose id another server gave."""
    return ToolCall(id=f"functions.task_create:{number}", name="task_create", arguments=arguments)


def result(number: int, text: str = "Done.") -> Message:
    """Its result."""
    return results(ToolResult(call_id=f"functions.task_create:{number}", name="task_create", text=text))


async def long_history(stage: Stage) -> None:
    """Thirty turns with calls."""
    stage.begin("Still here.")
    said: list[Message] = []
    for number in range(30):
        said += [user(f"buy milk, {number}"), assistant("On it.", call(number)), result(number), assistant("Added.")]
    assert (await stage.hear(stage.dial(), *said, user("are you there?"))).text == "Still here."
    stage.check()


async def ended_behind_a_tool(stage: Stage) -> None:
    """A turn that ended behind a tool's result is followed by the next message of the person."""
    stage.begin("Hello again.", Said(calls=(MILK,)), "Added.")
    provider = stage.dial()
    said = (user("buy milk"), assistant("", call(1)), result(1), user("are you there?"))
    heard = await stage.hear(provider, *said)
    assert heard.text == "Hello again."
    again = (*said, heard.message, user("buy milk"))
    called = await stage.hear(provider, *again)
    noted = user("(This is the last round. Answer now.)")
    assert (await stage.hear(provider, *again, called.message, called.results(), noted)).text == "Added."
    stage.check()


async def two_users(stage: Stage) -> None:
    """Two messages of the person in a row, at the beginning and later."""
    stage.begin("Both read.", "Yes.")
    provider = stage.dial()
    said = (user("buy milk"), user("and bread"))
    heard = await stage.hear(provider, *said)
    more = (*said, heard.message, user("are you"), user("sure?"), user("really?"))
    body_words = json.dumps(stage.double.sent[0])
    assert "buy milk" in body_words
    assert "and bread" in body_words
    await stage.hear(provider, *more)
    stage.check()


async def switch_and_back(stage: Stage) -> None:
    """This model goes on in a chat that another server's began with reasoning and odd ids, and hands it back."""
    for partner in ("anthropic", "openrouter", "google") if stage.row.id != "google" else ("anthropic", "mistral"):
        if partner == stage.row.id:
            continue
        there = stage.other(partner)
        stage.begin()
        kimi = Use(tool="task_create", arguments={"title": "tea"}, id="" if partner == "anthropic" else "call_0:x.y")
        turn = (Said(thinking="Tea.", text="On it.", calls=(kimi,)), Said(thinking="So.", text="Tea is there."))
        there.double.say(*turn, *turn)
        stage.double.say(Said(thinking="Milk.", calls=(MILK,)), "Milk is there.", "Bye.")
        far = there.dial(model=there.row.thinker)
        near = stage.dial(model=stage.row.thinker or stage.row.model)
        said: list[Message] = []
        for provider, asker, words in ((far, there, "tea"), (near, stage, "milk"), (far, there, "more tea")):
            said.append(user(words))
            called = await asker.hear(provider, *said)
            said += [called.message, called.results()]
            said.append((await asker.hear(provider, *said)).message)
        await stage.hear(near, *said, user("bye"))
        stage.check()
        there.check()


async def switch_within_a_turn(stage: Stage) -> None:
    """The next model of the chain goes on with a turn in which another one called tools already."""
    partner = "openrouter" if stage.row.id == "anthropic" else "anthropic"
    there = stage.other(partner)
    stage.begin(Said(thinking="Bread.", calls=(BREAD,)), "Both are there.", "Bye.")
    there.double.say(Said(thinking="Milk.", calls=(MILK,)))
    near = stage.dial(model=stage.row.thinker or stage.row.model)
    said: list[Message] = [user("buy milk and bread")]
    called = await there.hear(there.dial(model=there.row.thinker), *said)
    said += [called.message, called.results()]
    second = await stage.hear(near, *said)
    said += [second.message, second.results()]
    last = await stage.hear(near, *said)
    assert last.text == "Both are there."
    await stage.hear(near, *said, last.message, user("bye"))
    stage.check()
    there.check()


async def system_in_the_middle(stage: Stage) -> None:
    """A message of the system's in the middle, such as a summary, is read and refused by none."""
    stage.begin("Understood.")
    note = Message(speaker="system", parts=(Text(text="(Summary: they like tea.)"),))
    await stage.hear(stage.dial(), user("hello"), assistant("Hello."), note, user("what do I like?"))
    assert "they like tea" in json.dumps(stage.double.sent[0])
    stage.check()


async def empty_answers(stage: Stage) -> None:
    """Answers without words, with blanks alone or with reasoning alone stand in the history."""
    stage.begin("Here.")
    blank = Message(speaker="assistant", parts=(Text(text="  \n"),))
    thought = Message(speaker="assistant", parts=(Thinking(text="Hm.", opaque=None),))
    call_alone = Message(speaker="assistant", parts=(Text(text=""), call(3)))
    said = [user("a"), blank, user("b"), thought, user("c"), call_alone, result(3, ""), assistant("Fine. "), user("d")]
    assert (await stage.hear(stage.dial(), *said)).text == "Here."
    stage.check()


async def broken_arguments(stage: Stage) -> None:
    """A call whose arguments were no JSON stands in the history with the error that it got."""
    stage.begin("Sorry.")
    said = (user("buy"), assistant("", call(1, '{"title": "mi')), result(1, "The arguments are not valid JSON."))
    assert (await stage.hear(stage.dial(), *said)).text == "Sorry."
    stage.check()


async def no_tools_any_more(stage: Stage) -> None:
    """Calls stand in the history, but no tool is declared any more."""
    stage.begin("No tools here.")
    said = (user("buy milk"), assistant("", call(1)), result(1), assistant("Added."), user("thanks"))
    assert (await stage.hear(stage.dial(), *said, tools=())).text == "No tools here."
    stage.check()


async def prefix_kept(stage: Stage) -> None:
    """Ten requests: each begins with the bytes of the one before."""
    answers: list[Said | str] = [
        Said(text="On it.", calls=(MILK,)),
        "Added.",
        "Good.",
        Said(calls=(MILK, BREAD)),
        "Both.",
        *("Yes.",) * 5,
    ]
    stage.begin(*answers)
    provider = stage.dial()
    said: list[Message] = [user("buy milk")]
    for number in range(10):
        heard = await stage.hear(provider, *said)
        said += [heard.message, heard.results() if heard.message.calls else user(f"and now? {number}")]
    bodies = [_prefix(body) for body in stage.double.sent]
    for before, after in pairwise(bodies):
        at = common(before, after)
        assert after.startswith(before[:-1]), f"the prefix breaks at ...{before[max(0, at - 50) : at + 50]!r}"
    stage.check()


def _prefix(body: dict[str, object]) -> str:
    """What a provider's cache sees, as it stood in the body, without the marks of where to cache."""
    said = body.get("messages") or body["input"]
    return json.dumps([body.get("tools"), body.get("system") or body.get("instructions")]) + json.dumps(_plain(said))


def _plain(value: object) -> object:
    """Without cache marks, words always as blocks: a mark needs one, which changes nothing for the cache."""
    if isinstance(value, dict):
        kept = {key: _plain(each) for key, each in value.items() if key != "cache_control"}
        content = kept.get("content")
        is_words = isinstance(content, str) and kept.get("role") in ("user", "assistant")
        return {**kept, "content": [{"type": "text", "text": content}]} if is_words else kept
    return [_plain(each) for each in value] if isinstance(value, list) else value
