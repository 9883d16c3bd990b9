"""The shipped model moved towards a house's own cases: the smallest change that serves them, the rest as it was."""

import numpy as np
import pytest
from msgspec.structs import replace

from cortex.app import shipped_registry
from cortex.selection.index.index import index_of
from cortex.selection.model import refit, weights
from cortex.selection.model.refit import OwnCase
from cortex.selection.pipeline import plan
from cortex.selection.registry.snapshot import snapshot_of
from cortex.selection.types import PlanInput, RoleView, Snapshot
from cortex.services.tools.edits import with_weights

DRAGON = tuple(
    OwnCase(text=said, tools=("ha_call_service",))
    for said in (
        "feed the dragon",
        "wake the dragon",
        "put the dragon to bed",
        "let the dragon rest",
        "warm the dragon",
    )
)
UNSEEN = "make the dragon roar"


@pytest.fixture(scope="module")
def shipped() -> Snapshot:
    return snapshot_of(shipped_registry())


@pytest.fixture(scope="module")
def told(shipped: Snapshot) -> list[str]:
    return [example.text for domain in shipped.domains for example in domain.examples][::40]


def chance(model: weights.Weights, said: str, tool: str) -> float:
    return model.judged(said).tools[model.tools.index(tool)]


def sent(snapshot: Snapshot, said: str) -> set[str]:
    ready = tuple(entry.name for entry in snapshot.entries)
    role = RoleView(name="admin", tools=("all",))
    given = PlanInput(snapshot=snapshot, ready=ready, role=role, is_admin=True, message=said)
    return {item.name for item in plan(given).sent}


def test_a_wording_of_the_house_is_known_in_other_words_after_a_refit() -> None:
    base = weights.shipped()
    after = refit.refitted(base, DRAGON)
    assert chance(base, UNSEEN, "ha_call_service") < 0.4
    assert chance(after, UNSEEN, "ha_call_service") > 0.6


def test_what_no_case_speaks_of_stays_as_it_was(told: list[str]) -> None:
    base = weights.shipped()
    after = refit.refitted(base, DRAGON)
    assert np.abs(np.array([after.scores(said) for said in told]) - [base.scores(said) for said in told]).mean() < 0.02


def test_it_is_the_ridge_regression_of_what_the_shipped_weights_leave_over() -> None:
    """Against the closed form: W' = W + X^T (K + ridge I)^-1 (Y - scores(X))."""
    base = weights.shipped()
    after, column = refit.refitted(base, DRAGON), base.tools.index("ha_call_service")
    features = [base.features(case.text) for case in DRAGON]
    touched = sorted({row for each in features for row in each})
    said = np.array([[each.get(row, 0.0) for row in touched] for each in features])
    short = [1.0 - base.scores(case.text)[column] for case in DRAGON]
    moved = said.T @ np.linalg.solve(said @ said.T + refit.RIDGE * np.eye(len(DRAGON)), short)
    old, new = (np.asarray(each.matrix)[touched, column] * each.scale[column] for each in (base, after))
    assert new - old == pytest.approx(moved, abs=0.51 * after.scale[column])


def test_a_tool_that_was_sent_for_nothing_is_less_likely() -> None:
    base = weights.shipped()
    said = "add milk to my shopping list"
    after = refit.refitted(base, [OwnCase(text=said, tools=("task_list",), not_tools=("task_create",))])
    assert chance(after, said, "task_create") < chance(base, said, "task_create")
    assert chance(after, said, "task_list") > chance(base, said, "task_list")


@pytest.mark.parametrize(
    "cases",
    [(), (OwnCase(text="feed the dragon", tools=("my_server_feed",)),)],
    ids=["no case", "a tool that the model has no column for"],
)
def test_nothing_to_learn_from_changes_nothing(cases: tuple[OwnCase, ...]) -> None:
    assert refit.refitted(weights.shipped(), cases) is weights.shipped()


def test_the_same_cases_give_the_same_bytes_and_come_back_from_them() -> None:
    first, second = (weights.to_bytes(refit.refitted(weights.shipped(), DRAGON)) for _ in range(2))
    assert first == second
    back = weights.from_bytes(first)
    assert chance(back, UNSEEN, "ha_call_service") > 0.5


def test_what_is_held_back_is_not_fitted_and_nothing_is_lost() -> None:
    fit, held = refit.held_back(DRAGON)
    assert sorted((*fit, *held), key=lambda case: case.text) == sorted(DRAGON, key=lambda case: case.text)
    assert len(held) == 1
    assert refit.held_back(DRAGON[::-1]) == (fit, held)


def test_a_plan_goes_by_the_model_that_its_snapshot_names(shipped: Snapshot) -> None:
    weights.keep("1:test", refit.refitted(weights.shipped(), DRAGON))
    own = with_weights(shipped, "1:test")
    assert own.version != shipped.version
    assert own == with_weights(shipped, "1:test")
    shivers = "my dragon shivers"
    assert "ha_call_service" not in sent(shipped, shivers)
    assert "ha_call_service" in sent(own, shivers)


def test_a_model_that_nobody_brought_is_no_silent_fallback(shipped: Snapshot) -> None:
    lost = replace(with_weights(shipped, "9:lost"), version="lost")
    with pytest.raises(LookupError, match="9:lost"):
        _ = index_of(lost).model
