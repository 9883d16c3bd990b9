"""The real model, int8: what its libraries do with real weights."""

import json
from pathlib import Path

import numpy as np
import pytest

from cortex.base.errors import EncoderFailed
from cortex.integrations.sentences import Sentences, load
from tests.real_encoder import real_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real_folder(tmp_path_factory.mktemp("real") / "encoder")


def test_what_means_the_same_is_alike_though_no_word_is_shared(folder: Path) -> None:
    rows = np.array(load(folder).encode(["switch the lamp off", "put out the lights", "who wrote this novel"]))
    alike = rows @ rows.T
    assert alike[0, 1] > 0.4
    assert alike[0, 2] < 0.2
    assert np.allclose(np.diag(alike), 1.0, atol=1e-3)


def test_a_text_has_one_vector_whatever_it_is_asked_with(folder: Path) -> None:
    model = load(folder)
    alone = model.encode(["put out the lights"])[0]
    together = model.encode(["a much longer text about the garden, the house and the sea", "put out the lights"])[1]
    assert alone == together


def test_a_tokenizer_that_pads_changes_nothing(folder: Path, tmp_path: Path) -> None:
    told = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    told["padding"] = {
        "strategy": {"Fixed": 128}, "direction": "Right", "pad_to_multiple_of": None,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
    }  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(told), encoding="utf-8")
    (tmp_path / "model.onnx").symlink_to(folder / "model.onnx")
    padded, plain = load(tmp_path), load(folder)
    assert padded.encode(["put out the lights"]) == plain.encode(["put out the lights"])
    assert padded.key != plain.key


def test_a_text_longer_than_the_model_can_read_is_cut(folder: Path) -> None:
    model = load(folder)
    rows = model.encode(["lamp " * 400, "lamp " * 500])
    assert rows[0] == rows[1]
    assert len(model.encode([""])[0]) == model.dimensions


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json"])
def test_a_broken_file_is_a_failure_of_the_model(broken: str, folder: Path, tmp_path: Path) -> None:
    for name in {"model.onnx", "tokenizer.json"} - {broken}:
        (tmp_path / name).symlink_to(folder / name)
    (tmp_path / broken).write_bytes(b"not this")
    made = Sentences(tmp_path, tmp_path, limit_s=None)
    with pytest.raises(EncoderFailed):
        made.asked(["hello"])
    made.close()


def test_a_folder_without_a_model_is_a_failure_too(folder: Path, tmp_path: Path) -> None:
    made = Sentences(tmp_path / "nowhere", tmp_path, limit_s=None)
    with pytest.raises(EncoderFailed, match="FileNotFoundError"):
        made.asked([str(folder)])
    made.close()
