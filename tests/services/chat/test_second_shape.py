"""What a model's server does not take is asked again in a shape that it takes, in the same turn, and learned.

The double refuses in the words of real servers (`tests/providers/refusals.json`), whatever the client knows of it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from cortex.base.messages import assistant, user
from cortex.base.model import ModelEntry
from cortex.base.tokens import count, minified
from cortex.base.turn import Need
from cortex.services.models.sharing import ShareForm
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.plain_world import PLAIN_TURN
from tests.scripted_server import Fault, ScriptedServer, Use, rule

pytestmark = pytest.mark.moves_cache_prefix(reason="a request in another shape")

Body = dict[str, Any]
LONG = "".join(
    f"On day {day} the boiler in cellar {day * 7} was looked at, and it held {day * 3} bar. " for day in range(34)
)


def openai_error(message: str, *, param: str | None = None, code: str | None = None) -> Body:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def window(most: int, *, counts_answer: bool = True, says: str = "") -> Callable[[Body], tuple[int, Body] | None]:
    """A server that takes so many tokens, as vLLM and OpenAI refuse more: with the answer counted in."""

    def refuses(body: Body) -> tuple[int, Body] | None:
        sent = count(minified([body.get("tools") or [], *body["messages"]]))
        answer = int(body.get("max_tokens") or body.get("max_completion_tokens") or 0) if counts_answer else 0
        if sent + answer <= most:
            return None
        told = (
            f"This model's maximum context length is {most} tokens. However, you requested {sent + answer} tokens "
            f"({sent} in the messages, {answer} in the completion). Please reduce the length of the messages or "
            "completion."
        )
        return 400, openai_error(says or told, param="messages", code="context_length_exceeded")

    return refuses


@pytest.fixture
async def house(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path) as opened:
        await opened.connect(scripted)
        yield opened


async def notices(house: LivingHouse, cid: str) -> list[str]:
    return [event.payload["text"] for event in await house.events(cid, "notice")]


async def told(house: LivingHouse, cid: str) -> str:
    return json.dumps([event.payload for event in await house.events(cid)], ensure_ascii=False)


async def state(house: LivingHouse, turn_id: str) -> str:
    return (await house.rows(TurnsRepository).get(turn_id)).state


async def entry(house: LivingHouse, name: str = "m") -> ModelEntry:
    return await house.cortex.models.entry(house.admin, name)


async def test_a_chat_in_a_smaller_window_goes_on_and_the_next_message_is_not_refused(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    for _ in range(3):
        await house.say(cid, LONG, mode="chat")
    scripted.refuses = window(3_000)
    asked = len(scripted.log)
    turn = await house.say(cid, "and the roof?", mode="chat")
    assert await state(house, turn) == "done"
    assert [seen.status for seen in scripted.log[asked:]] == [400, 200]
    last = [one["content"] for one in scripted.log[-1].body["messages"] if one["role"] == "user"]
    assert last[-1].startswith("and the roof?")
    assert len(last) > 1, "the newest exchanges stay"
    assert "3,000 tokens" in (await notices(house, cid))[0]
    assert (await entry(house)).context_tokens == 3_000

    asked = len(scripted.log)
    for _ in range(3):
        assert await state(house, await house.say(cid, LONG, mode="chat")) == "done"
    assert all(seen.status == 200 for seen in scripted.log[asked:])
    assert len(await notices(house, cid)) == 1

    await house.cortex.models.learned.forget(house.admin.id, "m", "context_tokens", "3000")
    assert (await entry(house)).context_tokens == 8_192


async def test_a_window_that_no_number_names_is_found_by_what_is_taken(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    for _ in range(4):
        await house.say(cid, LONG, mode="chat")
    scripted.refuses = window(
        2_500,
        counts_answer=False,
        says="Your input exceeds the context window of this model. Please adjust your input.",
    )
    assert await state(house, await house.say(cid, "and the roof?", mode="chat")) == "done"
    learned = (await entry(house)).context_tokens
    assert learned < 4_000
    asked = len(scripted.log)
    assert await state(house, await house.say(cid, "and the door?", mode="chat")) == "done"
    assert [seen.status for seen in scripted.log[asked:] if seen.status != 200] == []


async def test_tools_go_before_the_message_does_and_what_cannot_fit_is_said(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.refuses = window(2_400)
    cid = await house.conversation()
    first = await house.say(cid, "please add milk to the list and remind me of it tomorrow")
    assert await state(house, first) == "done"
    scripted.refuses = window(300)
    second = await house.say(cid, LONG * 2, mode="chat")
    assert await state(house, second) == "failed"
    assert "300 tokens" in await told(house, cid)
    scripted.refuses = lambda body: None
    assert await state(house, await house.say(cid, "short again", mode="chat")) == "done"


async def test_a_model_without_tools_answers_without_them_and_is_sent_none_again(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    scripted.rules = [rule("milk", Use("task_create", {"title": "Milk"}), "Noted.")]
    await house.say(cid, "add milk to my list")

    def refuses(body: Body) -> tuple[int, Body] | None:
        message = "registry.ollama.ai/library/gemma3:4b does not support tools"
        return (400, openai_error(message)) if body.get("tools") else None

    scripted.refuses = refuses
    turn = await house.say(cid, "what is on my list, and add bread?")
    assert await state(house, turn) == "done"
    assert "[used task_create" in json.dumps(scripted.log[-1].body["messages"])
    assert ["no tools" in notice for notice in await notices(house, cid)] == [True]
    assert not (await entry(house)).tools
    asked = len(scripted.log)
    await house.say(cid, "add butter to my list")
    assert [seen.status for seen in scripted.log[asked:]] == [200]


async def test_a_tool_whose_schema_is_refused_is_left_out_by_name_and_the_rest_stays(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()

    def refuses(body: Body) -> tuple[int, Body] | None:
        names = [tool["function"]["name"] for tool in body.get("tools") or []]
        if "task_create" not in names:
            return None
        told = "JSON schema is invalid. It must match JSON Schema draft 2020-12"
        return 400, openai_error(f"tools.{names.index('task_create')}.custom.input_schema: {told}")

    scripted.refuses = refuses
    turn = await house.say(cid, "add milk to my list")
    assert await state(house, turn) == "done"
    assert [seen.status for seen in scripted.log] == [400, 200]
    assert scripted.log[-1].body["tools"]
    assert ["task_create" in notice for notice in await notices(house, cid)] == [True]
    assert (await entry(house)).left_out == ("task_create",)
    asked = len(scripted.log)
    await house.say(cid, "add bread to my list")
    assert [seen.status for seen in scripted.log[asked:]] == [200]
    await house.cortex.models.learned.forget(house.admin.id, "m")
    assert (await entry(house)).left_out == ()


@pytest.mark.parametrize(
    ("extra", "status", "message", "param", "gone"),
    [
        ({"temperature": 0.2}, 400, "Unsupported value: 'temperature' does not support 0.2 with this model. Only the "
         "default (1) value is supported.", "temperature", "temperature"),
        ({"top_p": 0.2}, 400, "`temperature` and `top_p` cannot both be specified for this model. Please use only "
         "one.", None, "top_p"),
        ({}, 400, "Unknown parameter: 'stream_options'.", "stream_options", "stream_options"),
        ({"presence_penalty": 0.5}, 400, "Argument not supported on this model: presencePenalty", None,
         "presence_penalty"),
    ],
    ids=["temperature", "two of a kind", "usage of a stream", "camel case"],
)  # fmt: skip
async def test_a_parameter_that_is_refused_is_left_out(
    house: LivingHouse,
    scripted: ScriptedServer,
    extra: dict[str, Any],
    status: int,
    message: str,
    param: str | None,
    gone: str,
) -> None:
    await house.connect(scripted, name="set", extra=extra)
    scripted.refuses = lambda body: (status, openai_error(message, param=param)) if gone in body else None
    cid = await house.conversation()
    assert await state(house, await house.say(cid, "hello", mode="chat", model="set")) == "done"
    assert [f"parameter {gone}:" in notice for notice in await notices(house, cid)] == [True]
    assert (await entry(house, "set")).refused == (gone,)
    asked = len(scripted.log)
    await house.say(cid, "again", mode="chat", model="set")
    assert [seen.status for seen in scripted.log[asked:]] == [200]


async def test_a_shorter_answer_is_asked_for_where_a_long_one_is_refused(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    def refuses(body: Body) -> tuple[int, Body] | None:
        asked = int(body.get("max_tokens") or body.get("max_completion_tokens") or 0)
        told = f"max_tokens is too large: {asked}. This model supports at most 1024 completion tokens, whereas you"
        return (400, openai_error(f"{told} provided {asked}.", param="max_tokens")) if asked > 1_024 else None

    scripted.refuses = refuses
    cid = await house.conversation()
    assert await state(house, await house.say(cid, "hello", mode="chat")) == "done"
    assert (await entry(house)).max_output_tokens == 1_024
    assert len(await notices(house, cid)) == 1


async def test_an_answer_in_one_piece_is_asked_for_where_a_stream_is_refused(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    message = "Your organization must be verified to stream this model. Please go to: https://example.org"
    scripted.refuses = lambda body: (400, openai_error(message, param="stream")) if body.get("stream") else None
    cid = await house.conversation()
    assert await state(house, await house.say(cid, "hello", mode="chat")) == "done"
    assert not (await entry(house)).streams
    assert ["not stream" in notice for notice in await notices(house, cid)] == [True]


async def test_an_error_inside_a_200_means_the_same(house: LivingHouse, scripted: ScriptedServer) -> None:
    refuses = window(3_000)
    scripted.refuses = lambda body: (200, found[1]) if (found := refuses(body)) else None
    cid = await house.conversation()
    for _ in range(4):
        assert await state(house, await house.say(cid, LONG, mode="chat")) == "done"
    assert (await entry(house)).context_tokens == 3_000


async def test_a_page_of_a_gateway_is_told_in_its_own_words(house: LivingHouse, scripted: ScriptedServer) -> None:
    page = "<!DOCTYPE html><html><head><title>api.example.org | 403: Forbidden</title></head><body>no</body></html>"
    scripted.refuses = lambda body: (403, page)
    cid = await house.conversation()
    turn = await house.say(cid, "hello", mode="chat")
    assert await state(house, turn) == "failed"
    assert "403: Forbidden" in await told(house, cid)


async def test_a_route_without_tools_is_no_missing_model(house: LivingHouse, scripted: ScriptedServer) -> None:
    message = "No endpoints found that support tool use. To learn more about provider routing, visit: https://x.example"
    scripted.refuses = lambda body: (404, {"error": {"message": message, "code": 404}}) if body.get("tools") else None
    cid = await house.conversation()
    assert await state(house, await house.say(cid, "add milk to my list")) == "done"
    assert ["no tools" in notice for notice in await notices(house, cid)] == [True]


async def test_a_chat_whose_calls_are_refused_goes_on_with_them_in_words(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    scripted.rules = [rule("milk", Use("task_create", {"title": "Milk"}), "Noted.")]
    await house.say(cid, "add milk to my list")

    def refuses(body: Body) -> tuple[int, Body] | None:
        has_calls = any(one["role"] == "tool" for one in body["messages"])
        return (
            (400, openai_error("Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."))
            if (has_calls)
            else None
        )

    scripted.refuses = refuses
    assert await state(house, await house.say(cid, "and what is on my list?")) == "done"
    assert "in words" in (await notices(house, cid))[-1]


async def test_what_nobody_can_read_is_asked_without_tools_and_then_said(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.refuses = lambda body: (400, openai_error("The gremlin sneezed.")) if body.get("tools") else None
    cid = await house.conversation()
    assert await state(house, await house.say(cid, "add milk to my list")) == "done"
    assert (await entry(house)).tools, "nothing is learned of what nobody said"
    scripted.refuses = lambda body: (400, openai_error("The gremlin sneezed."))
    turn = await house.say(cid, "add bread to my list")
    assert await state(house, turn) == "failed"
    assert "The gremlin sneezed." in await told(house, cid)


async def test_who_borrows_a_model_learns_for_themselves_and_its_owner_is_told_nothing(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await house.cortex.model_sharing.save(
        house.admin,
        {"name": "m", "provider": "openai", "model": "s", "base_url": scripted.base_url},
        "m",
        ShareForm(audience="everybody", limit_tokens="", limit_usd=""),
    )
    scripted.refuses = window(3_000)
    cid = await house.conversation(house.member)
    for _ in range(4):
        await house.say(cid, LONG, user=house.member, mode="chat")
    borrowed = await house.cortex.models.entry(house.member, "m (from ada)")
    assert borrowed.context_tokens == 3_000
    assert (await entry(house)).context_tokens == 8_192


@pytest.mark.parametrize("is_learned", [True, False], ids=["behind what was learned", "ahead of it"])
async def test_a_kill_between_a_refusal_and_the_answer_tells_nothing_twice(
    house: LivingHouse, scripted: ScriptedServer, is_learned: bool
) -> None:
    cid = await house.conversation()
    runs, person = house.cortex.turn_runs, house.admin.id
    row = await house.rows(TurnsRepository).create(NewTurn("turn:1", cid, "hello", **PLAIN_TURN))
    turn = await runs.turn_start.start_turn(person, row.id)
    assert turn is not None
    plan = await runs.ports.planner.plan(turn, Need(round=1))
    past, added = (user(LONG), assistant("Noted."), user(LONG), assistant("Noted.")), (user("hello"),)
    scripted.refuses = window(1_800)
    scripted.fail(Fault(kind="none"), Fault(kind="hang"))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(runs.ports.model_caller.answer(turn, plan, past, added))
        await house.until(cid, "notice")
        await asyncio.to_thread(scripted.wait_for, 2)
        first.cancel()
    if not is_learned:
        await house.cortex.models.learned.forget(person, "m")
    again = await runs.ports.model_caller.answer(turn, plan, past, added)
    assert again.message is not None
    assert len(await notices(house, cid)) == 1
    assert [seen.status for seen in scripted.log[2:]] == ([200] if is_learned else [400, 200])


async def test_the_size_is_asked_of_the_server_where_its_refusal_does_not_say_it(
    tmp_path: Path, scripted: ScriptedServer
) -> None:
    model = {"id": "s", "object": "model", "created": 0, "owned_by": "tests", "meta": {"n_ctx": 2_600}}
    scripted.models = [model]
    async with living_house(tmp_path) as house:
        await house.connect(scripted, context_tokens="100000")
        cid = await house.conversation()
        for _ in range(3):
            await house.say(cid, LONG, mode="chat")
        scripted.refuses = window(2_600, says="the request exceeds the available context size, try increasing it")
        assert await state(house, await house.say(cid, "and the roof?", mode="chat")) == "done"
        text = "m takes 2,600 tokens at once, not the 100,000 set for it: asking again with less of the chat."
        assert await notices(house, cid) == [text]
        assert (await entry(house)).context_tokens == 2_600


async def test_a_window_that_a_summary_meets_first_is_told_too(house: LivingHouse, scripted: ScriptedServer) -> None:
    scripted.rules = [rule("", "Noted.")]
    cid = await house.conversation()
    for _ in range(4):
        await house.say(cid, LONG * 2, mode="chat")
    scripted.refuses = window(4_000)
    assert await state(house, await house.say(cid, "and the roof?", mode="chat")) == "done"
    assert ["takes less" in notice for notice in await notices(house, cid)] == [True]
    assert (await entry(house)).context_tokens == 4_000


async def test_the_next_model_of_a_chain_is_sent_what_it_takes(house: LivingHouse, scripted: ScriptedServer) -> None:
    await house.connect(scripted, name="large", context_tokens="100000")
    await house.connect(
        scripted, name="small", model="small", context_tokens="2000", tools=False, max_output_tokens="150"
    )
    await house.cortex.models.set_chain(house.admin, ["large", "small"])
    cid = await house.conversation()
    for _ in range(4):
        await house.say(cid, LONG)

    def refuses(body: Body) -> tuple[int, Body] | None:
        if body["model"] != "small":
            return 401, openai_error("Incorrect API key provided.")
        return (400, openai_error("small does not support tools")) if body.get("tools") else window(2_000)(body)

    scripted.refuses = refuses
    asked = len(scripted.log)
    assert await state(house, await house.say(cid, "add milk to my list")) == "done"
    small = [seen.status for seen in scripted.log[asked:] if seen.body["model"] == "small"]
    assert small == [200]
