"""`make bench ARGS="selection …"` and its like: what they print, refuse and read, and what a program may lean on."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cortex.base.errors import CortexError
from tests.bench.commands import NAMES, app
from tests.children import ROOT, environment, run
from tests.living_house import living_house
from tests.test_command_contract import paths, written

MESSAGE = "add milk to my shopping list"
ROWS: dict[str, list[dict[str, object]]] = {
    # a file of each kind that is told apart; `worst_category_recall` needs twenty rows
    "routing.jsonl": [{"text": MESSAGE, "kind": "tool", "need_tools": [["task_create"]]}] * 20,
    "routing_more.jsonl": [{"text": "hello", "kind": "chat"}, {"text": "write a poem", "kind": "llm"}],
    "unknown.jsonl": [{"text": MESSAGE, "kind": "tool", "need_tools": ["sun_set"]}],
    "talk.jsonl": [{"text": MESSAGE, "kind": "tool", "need_tools": ["task_create"], "conversation": 1}],
    "zoo_catalog.jsonl": [{"name": "seal_feed", "description": "Feed the seal"}],
    "zoo_queries.jsonl": [{"query": "feed the seal", "gold": ["seal_feed"]}],
    "filler_catalog.jsonl": [{"name": "lamp_on", "description": "Switch a lamp on"}],
}
OPTIONS = {
    "cost": "--json --model --profile --recipe --regime --role --seed --user",
    "month": "--json",
    "recall": "--json",
    "selection": "--categories --data --encoder --frontier --held-out --json --made --model --profile --recipe --role"
    " --seed --selector --stages --user",
}
JSON_KEYS = {
    "cost --regime cron --recipe all": """
        : model profile rank role user window_tokens
        regimes.cron: all
        floors: cron
        above_floor.cron: all
        details.cron.all: asked_again extra_requests recall requests rewrites tokens
    """,
    "recall": """
        people[]: burdened found further name plain set tokens_plain tokens_wanted wanted
    """,
    "selection --data SETS --recipe cortex": """
        : model profile rank role user window_tokens
        sets[]: kind name rows source
        sets[].kinds: chat llm tool
        sets[].risk.cortex: any rows tools
        sets[].risk.cortex.risks: ends runs sends spends
        sets[].unknown_tools: sun_set
        sets[].intervals.cortex: recall[] tokens_mean[] tools_mean[]
        sets[].categories.cortex.tasks: recall rows tokens_mean tools_mean
        sets[].categories.cortex.tasks.intervals: recall[] tokens_mean[] tools_mean[]
        sets[].recipes.cortex: chat_any chat_tokens_share llm_nonweb p50_ms p99_ms recall recall_after_discover
        sets[].recipes.cortex: recall_after_rescue recall_own tokens_mean tokens_share tools_mean worst_category_recall
        sets[].recipes.cortex: ndcg10 r10 r5
        sets[].recipes.cortex: rank_p50_ms rank_p99_ms
    """,
}


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    for name, rows in ROWS.items():
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return folder


def judged(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def parsed(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(*words: str) -> str:
    done = judged(*words)
    assert (isinstance(done.exception, CortexError), done.stdout) == (True, ""), done.output
    return str(done.exception)


def bench(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    """As `make bench` runs it."""
    return run(words, env=environment(home), cwd=ROOT, module="tests.bench")


def test_every_command_keeps_its_options() -> None:
    assert tuple(OPTIONS) == NAMES
    for name, options in OPTIONS.items():
        (found,) = (each for each in app.registered_commands if each.name == name)
        told = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "250", "TERM": "dumb"}).output
        assert [word for word in sorted(set(_long(told))) if word != "--help"] == options.split(), found


def _long(told: str) -> Iterator[str]:
    """The options that a help page begins a line with."""
    for line in told.splitlines():
        words = line.strip("│* ").split()
        if words and words[0].startswith("--"):
            yield words[0]


@pytest.mark.parametrize(("command", "keys"), JSON_KEYS.items(), ids=lambda one: one.split()[0])
def test_every_command_keeps_the_keys_of_its_json(sets: Path, command: str, keys: str) -> None:
    words = (str(sets) if word == "SETS" else word for word in (*command.split(), "--json"))
    found, wanted = paths(parsed(judged(*words))), written(keys)
    assert (wanted - found, found - wanted) == (set(), set())


def test_a_file_is_judged_under_each_named_recipe_and_told_as_a_table(sets: Path) -> None:
    words = ("selection", "--data", str(sets / "unknown.jsonl"), "--recipe", "cortex", "--recipe", "all")
    (one,) = parsed(judged(*words, "--json"))["sets"]
    assert (one["name"], one["kind"], one["rows"], list(one["recipes"])) == ("unknown", "routing", 1, ["cortex", "all"])
    told = judged(*words)
    assert "unknown · routing · 1 rows" in told.stdout
    assert "unknown: 1 rows, cortex" in told.stderr
    assert "unknown: 1 rows" not in told.stdout


def test_a_selector_of_ones_own_is_judged_beside_cortex(sets: Path) -> None:
    program = f"{sys.executable} tests/bench/word_selector.py"
    done = judged("selection", "--selector", program, "--data", str(sets / "routing.jsonl"), "--json")
    (one,) = parsed(done)["sets"]
    assert list(one["recipes"]) == ["cortex", "selector"]


def test_costs_are_a_share_of_sending_all() -> None:
    words = ("cost", "--regime", "cron", "--recipe", "all", "--recipe", "cortex")
    assert parsed(judged(*words, "--json"))["regimes"]["cron"]["all"] == 100.0
    assert "cron" in judged(*words).stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("cost --role nobody", "There is no role 'nobody'; known: admin, "),
        ("cost --regime tropical", "There is no regime 'tropical'; known: none, "),
        ("selection --data nowhere", "nowhere does not exist."),
        ("selection --selector '", "is no command line"),
    ],
)
def test_what_is_unknown_is_said_in_a_sentence(command: str, words: str) -> None:
    assert words in refused(*command.split())


@pytest.mark.parametrize("command", ["cost --strict", "selection --profile gemini"])
def test_an_option_that_there_is_not_is_refused_before_anything_is_judged(command: str) -> None:
    assert judged(*command.split()).exit_code == 2


def test_a_sentence_model_that_cannot_be_used_is_said(tmp_path: Path, sets: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    told = refused("selection", "--data", str(sets / "routing_more.jsonl"), "--encoder", str(tmp_path))
    assert told.startswith(f"{tmp_path} cannot be used: ")


def test_a_broken_line_is_said_with_its_number(tmp_path: Path) -> None:
    rows = tmp_path / "mine.jsonl"
    rows.write_text("{\n", encoding="utf-8")
    assert refused("selection", "--data", str(rows)).startswith("mine.jsonl, line 1: not JSON")


def test_a_person_and_a_model_are_read_from_a_home(tmp_path: Path) -> None:
    home, words = tmp_path / "home", ("cost", "--regime", "cron", "--recipe", "all", "--json")

    async def used() -> None:
        async with living_house(home) as house:
            form = {"name": "small", "provider": "openai", "model": "qwen3", "base_url": "http://127.0.0.1:11434/v1"}
            await house.cortex.models.save(house.admin, form)

    asyncio.run(used())
    plain = parsed(judged(*words))
    assert plain["profile"] == "each regime's own"
    done = bench(*words, "--user", "ada", "--model", "small", home=home)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["user"], told["model"], told["profile"]) == ("ada", "small", "local")
    assert told["details"]["cron"]["all"]["tokens"] < plain["details"]["cron"]["all"]["tokens"]


def test_a_home_without_the_tables_of_this_version_is_left_as_it_is(tmp_path: Path) -> None:
    done = bench("cost", "--user", "ada", home=tmp_path / "home")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"bench: {tmp_path / 'home'} has no tables of this version of Cortex")
    assert len(done.stderr.splitlines()) == 1
