"""The fit: what it learns from, that it is the same each time, and that it judges what it has not seen."""

import numpy as np
import pytest
from msgspec.structs import replace

from cortex.selection.model import fit, ridge, weights
from cortex.selection.model.utterances import LabelledUtterance, examples_hash, utterances_of
from cortex.selection.types import Example
from tests.selection.garden import GARDEN, fitted

TOLD = utterances_of(GARDEN)


def test_every_wording_is_told_once_and_the_first_one_counts() -> None:
    pumps, *others = GARDEN.domains
    doubled = Example(text="START  the pump", tools=("pump_stop",))
    again = replace(GARDEN, domains=(replace(pumps, examples=(*pumps.examples, doubled)), *others))
    assert utterances_of(again) == TOLD
    assert LabelledUtterance(text="start the pump", tools=("pump_start",)) in TOLD


def test_what_wants_a_tool_that_is_gone_is_not_told() -> None:
    gone = Example(text="prune the roses", tools=("rose_prune",))
    half = Example(text="prune the roses and stop the pump", tools=("rose_prune", "pump_stop"))
    told = utterances_of(replace(GARDEN, several=(gone, half)))
    assert [row for row in told if "roses" in row.text] == [LabelledUtterance(text=half.text, tools=("pump_stop",))]


def test_wishes_without_a_tool_are_told_with_their_kind() -> None:
    assert LabelledUtterance(text="hello my friend", kind="chat") in TOLD
    assert {row.kind for row in TOLD} == {"", "chat", "llm", "open"}
    assert all(bool(row.tools) != bool(row.kind) for row in TOLD)


def test_the_hash_knows_every_word_and_no_order() -> None:
    key = examples_hash(TOLD)
    first, *rest = TOLD
    assert examples_hash(tuple(reversed(TOLD))) == key
    changed = (replace(first, text=f"{first.text}!"), replace(first, tools=("pump_stop",)), replace(first, kind="chat"))
    assert len({examples_hash([one, *rest]) for one in changed} | {key, examples_hash(rest)}) == 5


def test_the_same_utterances_give_the_same_bytes() -> None:
    assert weights.to_bytes(fit.fit(GARDEN, TOLD, made="the garden").weights) == weights.to_bytes(fitted().weights)


def test_the_order_of_the_tools_makes_no_difference() -> None:
    said = ["fire up the pump", "sow some beans", "hello you old oak"]
    mixed = fit.fit(replace(GARDEN, entries=GARDEN.entries[::-1]), TOLD).weights
    before, after = (
        dict(zip(each.tools, zip(*(each.judged(one).tools for one in said), strict=True), strict=True))
        for each in (fitted().weights, mixed)
    )
    assert before.keys() == after.keys()
    for name, chances in before.items():
        assert chances == pytest.approx(after[name], abs=2e-3)


def test_a_kind_that_nobody_spoke_of_is_no_obstacle() -> None:
    made = fit.fit(GARDEN, [row for row in TOLD if row.kind != "open"])
    assert np.isfinite(made.weights.judged("stop the pump").tools).all()


def test_meta_tools_are_not_learned() -> None:
    assert fitted().weights.tools == ("pump_start", "pump_stop", "seed_sow", "seed_list", "web_search")
    assert fitted().weights.categories == ("pumps", "seeds", "web")


def test_utterances_are_judged_as_if_never_heard() -> None:
    found = fitted()
    heard = np.array([found.weights.scores(row.text) for row in found.told])[:, : len(found.weights.tools)]
    unheard = found.scores[:, : len(found.weights.tools)]
    target = found.labels[:, : len(found.weights.tools)] * 2 - 1
    assert np.abs(unheard - target).mean() > 1.3 * np.abs(heard - target).mean()


def test_many_texts_are_judged_at_once_as_each_is_by_itself() -> None:
    found, model = fitted(), fitted().weights
    for row, scores, tools, wish, work in zip(
        found.told, found.scores, found.chances.tools, found.chances.wish, found.chances.work, strict=True
    ):
        alone = model.calibrations.judged(row.text, scores.tolist(), model.home, len(model.categories))
        assert [*alone.tools, alone.wish, alone.work] == pytest.approx([*tools, wish, work], abs=1e-5)


def test_chances_are_as_high_as_tools_are_often_wanted() -> None:
    found = fitted()
    is_open = np.array([row.kind == "open" for row in found.told])
    wanted = found.labels[:, : len(found.weights.tools)]
    assert found.chances.tools[~is_open].mean() == pytest.approx(wanted[~is_open].mean(), rel=0.05)


# --- the solution -------------------------------------------------------------------------------------------------


def sample(rows: int, features: int, seed: int) -> tuple[list[ridge.Row], np.ndarray, np.ndarray]:
    """Sparse rows with their dense twin, and targets of three columns."""
    drawn = np.random.default_rng(seed)
    dense = (drawn.random((rows, features)) * (drawn.random((rows, features)) < 0.2)).astype(np.float32)
    entries = [(np.flatnonzero(row).astype(np.int32), row[np.flatnonzero(row)]) for row in dense]
    return entries, dense, drawn.normal(size=(rows, 3)).astype(np.float32)


@pytest.mark.parametrize("n_rows", [1, 7, 120])
def test_the_weights_come_to_those_of_the_textbook(n_rows: int) -> None:
    """At the least of the one-sided squares, the weights are the sum of the rows by how far each falls short."""
    rows, dense, targets = sample(n_rows, 60, seed=n_rows)
    ridges = np.linspace(0.5, 3.0, n_rows).astype(np.float32)[:, None]

    def implied(weights_: np.ndarray) -> np.ndarray:
        short = np.maximum((targets - dense @ weights_) * np.sign(targets), 0) * np.sign(targets)
        return np.asarray(dense.T.astype(np.float64) @ (short / ridges))

    exact = ridge.fitted(rows, 60, targets, ridges, passes=2_000)
    assert implied(exact) == pytest.approx(exact, abs=2e-3)
    assert np.abs(ridge.fitted(rows, 60, targets, ridges) - exact).mean() < 0.2 * np.abs(exact).mean() + 1e-6


def test_what_lies_beyond_its_target_pulls_nothing_back() -> None:
    rows = [(np.array([0], dtype=np.int32), np.array([size], dtype=np.float32)) for size in (1.0, 5.0)]
    found = ridge.fitted(rows, 1, np.ones((2, 1), dtype=np.float32), np.full((2, 1), 0.1, dtype=np.float32), passes=200)
    assert found[0, 0] == pytest.approx(1 / 1.1, abs=1e-3)  # what the first row alone asks for


def test_the_score_of_a_row_left_out_is_that_of_a_fit_without_its_fold() -> None:
    rows, _, targets = sample(40, 25, seed=5)
    ridges = np.full((40, 1), 1.5, dtype=np.float32)
    unseen = ridge.left_out(rows, 25, targets, ridges)
    kept = [at for at in range(40) if at % ridge.FOLDS != 2]
    weights_ = ridge.fitted([rows[at] for at in kept], 25, targets[kept], ridges[kept])
    assert unseen[2::5].tolist() == [(values @ weights_[features]).tolist() for features, values in rows[2::5]]
