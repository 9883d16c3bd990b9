"""Which skills are shown for a message: threshold, limits, order, budget; who may read none is shown none."""

from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from cortex.base import portable
from cortex.base.skill import Skill
from cortex.selection.index.skill_search import CHARACTERS, LEAST, MOST, fits, judged, listing
from cortex.selection.pipeline import plan
from cortex.selection.plan.receipt import receipt
from cortex.selection.types import PlanInput, RoleView, Snapshot, ToolPlan
from cortex.services.workshop.steps import steps
from tests.selection.made import BRIDGED, CACHED, HOUSE, asked, entry

READING = entry("skill_read", "skills", "Read one of the user's how-tos", ("name",))
SHELF = replace(HOUSE, version="house-skills", entries=(*HOUSE.entries, READING))
READER = RoleView(name="house", tools=("lamps", "tasks", "repos", "skills"))
NO_READER = RoleView(name="house", tools=("lamps", "tasks", "repos"))

INVOICES = Skill(
    name="invoices",
    title="Writing invoices",
    description="How we number, word and file invoices for customers",
    phrases=("bill a customer",),
)
PACKING = Skill(name="packing-list", title="Packing for a trip", description="What goes into the suitcase, by season")
REVIEW = Skill(name="weekly-review", title="Weekly review", description="The steps of my Friday review")
BREAD = Skill(name="bread", title="Sourdough", description="Amounts, times and the feeding of the starter")
ALL = (BREAD, INVOICES, PACKING, REVIEW)


def names(message: str, skills: tuple[Skill, ...] = ALL) -> list[str]:
    return [fit.name for fit in fits(message, skills)]


def planned(message: str, **changes: Any) -> ToolPlan:
    return plan(given(message, **changes))


def given(message: str, **changes: Any) -> PlanInput:
    ready = tuple(item.name for item in SHELF.entries)
    return asked(message, **{"snapshot": SHELF, "ready": ready, "role": READER, "skills": ALL, **changes})


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("please write an invoice for Acme about the workshop", ["invoices"]),
        ("write the invioce for acme", ["invoices"]),
        ("bill a customer for me", ["invoices"]),
        ("what should I pack for three days in Oslo", ["packing-list"]),
        ("do my weekly review", ["weekly-review"]),
        ("remind me to feed the starter at 8", ["bread"]),
        ("go by `weekly-review`", ["weekly-review"]),
        ("turn off the kitchen lights", []),
        ("tell me what you can do for me", []),
        ("hello", []),
        ("thanks!", []),
        ("  ", []),
        ("", []),
    ],
)
def test_a_message_shows_the_skills_that_fit_it(message: str, expected: list[str]) -> None:
    assert names(message) == expected


@pytest.mark.parametrize("count", [1, 4])
def test_how_many_skills_there_are_hardly_moves_a_score(count: int) -> None:
    (fit,) = fits("please write an invoice for Acme", (INVOICES, *ALL[2:])[:count])
    assert LEAST < fit.score < 0.6
    assert "(write, invoice)" in fit.reason


def test_what_fits_too_weakly_is_judged_and_not_shown() -> None:
    (weak,) = judged("write me a long, winding and melancholic poem about autumn leaves", ALL)
    assert (weak.name, weak.score < LEAST) == ("invoices", True)
    assert names("write me a long, winding and melancholic poem about autumn leaves") == []


def test_a_phrase_counts_on_word_bounds_and_says_so() -> None:
    (fit,) = fits("Bill a customer, please", (INVOICES,))
    assert (fit.score, '"bill a customer"' in fit.reason) == (1.0, True)
    assert names("rebill a customerless order", (replace(INVOICES, title="X", description="Y"),)) == []


def test_a_name_that_is_a_plain_word_counts_as_named_in_backticks_alone() -> None:
    (plain,) = fits("add bread to my shopping list", (BREAD,)) or judged("bread", (BREAD,))
    assert plain.score < 1
    (ticked,) = fits("go by `bread`", (BREAD,))
    assert (ticked.score, ticked.reason) == (1.0, "you named it")


def test_at_most_twelve_are_shown_the_best_first_equal_ones_by_name() -> None:
    many = tuple(replace(BREAD, name=f"bread-{number:02}") for number in range(MOST + 5))
    best = replace(BREAD, name="rye", phrases=("feed the starter",))
    found = fits("feed the starter of the sourdough", (*reversed(many), best))
    assert [fit.name for fit in found] == ["rye", *(skill.name for skill in many[: MOST - 1])]


def test_titles_and_descriptions_stay_within_their_characters() -> None:
    long = tuple(
        replace(BREAD, name=f"bread-{number:02}", description=f"Sourdough {'x' * 390}") for number in range(MOST)
    )
    found = fits("sourdough", long)
    assert 0 < len(found) < MOST
    assert sum(len(fit.title) + len(fit.description) for fit in found) <= CHARACTERS
    assert [fit.name for fit in found] == [skill.name for skill in long[: len(found)]]


def test_a_skill_with_words_from_outside_is_never_shown() -> None:
    tainted = replace(INVOICES, is_tainted=True)
    assert judged("bill a customer and write the invoice", (tainted,)) == ()
    made = planned("bill a customer", skills=(tainted,))
    assert made.skills == ()
    assert "skill_read" not in [item.name for item in made.sent]


@pytest.mark.parametrize("recipe", ["cortex", "vector"])
@pytest.mark.parametrize("profile", [CACHED, BRIDGED], ids=["cached", "bridged"])
def test_the_tool_that_reads_it_is_pinned_with_the_reason(recipe: str, profile: Any) -> None:
    made = planned("bill a customer", recipe=recipe, profile=profile)
    sent = {item.name: item for item in made.sent}
    assert sent["skill_read"].stage == "skills"
    assert ("“Writing invoices”" in sent["skill_read"].reason, '"bill a customer"' in sent["skill_read"].reason) == (
        True,
        True,
    )
    assert dict(made.hints)["skill_read"] == 0.9
    assert made.catalog.find("Writing invoices") == -1, "titles never stand in the cached prefix"
    (told,) = receipt(made)["skills"]
    assert (told["name"], '"bill a customer"' in told["reason"]) == ("invoices", True)


def test_a_skill_that_fits_brings_no_other_tool_than_the_reader() -> None:
    bare = [item.name for item in planned("bill a customer", skills=()).sent]
    with_skill = [item.name for item in planned("bill a customer").sent]
    assert bare == []
    assert set(with_skill) - {"tools_discover", "tool_call"} == {"skill_read"}


@pytest.mark.parametrize(
    "changes",
    [
        {"role": NO_READER},
        {"ready": tuple(item.name for item in HOUSE.entries)},
        {"mode": "chat"},
        {"is_last": True},
        {"recipe": "inara"},
        {"recipe": "ora"},
        {"recipe": "punch"},
        {"recipe": "repi"},
    ],
    ids=lambda changes: "-".join(map(str, changes)),
)
def test_where_none_could_be_read_or_the_way_knows_none_none_is_shown(changes: dict[str, Any]) -> None:
    assert planned("bill a customer", **changes).skills == ()


def test_in_every_mode_that_sends_tools_the_skills_are_shown() -> None:
    assert [fit.name for fit in planned("bill a customer", mode="all").skills] == ["invoices"]
    assert [fit.name for fit in planned("bill a customer", recipe="all").skills] == ["invoices"]


def test_a_second_round_keeps_the_reader_declared() -> None:
    first = planned("bill a customer", recipe="vector")
    second = planned("bill a customer", recipe="vector", round=2, memory=first.memory, found=("skill_read",))
    assert second.schemas == first.schemas


def test_the_same_input_gives_the_same_bytes_also_when_read_back() -> None:
    once = given("write the invoice and pack for the trip")
    stored = portable.plain(replace(once, snapshot=Snapshot(version="", entries=(), domains=())))
    again = replace(portable.read(PlanInput, stored), snapshot=SHELF)
    assert again.skills == ALL
    assert portable.dumps(plan(again)) == portable.dumps(plan(once))


@hypothesis.given(
    said=st.lists(st.sampled_from(("write", "invoice", "pack", "trip", "starter", "lights", "`bread`"))).map(" ".join)
    | st.text(max_size=60),
    titles=st.lists(st.sampled_from(ALL) | st.builds(replace, st.sampled_from(ALL), title=st.text(max_size=80))),
    tainted=st.sets(st.integers(0, 20)),
    recipe=st.sampled_from(("cortex", "all", "vector")),
    role=st.sampled_from((READER, NO_READER)),
)
def test_whatever_is_written_the_limits_hold_and_the_gate_too(
    said: str, titles: list[Skill], tainted: set[int], recipe: str, role: RoleView
) -> None:
    skills = tuple(
        replace(skill, name=f"s-{at}", is_tainted=at in tainted, description=skill.description * 6)
        for at, skill in enumerate(titles)
    )
    made = planned(said, skills=skills, recipe=recipe, role=role)
    assert planned(said, skills=skills, recipe=recipe, role=role) == made
    assert len(made.skills) <= MOST
    assert sum(len(fit.title) + len(fit.description) for fit in made.skills) <= CHARACTERS
    assert [fit.score for fit in made.skills] == sorted((fit.score for fit in made.skills), reverse=True)
    assert all(LEAST <= fit.score <= 1 and fit.reason for fit in made.skills)
    assert not {fit.name for fit in made.skills} & {skill.name for skill in skills if skill.is_tainted}
    is_declared = "skill_read" in [item.name for item in made.sent]
    assert is_declared or not made.skills
    assert role is READER or not (is_declared or made.skills)


def test_the_steps_name_the_skills() -> None:
    step = next(step for step in steps(given("bill a customer")) if step.stage == "skills")
    assert (step.told[:2], step.marks[0].name) == ("1 ", "skill_read")


def test_the_lines_hold_names_titles_and_descriptions_only() -> None:
    assert listing(()) == ""
    head, line = listing(fits("bill a customer", ALL)).splitlines()
    assert "skill_read" in head
    assert line == "- invoices: Writing invoices. How we number, word and file invoices for customers"
