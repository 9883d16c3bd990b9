"""Reads a file or a folder of the bench's format; what a file is, its rows say, not its name.

Routing rows, tool catalogues, queries over a catalogue, examples of its tools. A broken line is told with file and
line; a file of another kind is passed over in a folder, with a word about it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from cortex.base.errors import UserError
from cortex.base.form_words import what_is_wrong
from cortex.toolkit.examples import parsed
from cortex.tools import UTTERANCES, load
from tests.bench.ground import Tell
from tests.bench.rows import OfferedTool, Query, Utterance, _Row

CASES = Path(__file__).resolve().parent / "cases"
LANGUAGES = CASES / "languages"
R = TypeVar("R", bound=_Row)
Examples = Mapping[str, tuple[str, ...]]
COVERED = 0.5
_PART = re.compile(r"(?:^|[_.-])(?:retrieval|catalogue|catalog|queries|query|examples)(?=[_.-]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSet:
    """The utterances of one file."""

    name: str
    rows: tuple[Utterance, ...]

    @property
    def is_multiturn(self) -> bool:
        """Whether the rows are turns of conversations."""
        return any(row.conversation is not None for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalSet:
    """Queries over a catalogue. `examples`: what people say to each tool, empty without."""

    name: str
    tools: tuple[OfferedTool, ...]
    queries: tuple[Query, ...]
    examples: Examples


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """All that was found. `filler`: tools of catalogues that no query asks for."""

    routing: tuple[RoutingSet, ...] = ()
    retrieval: tuple[RetrievalSet, ...] = ()
    filler: tuple[OfferedTool, ...] = ()


Found = dict[str, list[tuple[Path, Any]]]  # kind -> files with their rows; Any: as JSON has them


def read(path: Path, report: Tell) -> Data:
    """The sets of this file or folder; UserError for a path that has none, or a broken line."""
    if not path.exists():
        raise UserError(f"{path} does not exist.")
    found: Found = {"routing": [], "catalog": [], "queries": [], "examples": []}
    for one in _files(path):
        kind, content = _opened(one)
        if kind in found:
            found[kind].append((one, content))
        elif one == path:
            raise UserError(f"{one.name} has no rows of the bench's format.")
        else:
            report(f"{one.name}: not of the bench's format, passed over")
    if path.resolve() == CASES:
        found["routing"] += _of_tool_files()
    if path.is_file() and (found["queries"] or found["examples"]) and not found["catalog"]:
        _add_neighbours(path, found)
    data = _sorted(found, report)
    if not (data.routing or data.retrieval or data.filler):
        raise UserError(f"{path} has no rows of the bench's format.")
    return data


def _of_tool_files() -> list[tuple[Path, Any]]:
    """The rows that stand beside a tool's utterances, below a heading with "?"."""
    categories = {name: tool.category for name, tool in load().tools.items()}
    found: list[tuple[Path, Any]] = []
    for path in sorted(UTTERANCES.glob("*.txt")):
        rows = [
            {
                "id": f"{path.stem}-{number}",
                "text": said,
                "kind": "tool",
                "need_tools": [[name] for name in names],
                "need_categories": [[categories[name]] for name in names],
            }
            for number, (said, names) in enumerate(parsed(path.read_text("utf-8"), path.name, is_judged=True), 1)
        ]
        found += [(path, list(enumerate(rows, 1)))] if rows else []
    return found


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    inside = path.glob("*") if path.resolve() == CASES else path.rglob("*")  # LANGUAGES is judged where it is named
    return sorted(one for one in inside if one.suffix in (".jsonl", ".json") and one.is_file())


def _add_neighbours(path: Path, found: Found) -> None:
    """A queries file given alone is nothing without its catalogue, which lies beside it."""
    for one in _files(path.parent):
        if one != path and _key(one) == _key(path):
            kind, content = _opened(one)
            if kind in ("catalog", "examples"):
                found[kind].append((one, content))


def _opened(path: Path) -> tuple[str, Any]:
    """The kind of a file and what it holds: rows with their line numbers, or examples by tool."""
    try:
        whole = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path.name} is no UTF-8 text (byte {error.start}).") from error
    if path.suffix == ".json":
        content = _parsed(whole, path.name)
        if isinstance(content, dict):
            return ("examples", content) if _are_examples(content) else ("", None)
        lines = [(number, row) for number, row in enumerate(content, 1)] if isinstance(content, list) else []
    else:
        lines = [
            (n, _parsed(line, f"{path.name}, line {n}")) for n, line in enumerate(whole.split("\n"), 1) if line.strip()
        ]
    return (_kind(lines[0][1]) if lines else ""), lines


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f", line {error.lineno}" if "line" not in where else ""
        raise UserError(f"{where}{line}: not JSON ({error.msg}).") from error


def _are_examples(content: dict[str, Any]) -> bool:
    return bool(content) and all(
        isinstance(told, list) and all(isinstance(one, str) for one in told) for told in content.values()
    )


def _kind(row: Any) -> str:
    if not isinstance(row, dict):
        return ""
    if "query" in row and ("gold" in row or "gold_any" in row):
        return "queries"
    if "text" in row and ("kind" in row or "need_tools" in row):
        return "routing"
    return "catalog" if "name" in row and ("description" in row or "parameters" in row) else ""


def _checked(kind: type[R], path: Path, lines: Sequence[tuple[int, Any]]) -> Iterator[R]:
    for number, row in lines:
        try:
            yield kind.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            said = f"{place}: {what_is_wrong(first)}" if place else what_is_wrong(first)
            raise UserError(f"{path.name}, line {number}: {said}.") from error


def _sorted(found: Found, report: Tell) -> Data:
    """Rows checked, and queries put to their catalogues."""
    routing = tuple(
        RoutingSet(name=path.stem.removeprefix("routing_"), rows=tuple(_checked(Utterance, path, lines)))
        for path, lines in found["routing"]
    )
    catalogs = {path: _once(path, _checked(OfferedTool, path, lines), report) for path, lines in found["catalog"]}
    retrieval: list[RetrievalSet] = []
    asked: set[Path] = set()
    for path, lines in found["queries"]:
        queries = tuple(_checked(Query, path, lines))
        home = _home(path, {name for query in queries for group in query.groups for name in group}, catalogs)
        if home is None:
            report(f"{path.name}: no catalogue has its tools, passed over")
            continue
        asked.add(home)
        retrieval.append(
            RetrievalSet(
                name=_key(path), tools=catalogs[home], queries=queries, examples=_examples(home, catalogs, found)
            )
        )
    filler = tuple(tool for path, tools in catalogs.items() if path not in asked for tool in tools)
    return Data(routing=routing, retrieval=tuple(retrieval), filler=filler)


def _once(path: Path, tools: Iterator[OfferedTool], report: Tell) -> tuple[OfferedTool, ...]:
    """The tools of a catalogue by name, the first of each."""
    kept: dict[str, OfferedTool] = {}
    doubles = 0
    for tool in tools:
        doubles += tool.name in kept
        kept.setdefault(tool.name, tool)
    if doubles:
        report(f"{path.name}: {doubles} names stand there twice, the first counts")
    return tuple(kept.values())


def _key(path: Path) -> str:
    """The name that the files of one set share: `retrieval_NAME_queries` -> NAME."""
    return _PART.sub("", path.stem).strip("_.-") or path.stem


def _home(path: Path, names: set[str], catalogs: Mapping[Path, tuple[OfferedTool, ...]]) -> Path | None:
    """The catalogue of these queries or examples: of the same name, else the one that knows most of their tools."""
    for home in catalogs:
        if home.parent == path.parent and _key(home) == _key(path):
            return home
    shares = {home: len(names & {tool.name for tool in tools}) for home, tools in catalogs.items()}
    best = max(shares, key=lambda home: shares[home], default=None)
    return best if best is not None and shares[best] >= COVERED * len(names) else None


def _examples(home: Path, catalogs: Mapping[Path, tuple[OfferedTool, ...]], found: Found) -> Examples:
    """What people say to the tools of this catalogue."""
    for path, told in found["examples"]:
        if _home(path, set(told), catalogs) == home:
            return {name: tuple(texts) for name, texts in told.items()}
    return {}
