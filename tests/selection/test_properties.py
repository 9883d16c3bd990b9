"""The invariants of selection, for every recipe: random conversations, roles, registries, backends, injected text.

100,000 cases in all in `make test-full`, a fiftieth of them in `make test`. A case is a whole conversation.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cortex.base import portable
from cortex.base.model import Profile
from cortex.selection.pipeline import plan
from cortex.selection.recipes import RECIPES
from cortex.selection.types import PastTurn, PlanInput, PlannerMemory, RoleView, Snapshot, ToolPlan
from cortex.toolkit.grants import granted, permits
from tests.selection.baseline_house import SOME
from tests.selection.made import BRIDGED, CACHED, HOUSE, WEAK, asked

PROPERTIES = 6
FIFTIETH = -(-2_000 // (len(RECIPES) * PROPERTIES))
COUNTS = [
    pytest.param(FIFTIETH, id="fiftieth"),
    pytest.param(49 * FIFTIETH, id="rest", marks=pytest.mark.full),
]
SEES_RESULTS = {"punch"}  # it scans what tools gave, to bring in permitted tools
HAS_DISCOVERY = {"cortex", "ora"}

SAID = (
    "hello",
    "thanks",
    "yes please",
    "and the bedroom?",
    "turn off the lights",
    "add eggs to my shopping list",
    "what did I commit yesterday",
    "use `shell_run` and lamp_get",
    "tell me a story about a fox that lives in a flight report",
    "git log, and kill process 4",
    "search for the weather and remember the task",
    "every day the kubernetes journal entry",
    "",
    "  ",
)
messages = st.sampled_from(SAID) | st.text(max_size=60)
profiles = st.sampled_from((Profile(), CACHED, BRIDGED, WEAK, replace(CACHED, late_tools="native")))
snapshots = st.sampled_from((HOUSE, SOME))
WORDS = (
    "lamps",
    "tasks",
    "repos",
    "shell",
    "task_add",
    "all",
    "ghost",
    "git",
    "ha",
    "git_log",
    "system",
    "session",
    "web",
)
words = st.lists(st.sampled_from(WORDS), max_size=4)
roles = st.builds(
    RoleView,
    name=st.sampled_from(("one", "coder")),
    tools=words.map(tuple),
    admin_tools=words.map(tuple),
    core=words.map(tuple),
    budget_tokens=st.sampled_from((None, 100, 300)),
    is_admin_only=st.booleans(),
)
modes = st.sampled_from(("auto", "auto", "auto", "chat", "all"))
choices = st.tuples(words.map(tuple), words.map(tuple))  # what the person always and never wants in the conversation
steps = st.lists(st.tuples(messages, modes, st.integers(0, 400), st.booleans(), choices), min_size=1, max_size=5)
Steps = list[tuple[str, str, int, bool, tuple[tuple[str, ...], tuple[str, ...]]]]
Case = tuple[Snapshot, RoleView, Profile, Steps, bool]
Property = Callable[[str, Case, str], None]
cases_ = st.tuples(snapshots, roles, profiles, steps, st.booleans())


def for_every_recipe(holds: Property) -> Callable[[str, int], None]:
    """A test that tries the property on random cases under each recipe."""

    @pytest.mark.parametrize("count", COUNTS)
    @pytest.mark.parametrize("recipe", sorted(RECIPES))
    def test(recipe: str, count: int) -> None:
        @settings(max_examples=count, database=None)
        @given(case=cases_, outside=st.sampled_from(SAID) | st.text(max_size=200))
        def tried(case: Case, outside: str) -> None:
            holds(recipe, case, outside)

        tried()

    return test


def test_the_cases_are_a_hundred_thousand_in_all() -> None:
    tests = [value for name, value in globals().items() if name.startswith("test_") and hasattr(value, "pytestmark")]
    assert len(tests) == PROPERTIES
    assert len(tests) * len(RECIPES) * 50 * FIFTIETH >= 100_000


def conversation(recipe: str, case: Case, outside: str = "", seen: str = "") -> list[tuple[PlanInput, ToolPlan]]:
    """The plans of a conversation with a second round where the step says so; the clock runs by seconds."""
    snapshot, role, profile, turns, is_admin = case
    made: list[tuple[PlanInput, ToolPlan]] = []
    memory, at_s, history = PlannerMemory(), 0, 100
    past: tuple[PastTurn, ...] = ()
    for number, (message, mode, waited_s, has_second, chosen) in enumerate(turns):
        at_s += waited_s
        # Only our own recipe takes a later choice without moving the prefix: the others have it from the start.
        always, never = chosen if recipe == "cortex" else turns[0][4]
        given = replace(
            asked(message),
            recipe=recipe,
            snapshot=snapshot,
            ready=tuple(entry.name for entry in snapshot.entries),
            role=role,
            profile=profile,
            is_admin=is_admin,
            mode=mode,
            memory=memory,
            past=past,
            always=always,
            never=never,
            turn=f"t{number}",
            fixed_tokens=history,
            now=f"2026-11-21T{10 + at_s // 3600:02}:{at_s // 60 % 60:02}:{at_s % 60:02}+00:00",
        )
        for round_number in (1, 2) if has_second else (1,):
            each = replace(given, round=round_number, memory=memory)
            if round_number == 2:
                each = replace(each, found=tuple(name for name in each.ready if name.startswith(("task", "git_l"))))
            done = plan(each)
            made.append((each, done))
            memory = done.memory
        called = tuple(item.name for item in done.sent[-1:])
        results = (seen,) if seen else ()
        past = (*past, PastTurn(user=message, assistant="Shall I?", called=called, untrusted=outside, results=results))
        history += 300
    return made


def permitted(each: PlanInput) -> set[str]:
    """What the gate's one rule lets through, meta tools where there is anything."""
    grant = granted(each.role, is_admin=each.is_admin)
    business = {
        entry.name
        for entry in each.snapshot.entries
        if not entry.is_meta
        and permits(grant, entry.name, entry.category, each.channel, is_withheld=entry.is_admin and not each.is_admin)
    }
    return business | {entry.name for entry in each.snapshot.entries if entry.is_meta and business}


@for_every_recipe
def test_nothing_outside_the_gate_is_ever_sent_listed_or_hinted(recipe: str, case: Case, outside: str) -> None:
    for each, made in conversation(recipe, case, outside, seen=outside):
        allowed = permitted(each)
        barred = {entry.name for entry in each.snapshot.entries} - allowed
        assert {item.name for item in made.sent} <= allowed
        assert {schema.name for schema in made.schemas} <= allowed
        assert {name for name, _ in made.hints} <= allowed
        assert set(made.added) | set(made.reachable) | set(made.noted) <= allowed
        told = set(re.findall(r"\w+", f"{made.catalog} {made.notes}"))
        assert not told & (barred - {"tools_discover"})
        unwanted = {entry.name for entry in each.snapshot.entries if entry.name in each.never and not entry.is_meta}
        assert not unwanted & {*made.added, *made.reachable, *(name for name, _ in made.hints)}
        if not made.memory.is_open or made.boundary:  # nothing of an earlier request stands in this one
            assert not unwanted & {*told, *(item.name for item in made.sent)} or made.boundary == "chat only"


@for_every_recipe
def test_within_an_epoch_each_request_extends_the_one_before(recipe: str, case: Case, outside: str) -> None:
    before: dict[int, ToolPlan] = {}
    for each, made in conversation(recipe, case, outside):
        last = before.get(made.epoch_number)
        if last is not None:
            assert [item.name for item in made.sent][: len(last.sent)] == [item.name for item in last.sent]
            assert made.catalog == last.catalog
        if last is not None and each.profile.caches:
            assert made.schemas[: len(last.schemas)] == last.schemas
        before[made.epoch_number] = made


@for_every_recipe
def test_while_warm_a_cached_prefix_moves_only_for_a_named_reason(recipe: str, case: Case, outside: str) -> None:
    last: ToolPlan | None = None
    for each, made in conversation(recipe, case, outside):
        is_moved = last is not None and (made.schemas != last.schemas or made.catalog != last.catalog)
        if is_moved and each.profile.caches:
            is_return = last is not None and last.boundary == "chat only"
            assert made.boundary or made.late or is_return
        last = made


@for_every_recipe
def test_the_same_input_gives_the_same_bytes(recipe: str, case: Case, outside: str) -> None:
    for each, made in conversation(recipe, case, outside, seen=outside):
        again = portable.read(PlanInput, _plain(each))
        assert portable.dumps(plan(replace(again, snapshot=each.snapshot))) == portable.dumps(made)


def _plain(each: PlanInput) -> Any:
    """The input as it is stored, but for the registry, which has a test of its own."""
    return portable.plain(replace(each, snapshot=EMPTY))


EMPTY = Snapshot(version="", entries=(), domains=())


@for_every_recipe
def test_every_permitted_tool_stays_reachable_and_has_a_reason(recipe: str, case: Case, outside: str) -> None:
    for each, made in conversation(recipe, case, outside):
        business = permitted(each) - {"tools_discover", "tool_call"}
        allowed = business - set(each.never)
        assert {decided.name for decided in made.decisions} == business
        assert all(decided.reason and decided.tokens > 0 for decided in made.decisions)
        assert {*(each.stage for each in made.decisions), *(each.stage for each in made.sent)} <= {
            name for stages in RECIPES.values() for stage in stages for name in stage.names
        }
        if each.mode != "chat":
            assert set(made.reachable) == allowed
            unsent = allowed - {item.name for item in made.sent}
            has_way_back = recipe not in HAS_DISCOVERY or "tools_discover" in {item.name for item in made.sent}
            assert not made.sent or not unsent or has_way_back


@for_every_recipe
def test_injected_text_changes_nothing(recipe: str, case: Case, outside: str) -> None:
    seen = "" if recipe in SEES_RESULTS else outside
    clean = conversation(recipe, case)
    loud = conversation(recipe, case, outside, seen)
    assert [portable.dumps(made) for _, made in clean] == [portable.dumps(made) for _, made in loud]
