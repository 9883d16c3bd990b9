"""Further names for models, and embeddings: set by a person, asked for by programs, within their budget."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from cortex.base.errors import NotFound, UserError
from cortex.services.models.sharing import ShareForm
from cortex.storage.rounds import RoundsRepository
from tests.embedding_server import KEY, MODEL, EmbeddingServer, vector
from tests.program_door import Door, program_door
from tests.scripted_server import ScriptedServer, rule


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as opened:
        yield opened


@pytest.fixture
async def door(tmp_path: Path, scripted: ScriptedServer, server: EmbeddingServer) -> AsyncIterator[Door]:
    scripted.rules = [rule("hello", "Hello there.")]
    async with program_door(tmp_path / "home", scripted) as opened:
        form = {"name": "far", "provider": "openai", "model": "chatty", "base_url": server.base_url, "api_key": KEY}
        await opened.house.cortex.models.save(opened.house.admin, form)
        yield opened


async def name(door: Door, name: str, model: str, embeds: str = "") -> None:
    await door.house.cortex.model_names.add(door.house.admin, {"name": name, "model": model, "embeds": embeds})


async def test_a_name_that_a_program_insists_on_stands_for_a_model(door: Door, scripted: ScriptedServer) -> None:
    client, http = await door.client(), await door.http()
    with pytest.raises(openai.NotFoundError):
        await client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hello"}])
    await name(door, "gpt-4o", "m")
    answer = await client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hello"}])
    assert (answer.choices[0].message.content, answer.model) == ("Hello there.", "gpt-4o")
    assert (await client.responses.create(model="gpt-4o", input="hello")).output_text == "Hello there."
    asked = {"model": "gpt-4o:latest", "messages": [{"role": "user", "content": "hello"}], "stream": False}
    assert (await http.post("/api/chat", json=asked)).json()["message"]["content"] == "Hello there."
    assert [one.id async for one in client.models.list()] == ["cortex", "m", "far", "gpt-4o"]
    assert (await client.models.retrieve("gpt-4o")).id == "gpt-4o"
    rounds = door.house.rows(RoundsRepository)
    assert {one.model for turn in await door.turns() for one in await rounds.of_turn(turn.id)} == {"m"}


async def test_a_star_stands_for_every_unknown_name_and_a_model_goes_before_it(door: Door) -> None:
    names, ada = door.house.cortex.model_names, door.house.admin
    await name(door, "*", "cortex")
    await name(door, "gpt-4o", "m")
    assert [await names.target(ada, one) for one in ("o9", "gpt-4o", "m", "m:latest", "cortex")] == [
        "cortex",
        "m",
        "m",
        "m",
        "cortex",
    ]
    await door.house.cortex.models.save(ada, {"name": "gpt-4o", "provider": "anthropic", "model": "c"})
    assert await names.target(ada, "gpt-4o") == "gpt-4o"


async def test_a_name_follows_its_model_and_goes_with_it(door: Door) -> None:
    cortex, ada = door.house.cortex, door.house.admin
    await name(door, "gpt-4o", "far")
    form = {"name": "near", "provider": "openai", "model": "chatty", "base_url": "http://127.0.0.1:9/v1"}
    await cortex.models.save(ada, {**form, "api_key": "k"}, "far")
    assert await cortex.model_names.target(ada, "gpt-4o") == "near"
    await cortex.models.remove(ada, "near")
    assert await cortex.model_names.list(ada) == ()
    with pytest.raises(NotFound):
        await cortex.model_names.remove(ada, "gpt-4o")
    await name(door, "gpt-4o", "m")
    with pytest.raises(NotFound, match=r"Available: cortex\."):  # names are a person's own
        await cortex.model_names.target(door.house.member, "gpt-4o")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"name": "cortex", "model": "m"}, "already"),
        ({"name": "m", "model": "far"}, "already"),
        ({"name": "x", "model": "gone"}, "no model"),
        ({"name": "x"}, "model"),
        ({"name": "a\nb", "model": "m"}, "name"),
        ({"name": "x", "model": "cortex", "embeds": "e"}, "one of your models"),
    ],
)
async def test_a_name_that_means_nothing_is_refused(door: Door, values: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as refused:
        await door.house.cortex.model_names.add(door.house.admin, values)
    assert words in refused.value.message
    assert await door.house.cortex.model_names.list(door.house.admin) == ()


async def test_embeddings_come_from_the_person_s_server_and_are_booked(door: Door, server: EmbeddingServer) -> None:
    client, http = await door.client(), await door.http(name="other")
    await name(door, "text-embedding-3-small", "far", MODEL)
    found = await client.embeddings.create(model="text-embedding-3-small", input=["a", "bcd"])
    assert [one.embedding for one in found.data] == [vector("a", 4), vector("bcd", 4)]
    assert (found.usage.prompt_tokens, found.model) == (7, "text-embedding-3-small")
    plain = {"model": "text-embedding-3-small", "input": "abc", "encoding_format": "float", "dimensions": 3}
    assert (await http.post("/v1/embeddings", json=plain)).json()["data"][0]["embedding"] == vector("abc", 3)
    local = {"model": "text-embedding-3-small:latest", "input": ["a"]}
    assert (await http.post("/api/embed", json=local)).json()["embeddings"] == [vector("a", 4)]
    early = {"model": "text-embedding-3-small", "prompt": "ab"}
    assert (await http.post("/api/embeddings", json=early)).json() == {"embedding": vector("ab", 4)}
    spent = {view.token.name: view.spent.tokens for view in await door.house.cortex.api_tokens.list(door.house.admin)}
    assert spent == {"p": 7, "other": 21}
    assert await door.turns() == []
    assert all(body["encoding_format"] == "float" for body in server.asked)


async def test_embeddings_without_a_model_for_them_are_refused_in_words(door: Door, server: EmbeddingServer) -> None:
    client = await door.client()
    with pytest.raises(openai.NotFoundError, match="Names for models"):
        await client.embeddings.create(model="text-embedding-3-small", input="a")
    with pytest.raises(openai.InternalServerError, match="makes no embeddings with 'chatty'"):
        await client.embeddings.create(model="far", input="a")
    await door.house.cortex.models.save(door.house.admin, {"name": "claude", "provider": "anthropic", "model": "c"})
    with pytest.raises(openai.BadRequestError, match="makes no embeddings"):
        await client.embeddings.create(model="claude", input="a")
    await name(door, "embed", "far", MODEL)
    with pytest.raises(openai.BadRequestError, match="can't answer"):
        await client.chat.completions.create(model="embed", messages=[{"role": "user", "content": "hello"}])
    server.asked.clear()
    wrong: list[dict[str, Any]] = [{"input": ""}, {"input": []}, {"input": ["a", ""]}, {"input": "a", "dimensions": 0}]
    for bad in (*wrong, {}):
        with pytest.raises(openai.BadRequestError):
            await client.post("/embeddings", body={"model": "embed", **bad}, cast_to=object)
    assert server.asked == []


ODD: list[tuple[int, Any, str]] = [
    (429, {"error": {"message": "slow down"}}, "slow down"),
    (500, "<html>", "has a problem"),
    (200, "<html>", "are not the embeddings"),
    (200, {"error": "model is loading"}, "model is loading"),
    (200, {"data": []}, "are not the embeddings"),
    (200, {"data": [{"index": 0, "embedding": ["x"]}]}, "are not the embeddings"),
    (200, '{"data": [{"index": 0, "embedding": [1, 1e999]}]}', "are not the embeddings"),
    (200, '{"data": [{"index": 0, "embedding": [NaN]}]}', "are not the embeddings"),
    (200, {"data": [{"index": 0, "embedding": []}]}, "are not the embeddings"),
    (200, {"data": [{"index": 0}, 3]}, "are not the embeddings"),
    (200, None, "are not the embeddings"),
]


@pytest.mark.parametrize(("status", "body", "words"), ODD, ids=[str(n) for n in range(len(ODD))])
async def test_what_the_server_says_instead_is_told_and_nothing_stays_held(
    door: Door, server: EmbeddingServer, status: int, body: Any, words: str
) -> None:
    client = await door.client(limit_tokens=20)
    await name(door, "embed", "far", MODEL)
    server.answer = (status, body)
    with pytest.raises(openai.InternalServerError, match=words):
        await client.embeddings.create(model="embed", input="a b c d e f g h i j k")
    server.answer = None
    assert (await client.embeddings.create(model="embed", input="a b c d e f g h i j k")).data


async def test_embeddings_stay_within_the_token_s_budget(door: Door, server: EmbeddingServer) -> None:
    client = await door.client(limit_tokens=7)
    await name(door, "embed", "far", MODEL)
    await client.embeddings.create(model="embed", input="a")
    with pytest.raises(openai.RateLimitError) as spent:
        await client.embeddings.create(model="embed", input="a")
    assert spent.value.code == "insufficient_quota"
    assert len(server.asked) == 1


async def test_a_shared_model_answers_and_its_server_embeds_nothing(door: Door, server: EmbeddingServer) -> None:
    form = {"name": "far", "provider": "openai", "model": "chatty", "base_url": server.base_url}
    await door.house.cortex.model_sharing.save(door.house.admin, form, "far", ShareForm(audience="everybody"))
    names, bob = door.house.cortex.model_names, door.house.member
    (shared,) = [one for one in await names.targets(bob) if one != "cortex"]
    await names.add(bob, {"name": "gpt-4o", "model": shared})
    assert await names.target(bob, "gpt-4o") == shared
    with pytest.raises(UserError, match="for answers only"):
        await names.add(bob, {"name": "embed", "model": shared, "embeds": MODEL})
    with pytest.raises(UserError, match="for answers only"):
        await names.embedder(bob, shared)
