"""One chance a tool: votes together; the model's gates stand before what is weak, not before this house's words."""

from typing import Any

import pytest
from msgspec.structs import replace

from cortex.selection.index.index import index_of
from cortex.selection.plan.cache_economics import price
from cortex.selection.plan.draft import ModelChances, PlanDraft, Vote
from cortex.selection.registry.rights import rights_of
from cortex.selection.stages.fuse import FULL_WORK, WORK_POWER, fuse
from cortex.selection.votes.evidence import FULL_WISH, WISH_POWER
from tests.selection.garden import GARDEN
from tests.selection.made import CACHED, ROLE, asked

TALK = {"wish": FULL_WISH / 3}
WORDS = {"work": FULL_WORK / 8}
OPEN = {"wish": 1.0, "work": 1.0}
LEARNED = "similar to requests that use it"


def vote(p: float, stage: str = "phrases", **changes: Any) -> Vote:
    return Vote(stage=stage, p=p, why=f"by {stage}", **changes)


def fused(
    chance: float | None = None,
    votes: tuple[Vote, ...] = (),
    gates: dict[str, float] = OPEN,
    tool: str = "pump_stop",
) -> PlanDraft:
    given = replace(asked("a message"), snapshot=GARDEN, ready=tuple(each.name for each in GARDEN.entries))
    given = replace(given, role=replace(ROLE, tools=("all",)), profile=CACHED)
    chances = {} if chance is None else {tool: chance}
    draft = PlanDraft(
        rights=rights_of(given), votes={tool: votes} if votes else {}, learned=ModelChances(chances=chances, **gates)
    )
    return fuse(given, index_of(GARDEN), draft)


def test_votes_are_taken_as_independent() -> None:
    draft = fused(0.5, (vote(0.2), vote(0.5, "context")))
    assert draft.chances["pump_stop"].p == pytest.approx(1 - 0.5 * 0.8 * 0.5)


@pytest.mark.parametrize(
    ("learned", "votes", "why"),
    [
        (0.3, (vote(0.6),), f"by phrases; {LEARNED}"),
        (0.99, (vote(0.2),), f"by phrases; {LEARNED}"),
        (0.02, (vote(0.8, "context"),), "by context"),
        (0.4, (vote(0.8, "context"),), f"by context; {LEARNED}"),
        (0.9, (vote(0.9, "context"), vote(0.5, "lexical"), vote(0.3)), "by phrases; by lexical"),
        (0.9, (), LEARNED),
    ],
    ids=["a phrase", "a weak phrase", "a yes", "a yes and its words", "all of them", "likeness alone"],
)
def test_the_reason_begins_with_the_persons_own_words(learned: float, votes: tuple[Vote, ...], why: str) -> None:
    assert fused(learned, votes).chances["pump_stop"].why == why


def test_a_tool_is_wanted_from_its_own_threshold_on() -> None:
    entry = next(each for each in GARDEN.entries if each.name == "pump_stop")
    bar = price(CACHED, entry)
    assert fused(bar + 0.001).wanted == ("pump_stop",)
    assert fused(bar - 0.001).wanted == ()


@pytest.mark.parametrize(
    ("gates", "share"),
    [
        ({"wish": FULL_WISH, "work": FULL_WORK}, 1.0),
        ({"wish": FULL_WISH * 0.9}, 0.9**WISH_POWER),
        ({"work": FULL_WORK * 0.9}, 0.9**WORK_POWER),
        ({"wish": FULL_WISH * 0.9, "work": FULL_WORK * 0.8}, 0.9**WISH_POWER * 0.8**WORK_POWER),
    ],
    ids=["open", "a little like talk", "a little like words", "a little like both"],
)
def test_a_gate_takes_the_more_the_less_a_tool_seems_to_be_wanted(gates: dict[str, float], share: float) -> None:
    assert fused(0.9, (), gates).chances["pump_stop"].p == pytest.approx(0.9 * share, abs=1e-4)
    both = fused(0.5, (vote(0.6),), gates).chances["pump_stop"].p
    assert both == pytest.approx(1 - (1 - 0.5 * share) * (1 - 0.6 * share), abs=2e-4)


@pytest.mark.parametrize("gate", ["wish", "work"])
def test_a_gate_that_is_nearly_sure_sets_aside_what_is_strong_too(gate: str) -> None:
    assert fused(0.99, (), {gate: 0.01}).wanted == ()
    yes = (vote(0.8, "context"),)
    assert fused(0.99, yes, {gate: 0.01}).wanted == ("pump_stop",), "what was said before holds"


@pytest.mark.parametrize("gates", [TALK, WORDS, {**TALK, **WORDS}], ids=["talk", "words", "both"])
def test_a_closed_gate_sets_aside_what_is_weak(gates: dict[str, float]) -> None:
    assert fused(0.3, (vote(0.3),), OPEN).wanted == ("pump_stop",)
    draft = fused(0.3, (vote(0.3),), gates)
    assert draft.wanted == ()
    assert draft.chances["pump_stop"].why.startswith("this reads like")


@pytest.mark.parametrize(
    ("chance", "votes"),
    [
        (0.05, (vote(0.6, is_own=True),)),
        (0.05, (vote(0.6, "lexical", is_own=True),)),
        (0.05, (vote(0.6, "context"),)),
    ],
    ids=["a phrase of this server", "an utterance of this house", "the conversation"],
)
def test_a_closed_gate_does_not_stop(chance: float, votes: tuple[Vote, ...]) -> None:
    assert fused(chance, votes, {**TALK, **WORDS}).wanted == ("pump_stop",)


@pytest.mark.parametrize("chance", [None, 0.0, 0.02], ids=["unknown", "none", "little"])
def test_a_phrase_of_this_server_counts_whatever_the_model_makes_of_its_tool(chance: float | None) -> None:
    assert fused(chance, (vote(0.9, is_own=True),)).chances["pump_stop"].p >= 0.9


def test_the_web_may_be_asked_where_words_would_do() -> None:
    assert fused(0.6, (), WORDS, "web_search").chances["web_search"].p == pytest.approx(0.6)
    assert fused(0.6, (), TALK, "web_search").wanted == ()


def test_a_likeness_in_meaning_counts_for_less_where_words_would_do() -> None:
    likeness = (vote(0.5, "vectors"),)
    assert fused(None, likeness).chances["pump_stop"].p == pytest.approx(0.5)
    assert fused(None, likeness, WORDS).chances["pump_stop"].p == pytest.approx(0.5 / 8**WORK_POWER, abs=1e-4)
    assert fused(None, likeness, TALK).chances["pump_stop"].p == pytest.approx(0.5 / 3**WISH_POWER, abs=1e-4)


def test_what_does_harm_when_called_for_nothing_has_a_higher_price() -> None:
    entry = next(each for each in GARDEN.entries if each.name == "pump_stop")
    assert price(CACHED, replace(entry, is_grave=True)) > price(CACHED, entry) + 0.01
    assert price(CACHED, entry, is_full=True) >= price(CACHED, entry)


def test_what_is_not_permitted_is_never_wanted() -> None:
    given = replace(asked("a message"), snapshot=GARDEN, ready=("pump_start",), role=replace(ROLE, tools=("all",)))
    learned = ModelChances(chances={"pump_stop": 0.99, "ghost": 0.99})
    draft = PlanDraft(rights=rights_of(given), votes={"pump_stop": (vote(0.99),)}, learned=learned)
    assert fuse(given, index_of(GARDEN), draft).wanted == ()
    assert fuse(given, index_of(GARDEN), draft).chances == {}
