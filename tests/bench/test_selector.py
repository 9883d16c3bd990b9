"""Somebody else's selector is judged by what it answers; one that ends, is late or answers wrong is told as that."""

import sys
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import UserError
from tests.bench import external, selection
from tests.bench.conftest import Write, row
from tests.bench.external import OtherSelector
from tests.bench.ground import BenchGround
from tests.bench.selection import Extras
from tests.bench.selector import SelectorLimits, SelectorQuestion, answers
from tests.patience import PATIENCE_S

EXAMPLE = (sys.executable, str(Path(__file__).parent / "word_selector.py"))
TOOLS: list[dict[str, Any]] = [{"name": name, "description": "", "parameters": {}} for name in ("lamp_set", "repo_log")]
ASKED = [
    SelectorQuestion(message="set the lamp", history=(("user", "hi"), ("assistant", "hello"))),
    SelectorQuestion(message="log"),
]
LONG = SelectorLimits(start_s=PATIENCE_S, answer_s=PATIENCE_S)


def program(body: str) -> tuple[str, ...]:
    """A selector that says it is ready, and then does this."""
    head = "import json, sys\nsys.stdin.readline()\nprint('{\"ready\": true}', flush=True)\n"
    return (sys.executable, "-c", head + body)


def test_each_message_is_answered_in_order() -> None:
    found = answers(EXAMPLE, TOOLS, ASKED, LONG)
    assert [one.tools for one in found] == [("lamp_set",), ("repo_log",)]
    assert all(one.ms > 0 for one in found)


def test_it_is_told_the_message_and_what_was_said_before() -> None:
    echo = (
        "asked = json.loads(sys.stdin.readline())\n"
        "right = asked['history'] == [{'user': 'hi'}, {'assistant': 'hello'}] and asked['message'] == 'set the lamp'\n"
        "print(json.dumps({'id': asked['id'], 'tools': ['lamp_set'] if right else []}), flush=True)\n"
    )
    assert answers(program(echo), TOOLS, ASKED[:1], LONG)[0].tools == ("lamp_set",)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.stdin.readline(); sys.exit(3)", "ended with exit code 3 before it answered message 1"),
        ("print('oops', flush=True)", "answered message 1 with 'oops': is not JSON"),
        ("print('{\"id\": 1}', flush=True)", "tools: is needed"),
        ('print(\'{"id": 1, "tools": "lamp_set"}\', flush=True)', "tools: must be a list"),
        ('print(\'{"id": 2, "tools": []}\', flush=True)', "with the id '2'; it must be '1'"),
        ('print(\'{"id": 1, "tools": ["sun_set"]}\', flush=True)', "'sun_set', which is none of the tools"),
        ("print('x' * 2_000_000, flush=True)", "a line of more than 1,048,576 bytes"),
    ],
    ids=["dies", "no JSON", "no tools", "no list", "another id", "unknown tool", "endless line"],
)
def test_a_wrong_answer_is_told_with_its_message(body: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        answers(program(body), TOOLS, ASKED, LONG)
    assert words in caught.value.message


def test_a_late_answer_ends_the_run() -> None:
    with pytest.raises(UserError, match=r"did not answer message 1 within 0\.2 s"):
        answers(program("sys.stdin.read()"), TOOLS, ASKED, SelectorLimits(start_s=PATIENCE_S, answer_s=0.2))


def test_one_that_is_not_ready_in_time_is_late_too() -> None:
    silent = (sys.executable, "-c", "import sys; sys.stdin.read()")
    with pytest.raises(UserError, match=r"did not answer the list of tools within 0\.2 s"):
        answers(silent, TOOLS, ASKED, SelectorLimits(start_s=0.2))


def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(UserError, match="no-such-selector"):
        answers(("no-such-selector",), TOOLS, ASKED, LONG)


def test_it_stands_beside_the_recipes_with_the_same_figures(tmp_path: Path, write: Write, ground: BenchGround) -> None:
    write("routing_home.jsonl", [row("set the lamp", "tool", ["lamp_set"]), row("dark here", "tool", ["lamp_set"])])
    write("zoo_catalog.jsonl", [{"name": f"{name}_feed", "description": "Feed"} for name in ("lion", "seal")])
    write("zoo_queries.jsonl", [{"query": "the seal", "gold": ["seal_feed"]}])
    extras = Extras(other=OtherSelector(command=EXAMPLE, limits=LONG))
    sets = selection.measured((tmp_path,), ("all",), ground, 1, lambda _: None, extras)
    found = {one["name"]: one["recipes"][external.NAME] for one in sets}
    tokens = next(entry.tokens_full for entry in ground.snapshot.entries if entry.name == "lamp_set")
    assert found["home"]["recall"] == 0.5
    assert found["home"]["tokens_mean"] >= tokens / 2
    assert found["zoo"]["r5"] == 1.0
