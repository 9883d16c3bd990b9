import asyncio
import logging
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from cortex.base.errors import EncoderFailed, UserError
from cortex.base.settings import Settings, load_settings
from cortex.base.user import User
from cortex.integrations.sentences import Sentences
from cortex.selection.index import sentence_models
from cortex.selection.registry.snapshot import snapshot_of
from cortex.selection.types import Snapshot
from cortex.services.roles.roles import Roles
from cortex.services.tools.edits import with_encoder
from cortex.services.tools.encoders import NOT_READY, Encoders
from cortex.services.tools.tools import ToolsService
from cortex.storage.home import Homes
from cortex.tools import load
from tests.databases import database_of
from tests.file_server import file_server
from tests.patience import PATIENCE_S
from tests.small_encoder import SmallModel, sentences

ANA = User(id="ana", name="ana", rank="admin")
FILES = {"/model.onnx": b"a model", "/tokenizer.json": b"a tokenizer"}
DIGESTS = (sha256(b"a model").hexdigest(), sha256(b"a tokenizer").hexdigest())
A_PLAN = """
import asyncio, sys
from pathlib import Path
from cortex.app import Cortex
from cortex.base.settings import load_settings
from cortex.base.user import User

async def main():
    async with Cortex.at_rest(load_settings(None, home=Path(sys.argv[1]), port=0)) as cortex:
        ana = User(id="ana", name="ana", rank="admin")
        for recipe in ("cortex", "vector"):
            told = await cortex.tools.explain(ana, "orchestrator", "add milk to my list", recipe=recipe)
            assert "sentence model" not in told["labels"]
        await cortex.tools.discover(ana, "orchestrator", "a shopping list")
    heavy = ("onnxruntime", "tokenizers", "cortex.integrations.sentences")
    print([name for name in heavy if name in sys.modules])

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return snapshot_of(load())


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a house that has a model in its own folder."""
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder/model.onnx").write_bytes(b"told by the small model")
    return load_settings(None, home=tmp_path, port=0)


@pytest.fixture
def model(request: pytest.FixtureRequest) -> SmallModel:
    return SmallModel(request.node.name)


def opened(settings: Settings, model: SmallModel, *, is_hasty: bool = False) -> Encoders:
    def made(folder: Path, kept_in: Path, limit_s: float | None) -> Sentences:
        return sentences(kept_in, model, limit_s=limit_s)

    return Encoders(settings, is_hasty=is_hasty, opened=made)


async def until_ready(house: Encoders, snapshot: Snapshot) -> Snapshot:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            made, skipped = await house.over(snapshot)
            if not skipped:
                return made
            await asyncio.sleep(0.01)


async def test_without_a_folder_the_snapshot_stays_the_very_same(snapshot: Snapshot, tmp_path: Path) -> None:
    house = Encoders(load_settings(None, home=tmp_path, port=0))
    made, skipped = await house.over(snapshot)
    assert made is snapshot
    assert skipped == ""
    assert not house.state().is_there
    house.close()


def test_without_a_folder_plans_and_searches_load_nothing_for_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", A_PLAN, str(tmp_path)],
        env={**os.environ, "CORTEX_DATABASE_URL": database_of(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


async def test_a_command_waits_until_it_is_ready(settings: Settings, model: SmallModel, snapshot: Snapshot) -> None:
    house = opened(settings, model)
    made, skipped = await house.over(snapshot)
    assert (made.encoder, skipped) == (model.key, "")
    assert (await house.over(snapshot))[0] is made
    house.close()


async def test_a_message_goes_on_while_it_is_made_ready_and_the_next_has_it(
    settings: Settings, model: SmallModel, snapshot: Snapshot, caplog: pytest.LogCaptureFixture
) -> None:
    house = opened(settings, model, is_hasty=True)
    model.is_free.clear()
    assert await house.over(snapshot) == (snapshot, NOT_READY)
    assert await house.over(snapshot) == (snapshot, NOT_READY)
    assert caplog.messages == []
    model.is_free.set()
    assert (await until_ready(house, snapshot)).encoder == model.key
    house.close()


async def test_a_model_that_fails_is_left_out_and_logged_once(
    settings: Settings, model: SmallModel, snapshot: Snapshot, caplog: pytest.LogCaptureFixture
) -> None:
    model.failure = RuntimeError("out of memory")
    house = opened(settings, model)
    for _ in range(2):
        over, failure = await house.over(snapshot)
        assert (over, "out of memory" in failure) == (snapshot, True)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert ["out of memory" in message for message in caplog.messages] == [True]
    house.close()


async def test_the_receipt_says_when_it_was_left_out(settings: Settings, model: SmallModel, tmp_path: Path) -> None:
    model.failure = RuntimeError("out of memory")
    house = opened(settings, model)
    tools = ToolsService(
        registry=load(), wired=frozenset({"Tasks"}), roles=Roles(load(), Homes(tmp_path)), encoders=house
    )
    told = await tools.explain(ANA, "orchestrator", "what is on my list", recipe="vector")
    assert "out of memory" in told["labels"]["sentence model"]
    plain = await tools.explain(ANA, "orchestrator", "what is on my list", recipe="all")
    assert "sentence model" not in plain["labels"]
    house.close()


async def test_a_plan_uses_it(settings: Settings, model: SmallModel, tmp_path: Path) -> None:
    house = opened(settings, model)
    tools = ToolsService(
        registry=load(), wired=frozenset({"Tasks"}), roles=Roles(load(), Homes(tmp_path)), encoders=house
    )
    told = await tools.explain(ANA, "orchestrator", "what is on my list", recipe="vector")
    assert "sentence model" not in told["labels"]
    assert "what is on my list" in model.asked
    house.close()


async def test_a_closed_house_takes_its_model_along(settings: Settings, model: SmallModel, snapshot: Snapshot) -> None:
    house = opened(settings, model)
    await house.over(snapshot)
    assert sentence_models.named(model.key).key == model.key
    house.close()
    with pytest.raises(EncoderFailed, match="is not here"):
        sentence_models.named(model.key)


async def test_one_house_closes_none_of_another(settings: Settings, model: SmallModel, snapshot: Snapshot) -> None:
    first, second = opened(settings, model), opened(settings, model)
    await first.over(snapshot)
    await second.over(snapshot)
    first.close()
    (row,) = sentence_models.named(with_encoder(snapshot, model.key).encoder).asked(["hello"])
    assert len(row) == model.dimensions
    second.close()


def test_its_state_is_told_by_trying_it(settings: Settings, model: SmallModel) -> None:
    state = opened(settings, model).state()
    assert (state.is_there, state.failed, state.key, state.dimensions) == (True, "", model.key, model.dimensions)
    model.failure = RuntimeError("out of memory")
    assert "out of memory" in opened(settings, model).state().failed


def test_a_named_folder_counts_before_the_houses_own(settings: Settings, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    house = Encoders(load_settings(None, home=tmp_path, port=0, encoder_folder=str(other)))
    assert (Encoders(settings).folder, house.folder) == (tmp_path / "encoder", other)


async def test_it_is_installed_into_home_from_a_typed_address(tmp_path: Path) -> None:
    settings = load_settings(None, home=tmp_path, port=0)
    with file_server(FILES) as server:
        folder = await Encoders(settings).install(server.address, DIGESTS)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        name.strip("/"): data for name, data in FILES.items()
    }
    assert folder == Encoders(settings).folder
    assert not (await asyncio.to_thread(Encoders(settings).state)).key


async def test_another_address_without_digests_must_have_the_usual_model(tmp_path: Path) -> None:
    house = Encoders(load_settings(None, home=tmp_path, port=0))
    with file_server(FILES) as server, pytest.raises(UserError, match="has another checksum than expected"):
        await house.install(server.address, None)
    assert not house.folder.exists()


async def test_digests_need_an_address(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--from"):
        await Encoders(load_settings(None, home=tmp_path, port=0)).install("", DIGESTS)
