"""The second fitted model: fitted beside the first, used with that one and by its own sentence model only."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cortex.integrations.sentences import Sentences
from cortex.selection import evidence, fit, semantic_votes, sentence_fit, sentence_models, sentence_weights
from cortex.selection.edits import with_encoder
from cortex.selection.index import Index
from cortex.selection.sentence_weights import PROBES
from tests.real_encoder import real_folder
from tests.selection.garden import SmallEncoder, fitted, garden, twice_fitted

MADE, BOTH = twice_fitted()
BYTES = sentence_weights.to_bytes(MADE)
SAID = ("stop the pond pump", "hello there", "", "write a poem about the pump", "sow beans and then start the pump")


def vectors(*texts: str) -> np.ndarray:
    return SmallEncoder().asked(texts)


def test_what_is_written_is_read_again() -> None:
    again = sentence_weights.from_bytes(BYTES)
    assert sentence_weights.to_bytes(again) == BYTES
    for old, new in zip(MADE.scores(vectors(*SAID)), again.scores(vectors(*SAID)), strict=True):
        assert old.tolist() == new.tolist()


@pytest.mark.parametrize("data", [b"", b"hello", BYTES[:1_000], BYTES[:-40]], ids=["empty", "words", "begun", "cut"])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        sentence_weights.from_bytes(data)


def test_the_shipped_file_names_its_sentence_model_with_version_and_licence() -> None:
    told = sentence_weights.shipped().model
    assert "all-MiniLM-L6-v2" in told["model"]
    assert told["licence"] == "Apache-2.0"
    assert told["version"]


def test_a_fit_writes_down_the_sentence_model_that_it_was_made_by(tmp_path: Path) -> None:
    assert sentence_weights.from_bytes(BYTES).model == {
        "model": "unknown",
        "version": SmallEncoder.key,
        "licence": "unknown",
    }
    real = Sentences(real_folder(tmp_path / "model"), tmp_path, limit_s=None)
    try:
        assert sentence_fit.known(real.key) == sentence_weights.shipped().model
    finally:
        real.close()


def test_a_text_is_judged_alike_whatever_it_comes_with() -> None:
    weights = fitted().weights
    together = MADE.judged(weights, SAID, vectors(*SAID))
    for at, said in enumerate(SAID):
        alone = MADE.judged(weights, [said], vectors(said))
        assert alone.tools[0].tolist() == together.tools[at].tolist()
        assert (alone.wish[0], alone.work[0]) == (together.wish[at], together.work[at])


def test_an_utterance_is_judged_as_if_it_had_never_been_heard() -> None:
    row = 4
    first = fitted()
    others = [at for at in range(len(first.told)) if at != row]
    texts = [each.text for each in first.told]
    matrix, bias, _ = sentence_fit._least_squares(vectors(*(texts[at] for at in others)), first.labels[others] * 2 - 1)
    without = sentence_weights.features(vectors(texts[row])) @ matrix + bias
    _, _, unseen = sentence_fit._least_squares(vectors(*texts), first.labels * 2 - 1)
    assert unseen[row] == pytest.approx(without[0], abs=0.03)  # the mean of the labels is not left out


def test_both_models_together_tell_more_than_the_first() -> None:
    wanted = BOTH.labels[:, : len(BOTH.weights.tools)]

    def wrong(model: fit.FittedModel) -> float:
        return float(-np.log(np.where(wanted > 0, model.chances.tools, 1 - model.chances.tools)).mean())

    assert wrong(BOTH) < wrong(fitted())


# --- which sentence model, which weights --------------------------------------------------------------------------


def test_it_is_used_by_the_sentence_model_of_its_fit_in_any_precision() -> None:
    said = vectors(*PROBES)
    assert MADE.fits(fitted().weights, said)
    rough = said + np.random.default_rng(1).normal(size=said.shape).astype(np.float32) * 0.01
    assert MADE.fits(fitted().weights, rough / np.linalg.norm(rough, axis=1, keepdims=True))


@pytest.mark.parametrize("other", [lambda said: said[:, ::-1], lambda said: said[:, :40]], ids=["another", "smaller"])
def test_another_sentence_model_is_left_to_the_first(other: Callable[[np.ndarray], np.ndarray]) -> None:
    assert not MADE.fits(fitted().weights, other(vectors(*PROBES)))


def test_weights_of_other_utterances_are_left_alone() -> None:
    assert not MADE.fits(replace(fitted().weights, examples="others"), vectors(*PROBES))
    assert not MADE.fits(replace(fitted().weights, tools=fitted().weights.tools[::-1]), vectors(*PROBES))
    assert MADE.fits(replace(fitted().weights, made="fitted to a server"), vectors(*PROBES))


# --- in a plan ----------------------------------------------------------------------------------------------------


class RecordingEncoder(SmallEncoder):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def asked(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.heard += texts
        return self.kept(texts)


@pytest.fixture
def encoder() -> Iterator[RecordingEncoder]:
    made = RecordingEncoder()
    sentence_models.register(made)
    yield made
    sentence_models.unregister(made)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, encoder: RecordingEncoder) -> Index:
    """The garden with the small sentence model, and the second model as the one that ships."""
    monkeypatch.setattr(sentence_weights, "shipped", lambda: MADE)
    return Index(with_encoder(garden("twice"), encoder.key))


def test_a_message_is_judged_by_both(index: Index) -> None:
    said = "stop the pond pump"
    found, failed = semantic_votes.learned(index, said)
    judged = MADE.judged(fitted().weights, [said], vectors(said))
    assert failed == ""
    assert list(found.chances.values()) == judged.tools[0].tolist()
    assert found != evidence.learned(index, said)


def test_of_many_clauses_the_first_are_read_and_no_further_than_needed(index: Index, encoder: RecordingEncoder) -> None:
    many = ". ".join(f"hello again for the time number {number}" for number in range(20))
    found, _ = semantic_votes.learned(index, f"{many}. sow the beans in the bed")
    assert len(encoder.heard) == evidence.TEXTS_MOST
    assert len(encoder.heard[0]) == evidence.TEXT_CHARACTERS
    assert found.chances["seed_sow"] >= evidence.learned(index, "sow the beans in the bed").chances["seed_sow"]


def test_a_message_is_read_once_for_the_chances_and_for_the_likeness(index: Index, encoder: RecordingEncoder) -> None:
    said = "stop the pomd pump"
    semantic_votes.learned(index, said)
    semantic_votes.likeness(index, said)
    assert set(encoder.heard) == {"stop the pond pump"}


@pytest.mark.parametrize("skipped", ["", "it is being made ready"])
@pytest.mark.parametrize("said", ["hello", "thanks!", ""])
def test_small_talk_is_not_read_by_the_sentence_model(
    index: Index, encoder: RecordingEncoder, said: str, skipped: str
) -> None:
    assert semantic_votes.learned(index, said, skipped) == (evidence.learned(index, said), "")
    assert encoder.heard == []


def test_without_its_sentence_model_the_first_model_chooses_and_the_reason_is_told(
    index: Index, encoder: RecordingEncoder
) -> None:
    sentence_models.unregister(encoder)
    found, failed = semantic_votes.learned(index, "stop the pond pump")
    assert found == evidence.learned(index, "stop the pond pump")
    assert "is not here" in failed
    late = semantic_votes.learned(index, "stop it", "it was late")
    assert late == (evidence.learned(index, "stop it"), "it was late")


@pytest.mark.parametrize("data", [None, BYTES[:-30]], ids=["lacking", "damaged"])
def test_a_file_that_cannot_be_read_leaves_the_choice_to_the_first_model(
    encoder: RecordingEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes | None
) -> None:
    path = tmp_path / "sentence_weights.npz"
    if data is not None:
        path.write_bytes(data)
    monkeypatch.setattr(sentence_weights, "SHIPPED", path)
    sentence_weights.shipped.cache_clear()
    found, failed = semantic_votes.learned(Index(with_encoder(garden("unread"), encoder.key)), "stop the pond pump")
    assert "sentence_weights.npz cannot be read" in failed
    assert found.chances
    sentence_weights.shipped.cache_clear()
