"""Any arguments to any tool: checked in words, or done, or refused by the tool itself; never a failure of its own.

Left out are tools of high risk, which would restart this machine's Cortex, run commands or write to strangers.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex.agent.arguments import check, destination, digest, title, visible
from cortex.agent.execute import run_tool
from cortex.app import Cortex
from cortex.base.clock import now
from cortex.base.ids import new_id
from cortex.base.messages import ToolCall
from cortex.base.user import User
from cortex.toolkit.context import Ctx
from cortex.toolkit.spec import Tool
from cortex.tools import load
from tests.databases import house_settings

SHIPPED = load().tools
NAMES = frozenset(SHIPPED)
TAME = sorted(name for name, tool in SHIPPED.items() if tool.risk != "high")
FAILED = "failed unexpectedly"
WORDS = [
    "",
    "\x00",
    "a\x00b",
    "\ud800",
    "../../etc/passwd",
    "/dev/zero",
    "7" * 5000,
    "[" * 5000,
    "tomorrow at 25:61",
    "every 99999999999999999999 years",
    "0 0 31 2 *",
    "9999-12-31",
    "http://[x",
    "http://127.0.0.1:0/",
    "\u202e\u200b",
    "a" * 70_000,
    "% " * 5_000,
    "(" * 500,
    "(a+)+$",
]
NUMBERS: list[Any] = [0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308, float("inf"), float("nan"), 0.1]
NONSENSE = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(NUMBERS),
    st.text(max_size=40),
    st.none() | st.booleans(),
    st.recursive(
        st.sampled_from(WORDS[:5]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    ),
)


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """What a property of this kind may hold, extremes included."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "string":
            return (
                st.sampled_from(WORDS) | st.text(max_size=60) | st.sampled_from(["milk", "tomorrow at 9", "notes/a.md"])
            )
        case "integer":
            return st.integers() | st.sampled_from([one for one in NUMBERS if isinstance(one, int)])
        case "number":
            return st.sampled_from(NUMBERS)
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(fitting(schema.get("items", {})), max_size=4)
    return NONSENSE


def arguments(tool: Tool) -> st.SearchStrategy[str]:
    """The text of a call's arguments: each fits, or is nonsense, or is left out; at times one too many."""
    properties = tool.full.parameters.get("properties", {})
    fields = {
        name: fitting(schema) | fitting(schema) | fitting(schema) | NONSENSE for name, schema in properties.items()
    }
    needed = {name: fields.pop(name) for name in tool.full.parameters.get("required", ())}
    whole = st.fixed_dictionaries(needed, optional=fields) | st.fixed_dictionaries(
        needed, optional={**fields, "extra": NONSENSE}
    )
    broken = st.sampled_from(
        ["", "{", "[" * 100_000, '{"a":' * 100_000, "null", "7" * 5000, '{"a": 1e999999}', '"\\ud800"']
    )
    return st.one_of(whole.map(json.dumps), whole.map(json.dumps), whole.map(json.dumps), broken)


CALLS = st.sampled_from(sorted(NAMES)).flatmap(lambda name: st.tuples(st.just(name), arguments(SHIPPED[name])))
TAME_CALLS = st.sampled_from(TAME).flatmap(lambda name: st.tuples(st.just(name), arguments(SHIPPED[name])))
GENEROUS = settings(suppress_health_check=list(HealthCheck), deadline=None, database=None)


def said_wrong(name: str, text: str) -> bool:
    """Whether the gate refuses the arguments, which it must do in words."""
    checked = check(load(), NAMES, ToolCall(id="1", name=name, arguments=text))
    if isinstance(checked, str):
        assert len(checked) > 10
        return True
    assert digest(name, checked.canonical)
    assert isinstance(visible(checked) + title(checked) + destination(checked) + checked.risk, str)
    return False


@pytest.mark.parametrize(
    "examples", [pytest.param(300, id="sample"), pytest.param(10_000, id="whole", marks=pytest.mark.full)]
)
def test_the_gate_reads_any_arguments_or_says_what_is_wrong(examples: int) -> None:
    found: set[bool] = set()

    @settings(GENEROUS, max_examples=examples)
    @given(CALLS)
    def read(call: tuple[str, str]) -> None:
        found.add(said_wrong(*call))

    read()
    assert found == {True, False}


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


async def _opened(folder: Path) -> tuple[Any, Cortex, User]:
    opening = Cortex.at_rest(house_settings(folder))
    house = await opening.__aenter__()
    return opening, house, (await house.accounts.add_user("Ada", "admin", "a few words in a row")).user


@pytest.mark.parametrize(
    "examples", [pytest.param(150, id="sample"), pytest.param(10_000, id="whole", marks=pytest.mark.full)]
)
def test_no_tool_fails_on_arguments_that_the_gate_lets_through(
    tmp_path: Path, runner: asyncio.Runner, examples: int
) -> None:
    opening, house, ada = runner.run(_opened(tmp_path / "home"))
    permitted, done = frozenset(house.runtime.registry.configured(house.wired)), set[str]()

    @settings(GENEROUS, max_examples=examples)
    @given(TAME_CALLS)
    def act(call: tuple[str, str]) -> None:
        name, text = call
        checked = check(house.runtime.registry, permitted, ToolCall(id="1", name=name, arguments=text))
        if isinstance(checked, str):
            return
        ctx = Ctx(
            user=ada,
            conversation_id="here",
            turn_id="turn:1",
            call_id=new_id(),
            role="orchestrator",
            now=now(),
            scope=house.scope,
        )
        output, _ = runner.run(run_tool(checked.tool, ctx, checked.arguments))
        assert FAILED not in output.text, (name, text[:300])
        done.add(name)

    try:
        act()
    finally:
        runner.run(opening.__aexit__(None, None, None))
    assert len(done) > 10
