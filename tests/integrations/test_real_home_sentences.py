"""What a real Home Assistant makes of sentences in seven languages: `make homeassistant` installs it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cortex.integrations.home_assistant.allowed import AllowList
from cortex.integrations.home_assistant.commands import understand
from cortex.integrations.home_assistant.commands.sentences import HomeSentences
from cortex.integrations.home_assistant.commands.understand import PersonsCommands
from cortex.integrations.home_assistant.home_assistant import HomeConnection, PersonsHome
from cortex.integrations.home_assistant.server import server_at
from tests.integrations.home_sentences import FIVE, house_in, in_words, sentences_in, verdict
from tests.integrations.test_home_sentences import OFF, RIGHT
from tests.patience import PATIENCE_S
from tests.real_home_assistant import RealHome, furnished_home, pythons_of_home_assistant, real_home

pytestmark = pytest.mark.full
LESS = {("2024.3.3", "de"): 1}  # a room stands on a floor since 2024.4
OWN = """
language: en
intents:
  HassTurnOff:
    data:
      - sentences: ["movie time"]
        slots: {name: "Hallway"}
  MovieNight:
    data:
      - sentences: ["start the film evening"]
"""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A house on a busy machine, that reads a language for the first time."""
    monkeypatch.setattr(understand, "SENTENCE_S", PATIENCE_S)


@asynccontextmanager
async def reader(home: RealHome) -> AsyncIterator[tuple[PersonsCommands, HomeConnection]]:
    made = HomeConnection(server_at(home.url, home.token))
    async with made.index.client.running():
        sentences = HomeSentences(made.index.client)
        yield PersonsCommands(named=made.named, may=AllowList().in_house, sentences=sentences), made


@pytest.mark.parametrize("language", ["en", "de", *FIVE])
@pytest.mark.parametrize("version", pythons_of_home_assistant())
async def test_a_real_one_does_nothing_wrong_and_much_right(version: str, language: str, tmp_path: Path) -> None:
    with furnished_home(tmp_path, version, house_in(language)) as home:
        async with reader(home) as (commands, made):
            before = {one.id: one.state for one in (await made.index.house()).entities.values()}
            judged = [
                verdict(in_words(await commands.understand(said)), wanted) for said, wanted in sentences_in(language)
            ]
            assert {one.id: one.state for one in (await made.index.house()).entities.values()} == before
    assert [one for one in judged if one.startswith("wrong")] == []
    assert judged.count("right") == RIGHT[version][language] - LESS.get((version, language), 0)


@pytest.fixture(scope="module", params=pythons_of_home_assistant())
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealHome]:
    folder = tmp_path_factory.mktemp("house")
    (folder / "custom_sentences" / "en").mkdir(parents=True)
    (folder / "custom_sentences" / "en" / "own.yaml").write_text(OWN, encoding="utf-8")
    with real_home(folder, request.param) as home:
        yield home


async def test_what_it_means_is_done_by_a_call_of_its_service(real: RealHome) -> None:
    async with reader(real) as (commands, made):
        socket = await made.index.client.socket()
        await socket.command("config/area_registry/create", name="Cuisine")
        for id in ("light.kitchen_sink", "light.kitchen_table"):
            await socket.command("config/entity_registry/update", entity_id=id, area_id="cuisine")
        home = PersonsHome(made, AllowList())
        for said, state in (("Allume la lumière de la cuisine", "on"), (OFF, "off")):
            found = await commands.understand(said)
            assert found is not None
            (order,) = found.orders
            after = await home.call(order.service, order.ids, order.data)
            assert {one.id: one.state for one in after} == dict.fromkeys(order.ids, state)
            assert order.ids == ("light.kitchen_sink", "light.kitchen_table")


async def test_the_houses_own_sentences_are_read_and_what_only_it_knows_is_the_models(real: RealHome) -> None:
    async with reader(real) as (commands, _):
        assert in_words(await commands.understand("movie time")) == "light.turn_off light.hall"
        assert await commands.understand("start the film evening") is None


async def test_how_many_languages_it_reads_is_counted(real: RealHome) -> None:
    async with reader(real) as (_, made):
        text = await HomeSentences(made.index.client).languages_read()
    assert int(text.split()[-2]) > 40


@pytest.mark.parametrize("version", pythons_of_home_assistant())
async def test_one_without_its_conversation_part_leaves_sentences_to_the_model(version: str, tmp_path: Path) -> None:
    with furnished_home(tmp_path, version, house_in("fr"), lacks=["conversation"]) as home:
        async with reader(home) as (commands, made):
            assert await commands.understand(OFF) is None
            assert in_words(await commands.understand("Turn on Robi")) == "vacuum.start vacuum.robi"
            assert "not read sentences" in await HomeSentences(made.index.client).languages_read()
