"""The limits of the house: words do not hold, so these do."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest

from cortex.base import scan
from cortex.base.settings import env_example
from cortex.storage.repository import Repository
from tests.databases import database_of
from tests.patience import PATIENCE_S
from web import assets

ROOT = Path(__file__).resolve().parents[1]
LINES_MAX = 400  # a module is cut by idea; longer than this it holds more than one
FUNCTION_LINES_MAX = 60
TEMPLATE_WIDTH = 120  # as of Python
WIDE_FUNCTIONS = 32  # functions of seven or more parameters; it only falls: what belongs together is one value
WIDE = 7
SMALL_MODULES = 61  # modules of fewer lines than SMALL_LINES; it only falls: what is one idea is one module
SMALL_LINES = 40
QUESTIONS = 0  # docstrings that open with What, Who, Whether, Which or How; it only falls
BROAD_EXCEPTS = {
    "cortex/agent/execute.py": "whatever a tool raises becomes its result",
    "cortex/base/calm_pool.py": "whatever work raises is told to whoever waits for it",
    "cortex/base/scan.py": "whatever the code and the files of a plug-in raise is shown on its page",
    "cortex/toolkit/plugins.py": "whatever a call of a plug-in raises becomes its result",
    "cortex/services/today/today.py": "whatever a part of the page raises is named in its place",
    "cortex/services/turns/turns.py": "whatever a turn raises ends it with a text",
    "web/errors.py": "whatever a page raises becomes a page",
}
HEAVY = (
    "aiosmtplib",
    "alembic",
    "anthropic",
    "apscheduler",
    "cortex.base.vocabulary",
    "cortex.schedule.grammar",
    "cryptography",
    "ddgs",
    "genai_prices",
    "httpcore",
    "httpx",
    "httpx2",
    "lxml",
    "markdown_it",
    "numpy",
    "nh3",
    "onnxruntime",
    "openai",
    "opentelemetry.exporter",
    "opentelemetry.sdk",
    "pygments",
    "pypdfium2",
    "resiliparse",
    "rich",
    "sqlglot",
    "tiktoken",
    "tokenizers",
    "typer",
    "websockets",
    "yaml",
    "zeroconf",
)
# Folders whose files are found by looking: tools, pages, stages, models, channels, migrations; and what is started.
REGISTERS = re.compile(
    r"cortex/(tools|notify|providers|selection/stages|selection/ways)/|web/pages/|web/(__main__|assets)|migrations/"
    r"|cortex/integrations/(cards/|page_text|picture_maker|foreign/readers/|documents/(pdf|docx|odt|mail|plain))"
)
DISTRIBUTION = {  # import name -> name on the index, where they differ
    "opentelemetry": "opentelemetry-sdk",
    "PIL": "pillow",
    "argon2": "argon2-cffi",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "linkify_it": "linkify-it-py",
    "markdown_it": "markdown-it-py",
    "markupsafe": "jinja2",
    "psycopg": "psycopg",
    "pydantic_core": "pydantic",
    "starlette": "fastapi",
    "yaml": "pyyaml",
    "click": "typer",
    "anyio": "fastapi",
    "hatchling": "hatchling",
    "jwt": "pyjwt",
}


def modules() -> list[Path]:
    return sorted(
        path
        for room in ("cortex", "web", "migrations")
        for path in (ROOT / room).rglob("*.py")
        if "node_modules" not in path.parts
    )


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("needs a git checkout")
    for one in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / one
        if path.is_file():
            yield one, path.read_text(encoding="utf-8", errors="ignore")


@pytest.mark.parametrize("path", modules(), ids=name)
def test_modules_and_functions_stay_small(path: Path) -> None:
    if path.parent.name == "versions":
        return  # a migration is a list of tables, read once
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES_MAX
    functions = [n for n in ast.walk(tree(path)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = {f.name: f.end_lineno - f.lineno + 1 for f in functions if f.end_lineno}
    assert {one: lines for one, lines in long.items() if lines > FUNCTION_LINES_MAX} == {}


def test_lines_of_templates_are_read_without_scrolling() -> None:
    long = [
        f"{name(path)}:{number}"
        for path in (ROOT / "web" / "templates").glob("*.html")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > TEMPLATE_WIDTH
    ]
    assert long == []


@pytest.mark.parametrize("path", modules(), ids=name)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    words = ast.get_docstring(tree(path))
    assert words
    assert len(words.splitlines()) <= 24 if name(path).startswith("cortex/base/e") else len(words.splitlines()) <= 5


def test_docstrings_open_with_a_verb() -> None:
    questions = [
        f"{name(path)}:{node.lineno}"
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and re.match(r"(What|Who|Whether|Which|How)\b", ast.get_docstring(node) or "")
    ]
    assert len(questions) <= QUESTIONS, questions  # fewer: lower the number


def test_functions_take_few_parameters() -> None:
    wide = [
        f"{name(path)}:{node.lineno}"
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _parameters(node.args) >= WIDE
        and not any("tool(" in ast.unparse(one) for one in node.decorator_list)  # a model fills in what a tool takes
    ]
    assert len(wide) <= WIDE_FUNCTIONS, wide  # fewer: lower the number


def _parameters(given: ast.arguments) -> int:
    """Count them, without the object or class that a method is called on."""
    named = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(named) - (named[:1] in (["self"], ["cls"])) + (given.vararg is not None) + (given.kwarg is not None)


def test_few_modules_are_small() -> None:
    small = [
        name(path)
        for path in modules()
        if path.name != "__init__.py" and path.parent.name != "versions"
        if len(path.read_text(encoding="utf-8").splitlines()) < SMALL_LINES
    ]
    assert len(small) <= SMALL_MODULES, small  # fewer: lower the number


def test_modules_that_are_loaded_late_are_there() -> None:
    named = {
        (name(path), str(call.args[0].value))
        for path in modules()
        for call in ast.walk(tree(path))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "scan.load" and call.args
        if isinstance(call.args[0], ast.Constant) and str(call.args[0].value).startswith("cortex.")
    }
    assert len(named) > 20
    at = {one: ROOT / one[1].replace(".", "/") for one in named}
    assert [one for one, path in at.items() if not path.with_suffix(".py").is_file() and not path.is_dir()] == []


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name(path))
    assert {one: where for one, where in places.items() if len(where) > 1} == {}


def test_rows_and_repositories_are_called_so() -> None:
    found = {one.__name__ for one in subclasses(Repository)}
    assert found
    assert {one for one in found if not one.lstrip("_").endswith(("Repository", "Sums"))} == set()


def subclasses(kind: type[Repository]) -> Iterator[type[Repository]]:
    for stem in scan.modules("cortex.storage"):
        scan.load(f"cortex.storage.{stem}")
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def test_every_module_is_imported_somewhere() -> None:
    named = {one for path in modules() for one in _named(tree(path))}
    assert [one for one in map(name, modules()) if not REGISTERS.match(one) and _dotted(one) not in named] == []


def _dotted(module: str) -> str:
    return module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _named(tree: ast.Module) -> Iterator[str]:
    """What imports, and texts of late loads, may name."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(package), names=names):
                yield from accumulate(package.split("."), "{}.{}".format)
                yield from (f"{package}.{alias.name}" for alias in names)
            case ast.Constant(value=str(text)):
                yield text


def test_only_these_places_catch_any_exception() -> None:
    broad: dict[str, int] = {}
    for path in modules():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node.type):
                broad[name(path)] = broad.get(name(path), 0) + 1
    assert broad == dict.fromkeys(BROAD_EXCEPTS, 1)


def _is_broad(caught: ast.expr | None) -> bool:
    return caught is None or any(
        isinstance(n, ast.Name) and n.id in ("Exception", "BaseException") for n in ast.walk(caught)
    )


def test_only_scan_and_lazy_import_by_name() -> None:
    using = [name(p) for p in modules() if re.search(r"\bimportlib\b|__import__", p.read_text(encoding="utf-8"))]
    assert using == ["cortex/base/lazy.py", "cortex/base/scan.py"]


def test_what_is_imported_is_a_named_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["postgres"], *extras["ddgs"], *extras["semantic"], *extras["train"]]
    wanted += extras["otel"]
    named = {re.split(r"[\[<>=]", one)[0] for one in wanted}
    ours = {"cortex", "web", "migrations"} | set(sys.stdlib_module_names)
    missing = {}
    for path in modules():
        for top in _imported(tree(path)) - ours:
            if DISTRIBUTION.get(top, top.replace("_", "-")) not in named:
                missing[top] = name(path)
    assert missing == {}


def _imported(tree: ast.Module) -> set[str]:
    whole = {alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    parts = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module and not n.level}
    return {one.partition(".")[0] for one in whole | parts}


def test_no_tracked_file_names_an_index_or_this_machine() -> None:
    forbidden = [".".join(words) for words in (("pypi", "org"), ("pythonhosted", "org"), ("registry", "npmjs", "org"))]
    forbidden += [f"{ROOT}/", f"{sys.prefix}/"]
    found = {one: word for one, text in tracked() for word in forbidden if word in text}
    assert found == {}


def test_no_third_party_script_is_tracked() -> None:
    scripts = [one for one, _ in tracked() if one.endswith((".js", ".css"))]
    assert all(one.startswith("web/static/") and "/vendor/" not in one for one in scripts)


def test_env_example_is_current() -> None:
    assert (ROOT / ".env.example").read_text(encoding="utf-8") == env_example()


def test_the_lock_holds_every_dependency_with_its_hash() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = (ROOT / "requirements/run.txt").read_text(encoding="utf-8")
    for one in project["dependencies"]:
        wanted = re.split(r"[\[<>=]", one)[0]
        assert re.search(rf"^{re.escape(wanted)}==\S+.*\\\n    --hash=sha256:", lock, re.MULTILINE), wanted


def test_the_sentence_model_is_pinned_beside_the_lock_of_the_house() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    lock = (ROOT / "requirements/semantic.txt").read_text(encoding="utf-8")
    house = "".join((ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8") for name in ("run", "test"))
    for one in extra["semantic"]:
        if one in extra["train"]:  # for tests, too
            continue
        wanted = re.escape(re.split(r"[\[<>=]", one)[0])
        assert re.search(rf"^{wanted}==\S+.*\\\n    --hash=sha256:", lock, re.MULTILINE), wanted
        assert not re.search(rf"^{wanted}==", house, re.MULTILINE), wanted


def test_the_bundle_knows_when_it_is_old(tmp_path: Path) -> None:
    assert re.fullmatch(r"[0-9a-f]{64}\n", assets.stamp())


STARTS_THE_DAEMON = """
import asyncio, json, sys
from pathlib import Path
from cortex.app import Cortex
from cortex.base.settings import load_settings
from web import serve
from web.app import create_app

async def main():
    async with Cortex.open(load_settings(None, home=Path(sys.argv[1]), port=0)) as cortex:
        create_app(cortex)
        print(json.dumps(sorted(sys.modules)))

asyncio.run(main())
"""


def test_a_started_daemon_has_loaded_nothing_heavy(tmp_path: Path) -> None:
    _loaded(tmp_path)  # makes the tables, for which Alembic is needed
    assert _loaded(tmp_path) & set(HEAVY) == set()


@pytest.mark.names_its_database(reason="SQLite's needs no driver")
def test_a_daemon_on_sqlite_has_not_loaded_the_driver_of_postgresql(tmp_path: Path) -> None:
    assert _loaded(tmp_path) & {"psycopg", "psycopg_binary"} == set()


def _loaded(home: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", STARTS_THE_DAEMON, str(home)],
        cwd=ROOT,
        env={**os.environ, "CORTEX_DATABASE_URL": database_of(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


HTTPX_CALLS = [f"httpx.{name}" for name in ("AsyncClient", "Client", "get", "post", "put", "delete", "stream")]
BETS = re.compile(
    r"""asyncio\.timeout\([\d.]+\)|asyncio\.wait_for\(.*,\s[\d.]+\)|\btimeout=[\d._]+|\.(?:wait|join)\([\d.]+\)
    |\bdeadline=(?!None)|set_default_timeout\(\d|monotonic\(\)\s-\s\w+\s<\s\d""",
    re.VERBOSE,
)


def test_no_test_bets_on_time() -> None:
    """Whoever waits for what has to come waits by `tests/patience.py`; what is measured, `make bench` measures."""
    bets = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if "bench" not in path.parts and "node_modules" not in path.parts
        for found in BETS.finditer(path.read_text(encoding="utf-8"))
    ]
    assert bets == []


def test_no_test_takes_the_five_seconds_that_httpx_waits_by_itself() -> None:
    """A client or call over a real line says how long it waits; a transport of its own leaves the machine out."""
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if "bench" not in path.parts and "node_modules" not in path.parts and "httpx." in path.read_text("utf-8")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if ast.unparse(node.func) in HTTPX_CALLS
        if not {"timeout", "transport"} & {word.arg for word in node.keywords}
    ]
    assert silent == []


NAMED = re.compile(r"`((?:[a-z_.]+/)*[a-z_]+\.(?:py|html))(?:: (\w+))?`")


def test_the_architecture_names_files_and_parts_that_are_there() -> None:
    named = NAMED.findall((ROOT / "docs" / "architecture.md").read_text())
    assert len(named) > 80
    places = [
        path
        for top in ("cortex", "web", "tests")
        for path in (ROOT / top).rglob("*")
        if path.suffix in (".py", ".html")
    ]
    for file, part in named:
        found = [path for path in places if f"/{path.relative_to(ROOT)}".endswith(f"/{file}")]
        assert found, f"{file} is not there"
        is_there = re.compile(rf"(?:def|class|macro) {part}\b|^{part}\b.* = ", re.MULTILINE)
        assert not part or any(is_there.search(path.read_text()) for path in found), f"{file} has no {part}"


# A pause that no loop looks after, by file: why nothing is decided by how long it takes.
PAUSES = {
    "tests/base/test_http.py": "a server that drips",
    "tests/e2e/test_calendar_kill.py": "the moment of a kill, drawn by chance",
    "tests/e2e/chat_tab.py": "the page draws, and is compared until it is as another",
    "tests/e2e/clockroom.py": "the moment of a kill, drawn by chance",
    "tests/e2e/crowd.py": "the moment of a kill, drawn by chance",
    "tests/e2e/engine_child.py": "a step takes a while, so that a kill meets it",
    "tests/e2e/engine_poison.py": "a step takes a while, so that a kill meets it",
    "tests/e2e/pages.py": "playwright takes in what comes, at each look",
    "tests/e2e/test_engine_crash.py": "the moment of a kill, drawn by chance",
    "tests/e2e/test_locked_database.py": "the lock is held for longer than anybody waits",
    "tests/e2e/test_pages_quality.py": "playwright takes in what comes, at each look",
    "tests/e2e/test_every_turn_ends.py": "how long a database or a disk is away, or a process stands still",
    "tests/e2e/test_push.py": "playwright takes in what comes, at each look",
    "tests/test_watchdog.py": "a wait that costs no processor",
    "tests/storage/test_accounts.py": "the moment at which a writer is cancelled",
    "tests/storage/test_db.py": "the moment at which a writer is cancelled",
}


def test_whoever_pauses_looks_again() -> None:
    """A fact is waited for in a `while`, whose end a deadline holds; `sleep(0)` lets others go on and is no pause."""
    found = {
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if "bench" not in path.parts and "node_modules" not in path.parts
        if any(_is_pause(node) for node in _outside_loops(tree(path)))
    }
    assert found == set(PAUSES)


def _outside_loops(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.While):
            yield node
            yield from _outside_loops(node)


def _is_pause(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="wait_for_timeout")):
            return True
        case ast.Call(func=ast.Attribute(attr="sleep"), args=[length]):
            return not (isinstance(length, ast.Constant) and length.value == 0)
    return False
