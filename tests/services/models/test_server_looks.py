"""A server of one's own is looked at again: it was started anew with another window, template or number of slots."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.address import named
from cortex.base.errors import ProviderError
from cortex.base.messages import Usage, assistant
from cortex.base.model import LOCAL_FIRST_S, LOCAL_WINDOW_TOKENS, ModelEntry
from cortex.base.turn import Reply
from cortex.ports.model_lists import ModelServer, ServerFacts
from cortex.providers import look_at_model
from cortex.services.models.learned import ModelFact
from cortex.services.models.server_looks import AGAIN_S, ServerLooks, contradicts
from tests import model_lists
from tests.living_house import LivingHouse, living_house
from tests.model_lists import QWEN, ModelLists, Page

GEMMA = "gemma-3-4b"


def llama_cpp(window: int = 8_192, slots: int = 1, *, tools: bool = True) -> dict[str, Page]:
    status, props = model_lists.LLAMA_CPP["GET /props"][:2]
    told = {
        **props,
        "default_generation_settings": {"id": 0, "n_ctx": window, "params": {}},
        "total_slots": slots,
        "chat_template_caps": {"supports_tools": tools},
    }
    return {**model_lists.LLAMA_CPP, "GET /props": (status, told)}


@pytest.fixture
def server() -> Iterator[ModelLists]:
    with ModelLists(pages=llama_cpp()) as double:
        yield double


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


async def entry_of(house: LivingHouse, name: str = GEMMA) -> ModelEntry:
    return await house.cortex.models.entry(house.admin, name)


async def save(house: LivingHouse, server: ModelLists, **more: Any) -> None:
    form = {"name": GEMMA, "provider": "openai", "model": GEMMA, "base_url": server.base_url, **more}
    await house.cortex.models.save(house.admin, form)


async def connected(house: LivingHouse, server: ModelLists) -> ModelEntry:
    await house.cortex.model_connecting.connect(house.admin, "other", server.base_url)
    return (await house.cortex.model_connecting.use(house.admin, "openai", server.base_url, [GEMMA]))[0]


async def test_a_server_that_was_started_anew_is_known_ahead_of_the_first_answer(
    house: LivingHouse, server: ModelLists
) -> None:
    before = await connected(house, server)
    assert (before.context_tokens, before.tools, before.typed) == (8_192, True, ())
    server.pages = llama_cpp(4_096, 3, tools=False)
    cid = await house.conversation()
    await house.say(cid, "add milk to my shopping list")
    after = await entry_of(house)
    assert (after.context_tokens, after.tools, after.drops_tools, after.slots) == (4_096, False, True, 3)
    assert after.max_output_tokens <= 2_048 < before.max_output_tokens
    (start,) = await house.events(cid, "turn.start")
    assert start.payload["is_slow"], "the page says that the first words may take minutes"
    (receipt,) = await house.receipts(cid)
    assert receipt["no_tools"]["why"] == "template"
    assert receipt["sent"] == []


async def test_a_server_is_looked_at_once_and_by_one_request(house: LivingHouse, server: ModelLists) -> None:
    await save(house, server)
    server.asked.clear()
    cid = await house.conversation()
    for text in ("hello", "hello again", "thanks"):
        await house.say(cid, text)
    assert [each for each in server.asked if not each.endswith("/chat/completions")] == ["GET /props"]


async def test_what_a_person_set_stands_over_what_the_server_says(house: LivingHouse, server: ModelLists) -> None:
    await save(house, server, context_tokens=6_000)
    await house.cortex.models.send_tools(house.admin, GEMMA)
    server.pages = llama_cpp(4_096, tools=False)
    cid = await house.conversation()
    await house.say(cid, "add milk to my shopping list")
    entry = await entry_of(house)
    assert (entry.context_tokens, entry.tools, entry.slots) == (6_000, True, 1)
    assert "task_create" in [one["name"] for one in (await house.receipts(cid))[0]["sent"]]


async def test_saving_the_form_again_does_not_make_the_servers_word_the_persons(
    house: LivingHouse, server: ModelLists
) -> None:
    await connected(house, server)
    server.pages = llama_cpp(tools=False)
    await house.say(await house.conversation(), "hello")
    form = {"name": GEMMA, "provider": "openai", "model": GEMMA, "base_url": server.base_url}
    await house.cortex.models.save(house.admin, {**form, "tools": "", "max_rounds": "3"} | {"tools": False}, GEMMA)
    assert (await entry_of(house)).drops_tools
    await house.cortex.models.save(house.admin, {**form, "tools": True}, GEMMA)
    assert (await entry_of(house)).tools, "whoever switches them on has them sent all the same"


async def test_a_look_that_hangs_holds_no_turn_and_a_restart_looks_again(tmp_path: Path) -> None:
    with ModelLists(pages=llama_cpp(5_000), hangs_at="/props") as server:
        async with living_house(tmp_path / "home") as house:
            await save(house, server)
            await house.say(await house.conversation(), "hello")
            assert (await entry_of(house)).context_tokens == LOCAL_WINDOW_TOKENS
        server.hangs_at = ""
        async with living_house(tmp_path / "home") as house:
            await house.say(await house.conversation(), "hello")
            assert (await entry_of(house)).context_tokens == 5_000


async def test_what_was_learned_of_the_server_as_it_was_goes_with_it(house: LivingHouse, server: ModelLists) -> None:
    await connected(house, server)
    learned = house.cortex.models.learned
    await learned.learn(house.admin.id, GEMMA, [ModelFact(what="context_tokens", value="2048"), ModelFact(what="sees")])
    assert (await entry_of(house)).context_tokens == 2_048
    server.pages = llama_cpp(16_384)
    await house.say(await house.conversation(), "hello")
    entry = await entry_of(house)
    assert (entry.context_tokens, entry.learned) == (16_384, ("sees",))


async def test_another_program_at_the_same_place_is_known_as_what_it_is(house: LivingHouse, server: ModelLists) -> None:
    assert (await connected(house, server)).engine == "llamacpp"
    server.pages = model_lists.ollama({GEMMA: 6_000}, **{GEMMA: QWEN})
    await house.say(await house.conversation(), "hello")
    entry = await entry_of(house)
    assert (entry.engine, entry.context_tokens) == ("ollama", 6_000)


def openai_list(*names: str) -> dict[str, Any]:
    return model_lists.whole(*map(model_lists.openai_row, names))


def litellm_info(name: str, *windows: int) -> dict[str, Any]:
    rows = [{"model_name": name, "model_info": {"mode": "chat", "max_input_tokens": window}} for window in windows]
    return {"data": rows}


@pytest.mark.parametrize(
    ("pages", "model", "facts"),
    [
        (llama_cpp(4_096, 2), GEMMA, ServerFacts(engine="llamacpp", context_tokens=4_096, tools=True, slots=2)),
        (
            model_lists.ollama({"qwen3:8b": 16_384}, qwen3_8b=QWEN),
            "qwen3:8b",
            ServerFacts(engine="ollama", context_tokens=16_384, tools=True),
        ),
        (
            model_lists.LM_STUDIO,
            "qwen2-vl",
            ServerFacts(engine="lmstudio", context_tokens=4_096, tools=True),
        ),
        (
            {"GET /v1/models": (200, model_lists.VLLM)},
            "Qwen/Qwen3-8B",
            ServerFacts(engine="vllm", context_tokens=40_960),
        ),
        (
            {"GET /v1/models": (200, openai_list("big")), "GET /model/info": (200, litellm_info("big", 12_000, 9_000))},
            "big",
            ServerFacts(engine="litellm", context_tokens=9_000),
        ),
        ({"GET /v1/models": (200, model_lists.VLLM)}, "another", None),
        ({"GET /props": (200, b"<html>")}, GEMMA, None),
        (llama_cpp(0, 0), GEMMA, ServerFacts(engine="llamacpp", tools=True)),
        ({}, GEMMA, None),
    ],
    ids=["llama.cpp", "ollama", "lm studio", "vllm", "litellm", "not its model", "no JSON", "no figures", "no page"],
)
async def test_each_server_says_it_in_its_own_form(
    pages: dict[str, Page], model: str, facts: ServerFacts | None
) -> None:
    with ModelLists(pages=pages) as double:
        place = ("127.0.0.1", int(double.origin.rpartition(":")[2]))
        server = ModelServer(provider="openai", base_url=double.base_url, policy=named(place), limit_s=5)
        assert await look_at_model(server, model) == facts
        first = len(double.asked)
        assert await look_at_model(replace(server, engine=facts.engine if facts else ""), model) == facts
        assert not facts or len(double.asked) - first <= 2, "where it is known what it is, it is asked little"


async def test_a_server_that_is_known_by_its_list_alone_is_asked_nothing_else() -> None:
    row = model_lists.openai_row("big", context_length=16_000)
    with ModelLists(pages={"GET /v1/models": (200, model_lists.whole(row))}) as double:
        place = ("127.0.0.1", int(double.origin.rpartition(":")[2]))
        server = ModelServer(
            provider="openai", base_url=double.base_url, engine="openrouter", policy=named(place), limit_s=5
        )
        assert await look_at_model(server, "big") == ServerFacts(engine="", context_tokens=16_000)
        assert double.asked == ["GET /v1/models"]


ENTRY = ModelEntry(name="m", provider="openai", model="m", base_url="http://127.0.0.1:9/v1", context_tokens=4_096)
WELL = Reply(message=assistant("yes"), usage=Usage(input_tokens=1_000, output_tokens=20))


@pytest.mark.parametrize(
    ("reply", "sent_tokens", "is_odd"),
    [
        (WELL, 1_100, False),
        (replace(WELL, usage=Usage(input_tokens=5_000)), 5_000, True),
        (WELL, 3_000, True),
        (replace(WELL, finish="length"), 1_000, True),
        (Reply(failure="m: no.", failure_kind="request"), 1_000, True),
        (Reply(failure="m: away.", failure_kind="connection"), 1_000, True),
        (Reply(failure="m: no.", failure_kind="auth"), 1_000, False),
        (Reply(failure="Used up.", failure_kind="budget"), 1_000, False),
    ],
    ids=["well", "more than fits", "cut by the server", "cut answer", "refused", "away", "key", "budget"],
)
def test_which_replies_contradict_what_is_known(reply: Reply, sent_tokens: int, is_odd: bool) -> None:
    assert contradicts(ENTRY, reply, sent_tokens) is is_odd


async def test_what_contradicts_is_looked_at_again_but_never_twice_in_some_minutes(house: LivingHouse) -> None:
    seen, at_s = [], [0.0]

    async def look(server: ModelServer, model: str) -> ServerFacts | None:
        seen.append(server.engine)
        return ServerFacts(engine="llamacpp")

    models = house.cortex.models
    looks = ServerLooks(models.store, look, models.policy, ticks=lambda: at_s[0])
    odd = Reply(failure="m: no.", failure_kind="request")
    for moment_s in (0.0, 10.0, AGAIN_S - 1, AGAIN_S + 1):
        at_s[0] = moment_s
        await looks.ahead(house.admin, ENTRY)
        looks.heard(house.admin, ENTRY, odd, 100)
        await asyncio.sleep(0)
    await looks.close()
    assert seen == ["", "llamacpp"]


@pytest.mark.parametrize("said", [0, 100, 10**30])
async def test_a_window_that_no_model_has_changes_nothing(house: LivingHouse, server: ModelLists, said: int) -> None:
    before = await connected(house, server)
    server.pages = {"/v1/models": (200, {"data": [{"id": GEMMA, "object": "model", "max_model_len": said}]})}
    await house.say(await house.conversation(), "add milk to my shopping list")
    after = await entry_of(house)
    assert after.context_tokens == before.context_tokens


async def test_a_look_that_fails_is_no_matter_of_the_turn(house: LivingHouse) -> None:
    async def look(server: ModelServer, model: str) -> ServerFacts | None:
        raise ProviderError("m: away.", kind="connection")

    models = house.cortex.models
    looks = ServerLooks(models.store, look, models.policy)
    assert not await looks.ahead(house.admin, ENTRY)
    assert not await looks.ahead(house.admin, replace(ENTRY, base_url="https://api.openai.com/v1"))
    await looks.close()


async def test_a_local_model_has_minutes_for_its_first_words(house: LivingHouse, server: ModelLists) -> None:
    await save(house, server)
    assert (await entry_of(house)).first_s == LOCAL_FIRST_S
    await save_again(house, server, timeout_s=30)
    assert (await entry_of(house)).first_s is None
    assert (await entry_of(house)).timeout_s == 30


async def save_again(house: LivingHouse, server: ModelLists, **more: Any) -> None:
    form = {"name": GEMMA, "provider": "openai", "model": GEMMA, "base_url": server.base_url, **more}
    await house.cortex.models.save(house.admin, form, GEMMA)
