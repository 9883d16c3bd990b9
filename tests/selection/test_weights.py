"""The model's file and its scores: whole or refused, the same bytes for the same model, a chance for every text."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.base import packed
from cortex.base.errors import DamagedFile
from cortex.selection.model import weights
from cortex.selection.types import Snapshot
from cortex.selection.words import meanings
from tests.selection.garden import fitted

MODEL = fitted().weights
OLD = io.BytesIO()
np.savez_compressed(OLD, facts=np.zeros(3))
BYTES = weights.to_bytes(MODEL)


def test_what_is_written_is_read_again() -> None:
    again = weights.from_bytes(BYTES)
    assert weights.to_bytes(again) == BYTES
    assert (again.tools, again.categories, again.examples, again.made) == (
        MODEL.tools,
        MODEL.categories,
        MODEL.examples,
        "the garden",
    )
    said = ["stop the pond pump", "hello there", "", "write a poem about the pump"]
    assert list(map(MODEL.judged, said)) == list(map(again.judged, said))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        BYTES[:1_000],
        BYTES[:-40],
        BYTES[:-1_000] + bytes(200) + BYTES[-800:],
        OLD.getvalue(),
        packed.to_bytes({"format": weights.FORMAT}, {"rows": np.zeros(3)}),
        packed.to_bytes({}, {}),
    ],
    ids=["empty", "words", "beginning", "cut", "damaged", "of the version before", "other arrays", "nothing"],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        weights.from_bytes(data)


@pytest.mark.parametrize(
    ("said", "tool"),
    [
        ("fire up the pond pump please", "pump_start"),
        ("switch the water off", "pump_stop"),
        ("plant a row of peas", "seed_sow"),
        ("what seeds are in the shed", "seed_list"),
        ("serch for slug trap", "web_search"),
    ],
)
def test_words_like_those_that_were_told_lead_to_their_tool(said: str, tool: str) -> None:
    chances = dict(zip(MODEL.tools, MODEL.judged(said).tools, strict=True))
    assert max(chances, key=lambda name: chances[name]) == tool


def test_talk_and_writing_close_the_gates() -> None:
    talk, writing, wish = map(MODEL.judged, ("hello dear friend", "tell me a poem about my aunt", "stop the pond pump"))
    assert talk.wish < 0.5 < wish.wish
    assert writing.work < 0.5 < wish.work


@given(said=st.text(max_size=300))
def test_every_text_has_chances(said: str) -> None:
    judged = MODEL.judged(said)
    for value in (*judged.tools, judged.wish, judged.work):
        assert 0 <= value <= 1


@given(
    said=st.lists(st.sampled_from(["stop", "the pond", "pump", "which seeds", "are", "left", "hello"]), max_size=300)
)
def test_a_score_is_the_sum_of_what_each_feature_weighs(said: list[str]) -> None:
    """The same sum in floats: no lane runs into its neighbour, however long the text."""
    features = MODEL.features(" ".join(said))
    dense = np.asarray(MODEL.matrix).astype(np.float64)[list(features)]
    exact = np.array([*features.values()]) @ dense * np.asarray(MODEL.scale) + np.asarray(MODEL.bias)
    assert MODEL.scores(" ".join(said)) == pytest.approx(exact, abs=1e-5)


def test_an_unknown_script_scores_as_nothing_said() -> None:
    assert MODEL.scores("ฝน") == MODEL.scores("")


def test_the_shipped_model_knows_no_tool_that_is_gone(shipped: Snapshot) -> None:
    assert set(weights.shipped().tools) <= {entry.name for entry in shipped.entries}


def test_a_mapped_file_holds_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    path.write_bytes(BYTES)
    facts, arrays = packed.mapped(path)
    assert facts["made"] == "the garden"
    assert arrays["matrix"].tolist() == MODEL.matrix.tolist()
    path.write_bytes(BYTES[:-1])
    with pytest.raises(DamagedFile, match="checksum"):
        packed.mapped(path)


@pytest.mark.parametrize(("module", "name"), [(weights, "weights.bin"), (meanings, "meanings.bin")])
@pytest.mark.parametrize("data", [b"", b"\xff" * 400, packed.to_bytes({"format": 9}, {"rows": np.zeros(3)})])
def test_a_file_that_came_with_cortex_and_is_not_what_it_should_be_is_named(
    module: Any, name: str, data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(data)
    monkeypatch.setattr(module, "SHIPPED", tmp_path / name)
    with pytest.raises(DamagedFile, match=rf"its file {name} .*Install this version of Cortex again"):
        module.shipped.__wrapped__()
