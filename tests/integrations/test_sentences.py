import math
import subprocess
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cortex.base.errors import EncoderFailed
from tests.patience import PATIENCE_S
from tests.small_encoder import SmallModel, sentences

SOON_S = 0.02
WITHOUT_THE_EXTRA = """
import sys
from pathlib import Path
sys.modules["onnxruntime"] = sys.modules["numpy"] = None
from cortex.base.errors import EncoderFailed
from cortex.integrations.sentences import Sentences
made = Sentences(Path("."), Path("."), limit_s=None)
try:
    made.asked(["a"])
except EncoderFailed as error:
    print(error.message)
made.close()
"""


def test_a_question_is_answered_by_unit_rows_and_remembered(tmp_path: Path) -> None:
    model = SmallModel()
    made = sentences(tmp_path, model)
    rows = made.asked(["is the hothouse damp", "hello", "is the hothouse damp"])
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-3)
    assert rows[0] == rows[2]
    assert made.asked(["hello"])[0] == rows[1]
    assert model.asked == ["is the hothouse damp", "hello"]
    assert made.asked([]) == made.kept([]) == []


def test_of_many_questions_the_newest_are_remembered(tmp_path: Path) -> None:
    model = SmallModel()
    made = sentences(tmp_path, model)
    for number in range(520):
        made.asked([str(number)])
    made.asked(["519"])
    assert len(model.asked) == 520
    made.asked(["0"])
    assert model.asked[520:] == ["0"]


def test_texts_of_tools_are_read_once_even_over_a_restart(tmp_path: Path) -> None:
    before = sentences(tmp_path, SmallModel())
    rows = before.kept(["feed the parrot", "moisture of the greenhouse"])
    before.close()
    model = SmallModel()
    after = sentences(tmp_path, model)
    assert after.kept(["moisture of the greenhouse", "feed the parrot"]) == rows[::-1]
    assert (model.asked, after.n_kept) == ([], 2)
    after.kept(["feed the parrot", "log of the boiler"])
    assert model.asked == ["log of the boiler"]


def test_vectors_that_were_kept_in_another_form_leave_when_they_are_kept_anew(tmp_path: Path) -> None:
    (tmp_path / "small.npz").write_bytes(b"as until November 2026")
    sentences(tmp_path, SmallModel()).kept(["feed the parrot"])
    assert [path.name for path in tmp_path.iterdir()] == ["small.bin"]


def test_another_model_reads_for_itself(tmp_path: Path) -> None:
    sentences(tmp_path, SmallModel("one")).kept(["feed the parrot"])
    model = SmallModel("two")
    sentences(tmp_path, model).kept(["feed the parrot"])
    assert model.asked == ["feed the parrot"]


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 no more", b"nothing of ours"], ids=["empty", "cut", "other"])
def test_kept_vectors_that_are_damaged_are_worked_out_again(
    damage: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sentences(tmp_path, SmallModel()).kept(["feed the parrot"])
    (tmp_path / "small.bin").write_bytes(damage)
    model = SmallModel()
    sentences(tmp_path, model).kept(["feed the parrot"])
    assert model.asked == ["feed the parrot"]
    assert "computing them again" in caplog.text


def test_kept_vectors_of_another_shape_are_worked_out_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sentences(tmp_path, SmallModel()).kept(["feed the parrot"])
    model = SmallModel()
    model.dimensions += 1
    sentences(tmp_path, model).kept(["feed the parrot"])
    assert model.asked == ["feed the parrot"]
    assert "have another shape" in caplog.text


def test_a_folder_that_cannot_be_written_costs_another_reading_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    made = sentences(tmp_path / "file", SmallModel())
    assert len(made.kept(["feed the parrot"])[0]) == made.dimensions
    assert "cannot cache vectors" in caplog.text


def test_nobody_waits_for_a_late_answer_longer_than_the_limit(tmp_path: Path) -> None:
    model = SmallModel()
    made = sentences(tmp_path, model, limit_s=SOON_S)
    made.asked(["hello"])
    model.is_free.clear()
    with pytest.raises(EncoderFailed, match=r"still at an answer after 0\.02 s"):
        made.asked(["is the hothouse damp"])
    with pytest.raises(EncoderFailed, match=r"still at an answer$"):
        made.asked(["feed the parrot"])
    assert len(made.asked(["hello"])[0]) == model.dimensions
    model.is_free.set()
    late = made._late[made._answering]
    late.result(PATIENCE_S)
    assert len(made.asked(["is the hothouse damp"])[0]) == model.dimensions
    assert "feed the parrot" not in model.asked


def test_reading_tools_keeps_no_answer_waiting(tmp_path: Path) -> None:
    model = SmallModel()
    model.quick = frozenset({"hello", "good morning"})
    made = sentences(tmp_path, model, limit_s=SOON_S)
    made.asked(["hello"])
    model.is_free.clear()
    with pytest.raises(EncoderFailed, match="still at 1 texts of tools after"):
        made.kept(["feed the parrot"])
    assert len(made.asked(["good morning"])[0]) == model.dimensions
    model.is_free.set()
    made._late[made._reading].result(PATIENCE_S)
    assert len(made.kept(["feed the parrot"])[0]) == model.dimensions


def test_nobody_waits_for_a_model_that_is_being_loaded(tmp_path: Path) -> None:
    model = SmallModel()
    model.is_free.clear()

    def load(_: Path) -> SmallModel:
        model.is_free.wait()
        return model

    made = sentences(tmp_path, limit_s=SOON_S, load=load)
    with pytest.raises(EncoderFailed, match="it is being loaded"):
        made.asked(["hello"])
    model.is_free.set()
    assert made._opening is not None
    made._opening.result(PATIENCE_S)
    assert made.key == "small"


def test_whatever_the_model_raises_is_its_failure_and_the_next_question_may_go_well(tmp_path: Path) -> None:
    model = SmallModel(failure=RuntimeError("no such operator"))
    made = sentences(tmp_path, model)
    with pytest.raises(EncoderFailed, match="RuntimeError: no such operator"):
        made.asked(["hello"])
    model.failure = None
    assert len(made.asked(["hello"])[0]) == model.dimensions


class Spoilt(SmallModel):
    def encode(self, texts: Sequence[str]) -> "Sequence[memoryview[Any]]":
        return [memoryview(array("f", [math.nan] * self.dimensions)) for _ in texts]


def test_vectors_without_numbers_are_a_failure(tmp_path: Path) -> None:
    made = sentences(tmp_path, Spoilt())
    for ask in (made.asked, made.kept):
        with pytest.raises(EncoderFailed, match="not made of numbers"):
            ask(["hello"])
    assert made.n_kept == 0


def test_a_model_that_cannot_be_loaded_is_not_tried_again(tmp_path: Path) -> None:
    tries: list[Path] = []

    def load(folder: Path) -> SmallModel:
        tries.append(folder)
        raise ValueError("no model at all")

    made = sentences(tmp_path, load=load)
    for _ in range(2):
        with pytest.raises(EncoderFailed, match="ValueError: no model at all"):
            made.asked(["hello"])
    assert len(tries) == 1


def test_what_is_closed_says_so(tmp_path: Path) -> None:
    made = sentences(tmp_path, SmallModel())
    made.asked(["hello"])
    made.close()
    with pytest.raises(EncoderFailed, match="it is closed"):
        made.asked(["good morning"])


def test_without_the_extra_it_says_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_EXTRA], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert "`semantic`" in done.stdout, done.stderr
