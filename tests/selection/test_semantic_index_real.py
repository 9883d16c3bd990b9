"""Choosing by meaning with the real model: what a small one can only pretend."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from cortex.integrations.sentences import Sentences
from cortex.selection.discover import rank
from cortex.selection.index import sentence_models
from cortex.selection.index.index import index_of
from cortex.selection.pipeline import plan
from cortex.selection.types import Domain, PlanInput, RoleView, Snapshot
from cortex.selection.votes.semantic_votes import prepared
from cortex.services.tools.edits import with_encoder
from tests.real_encoder import real_folder
from tests.selection.baseline_house import sent
from tests.selection.made import NOW, entry

NEW = (
    entry("soil_read", "garden", "Read the moisture sensors of the flower beds", ("bed",)),
    entry("aquarium_feed", "garden", "Give the fish their food", ("tank",)),
)
LIKELY = [
    ("do my roses need watering", "soil_read"),
    ("how dry is the earth around my tulips", "soil_read"),
    ("the goldfish look hungry", "aquarium_feed"),
]
ELSEWHERE = ["add milk to my shopping list", "hello there", "what is the capital of Peru"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sentences]:
    place = tmp_path_factory.mktemp("real")
    made = Sentences(real_folder(place / "encoder"), place, limit_s=None)
    sentence_models.register(made)
    yield made
    sentence_models.unregister(made)
    made.close()


@pytest.fixture(scope="module")
def grown(shipped: Snapshot) -> Snapshot:
    own = tuple(each for each in shipped.entries if not each.is_meta)
    metas = tuple(each for each in shipped.entries if each.is_meta)
    domains = (*shipped.domains, Domain(name="garden", summary="the garden", tokens=4))
    return replace(shipped, version=f"{shipped.version} and a garden", entries=(*own, *NEW, *metas), domains=domains)


@pytest.fixture(scope="module")
def snapshot(grown: Snapshot, encoder: Sentences) -> Snapshot:
    made = with_encoder(grown, encoder.key)
    assert prepared(made)
    return made


def wanting(message: str, snapshot: Snapshot) -> PlanInput:
    return PlanInput(
        snapshot=snapshot,
        ready=tuple(each.name for each in snapshot.entries),
        role=RoleView(name="house", tools=tuple(each.name for each in snapshot.domains)),
        is_admin=True,
        message=message,
        now=NOW,
        turn="t1",
        model="m",
    )


@pytest.mark.parametrize(("said", "wanted"), LIKELY)
def test_a_new_tool_is_sent_for_other_words(said: str, wanted: str, snapshot: Snapshot) -> None:
    assert wanted in sent(plan(wanting(said, snapshot)))


@pytest.mark.parametrize("said", ELSEWHERE)
def test_a_new_tool_is_not_sent_for_what_means_something_else(said: str, snapshot: Snapshot) -> None:
    assert not {each.name for each in NEW} & set(sent(plan(wanting(said, snapshot))))


@pytest.mark.parametrize(("said", "wanted"), LIKELY)
def test_a_search_in_other_words_finds_it_first(said: str, wanted: str, snapshot: Snapshot) -> None:
    names = [each.name for each in snapshot.entries]
    assert wanted in [hit.name for hit in rank(said, snapshot, names, 2)]


def test_what_a_likeness_is_worth_is_plain(snapshot: Snapshot) -> None:
    worth = index_of(snapshot).curves
    assert worth is not None
    for curve in (worth.bare, worth.told):
        for likeness, is_wanted in ((0.1, False), (0.7, True)):
            told = curve.like * likeness + curve.around(likeness, 0.1)
            assert told > 0 if is_wanted else told < -4
