"""The invariants of selection, over random conversations, roles, backends and injected text."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.base.model import Profile
from cortex.selection import portable
from cortex.selection.pipeline import plan
from cortex.selection.stages.gate import permitted
from cortex.selection.types import Memory, PastTurn, PlanInput, RoleView, ToolPlan
from tests.selection.made import BRIDGED, CACHED, HOUSE, WEAK, asked

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
)
messages = st.sampled_from(SAID) | st.text(max_size=60)
profiles = st.sampled_from((Profile(), CACHED, BRIDGED, WEAK, replace(CACHED, late_tools="native")))
words = st.lists(st.sampled_from(("lamps", "tasks", "repos", "shell", "task_add", "all", "ghost")), max_size=4)
roles = st.builds(
    RoleView,
    name=st.sampled_from(("one", "two")),
    tools=words.map(tuple),
    admin_tools=words.map(tuple),
    core=words.map(tuple),
    budget_tokens=st.sampled_from((None, 100, 300)),
    is_admin_only=st.booleans(),
)
modes = st.sampled_from(("auto", "auto", "auto", "chat", "all"))
steps = st.lists(st.tuples(messages, modes, st.integers(0, 400), st.booleans()), min_size=1, max_size=8)


def conversation(
    role: RoleView, profile: Profile, turns: list[tuple[str, str, int, bool]], *, is_admin: bool, outside: str = ""
) -> list[tuple[PlanInput, ToolPlan]]:
    """The plans of a conversation with a second round where the step says so; the clock runs by seconds."""
    made: list[tuple[PlanInput, ToolPlan]] = []
    memory, at_s, history = Memory(), 0, 100
    past: tuple[PastTurn, ...] = ()
    for number, (message, mode, waited_s, has_second) in enumerate(turns):
        at_s += waited_s
        given = replace(
            asked(message),
            role=role,
            profile=profile,
            is_admin=is_admin,
            mode=mode,  # type: ignore[arg-type]
            memory=memory,
            past=past,
            turn=f"t{number}",
            fixed_tokens=history,
            now=f"2026-11-21T{10 + at_s // 3600:02}:{at_s // 60 % 60:02}:{at_s % 60:02}+00:00",
        )
        for round_number in (1, 2) if has_second else (1,):
            each = replace(given, round=round_number, memory=memory)
            if round_number == 2:
                each = replace(each, found=tuple(name for name in each.ready if name.startswith("task")))
            done = plan(each)
            made.append((each, done))
            memory = done.memory
        called = tuple(item.name for item in done.sent[-1:])
        past = (*past, PastTurn(user=message, assistant="Shall I?", called=called, untrusted=outside))
        history += 300
    return made


@settings(deadline=None)
@given(roles, profiles, steps, st.booleans())
def test_nothing_outside_the_gate_is_ever_sent_listed_or_hinted(
    role: RoleView, profile: Profile, turns: list[tuple[str, str, int, bool]], is_admin: bool
) -> None:
    for each, made in conversation(role, profile, turns, is_admin=is_admin):
        allowed = {entry.name for entry in permitted(each)}
        barred = {entry.name for entry in HOUSE.entries} - allowed
        assert {item.name for item in made.sent} <= allowed
        assert {schema.name for schema in made.schemas} <= allowed
        assert {name for name, _ in made.hints} <= allowed
        assert set(made.added) | set(made.reachable) | set(made.noted) <= allowed
        assert not [name for name in barred - {"tools_discover"} if name in made.catalog or name in made.notes]


@settings(deadline=None)
@given(roles, profiles, steps, st.booleans())
def test_within_an_epoch_each_request_extends_the_one_before(
    role: RoleView, profile: Profile, turns: list[tuple[str, str, int, bool]], is_admin: bool
) -> None:
    before: dict[int, ToolPlan] = {}
    for each, made in conversation(role, profile, turns, is_admin=is_admin):
        last = before.get(made.epoch_number)
        if last is not None:
            assert [item.name for item in made.sent][: len(last.sent)] == [item.name for item in last.sent]
            assert made.catalog == last.catalog
        if last is not None and each.profile.caches:
            assert made.schemas[: len(last.schemas)] == last.schemas
        before[made.epoch_number] = made


@settings(deadline=None)
@given(roles, profiles, steps, st.booleans())
def test_while_warm_a_cached_prefix_moves_only_for_a_named_reason(
    role: RoleView, profile: Profile, turns: list[tuple[str, str, int, bool]], is_admin: bool
) -> None:
    last: ToolPlan | None = None
    for each, made in conversation(role, profile, turns, is_admin=is_admin):
        is_moved = last is not None and (made.schemas != last.schemas or made.catalog != last.catalog)
        if is_moved and each.profile.caches:
            is_return = last is not None and last.boundary == "chat only"
            assert made.boundary or made.late or is_return
        last = made


@settings(deadline=None)
@given(roles, profiles, steps, st.booleans())
def test_the_same_input_gives_the_same_bytes(
    role: RoleView, profile: Profile, turns: list[tuple[str, str, int, bool]], is_admin: bool
) -> None:
    for each, made in conversation(role, profile, turns, is_admin=is_admin):
        again = portable.read(PlanInput, portable.plain(each))
        assert portable.dumps(plan(again)) == portable.dumps(made)


@settings(deadline=None)
@given(roles, profiles, steps, st.booleans())
def test_every_permitted_tool_stays_reachable_and_has_a_reason(
    role: RoleView, profile: Profile, turns: list[tuple[str, str, int, bool]], is_admin: bool
) -> None:
    for each, made in conversation(role, profile, turns, is_admin=is_admin):
        allowed = {entry.name for entry in permitted(each) if not entry.is_meta}
        assert {decided.name for decided in made.decisions} == allowed
        assert all(decided.reason and decided.tokens > 0 for decided in made.decisions)
        if each.mode != "chat":
            assert set(made.reachable) == allowed
            unsent = allowed - {item.name for item in made.sent}
            has_way_back = "tools_discover" in {item.name for item in made.sent}
            assert not made.sent or not unsent or has_way_back


@settings(deadline=None)
@given(roles, profiles, steps, st.booleans(), st.sampled_from(SAID) | st.text(max_size=200))
def test_injected_text_changes_nothing(
    role: RoleView, profile: Profile, turns: list[tuple[str, str, int, bool]], is_admin: bool, outside: str
) -> None:
    clean = conversation(role, profile, turns, is_admin=is_admin)
    loud = conversation(role, profile, turns, is_admin=is_admin, outside=outside)
    assert [portable.dumps(made) for _, made in clean] == [portable.dumps(made) for _, made in loud]
