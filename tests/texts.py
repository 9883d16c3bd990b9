"""Every text that a person may read, gathered from the templates, the script and the code (`python -m tests.texts`).

Written to `build/texts.md`, to be read from top to bottom. Of the code it takes each string of two words or more that
is no docstring, log line, help line of a Context, SQL or pattern: too much rather than too little.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "texts.md"
SPOKEN = re.compile(r"""\b_\(\s*(?P<quote>["'])(?P<text>.*?)(?<!\\)(?P=quote)\s*\)""", re.DOTALL)
JOINED = re.compile(r'(?<!\\)"\s+"')  # a sentence over several lines
IN_SCRIPT = re.compile(r"""(?P<quote>["'`])(?P<text>[^"'`\n]*?[A-Za-z]{2,} [^"'`\n]*?)(?P=quote)""")
WORDS = re.compile(r"[A-Za-z]{2,}[,:;]? [A-Za-z0-9{“\"'$(]")
UNREAD_CALLS = {"described", "debug", "info", "warning", "error", "exception", "critical", "log"}
CODE = re.compile(r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|PRAGMA|ALTER|BEGIN|WITH|SET|GRANT)\b|\\[bswd]|^\(\?")
# Code whose strings no person reads: settings' own descriptions, utterances, grammars, words for the model.
ASIDE = re.compile(
    r"cortex/(tools/utterances|selection|schedule|toolkit|agent/prompt|integrations/(sandbox|seccomp|landlock)"
    r"|integrations/home_assistant/commands|storage/schema|base/vocabulary|base/hidden)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A text and where it is written."""

    file: str
    line: int
    text: str


def everything() -> list[Line]:
    """All texts, by file and line."""
    found = [
        line
        for room, suffix, of in (
            ("web/templates", ".html", of_template),
            ("web/static", ".js", of_script),
            ("web", ".py", of_code),
            ("cortex", ".py", of_code),
        )
        for path in sorted((ROOT / room).rglob(f"*{suffix}"))
        if not {"vendor", "node_modules"} & set(path.parts) and not ASIDE.match(path.relative_to(ROOT).as_posix())
        for line in of(path)
    ]
    return sorted(found, key=lambda one: (one.file, one.line))


def of_template(path: Path) -> Iterator[Line]:
    """What stands behind `_()`."""
    source = path.read_text(encoding="utf-8")
    for match in SPOKEN.finditer(source):
        yield _line(path, source.count("\n", 0, match.start()) + 1, JOINED.sub("", match["text"]))


def of_script(path: Path) -> Iterator[Line]:
    """String literals of two words or more."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip().startswith("//"):
            yield from (_line(path, number, match["text"]) for match in IN_SCRIPT.finditer(line))


def of_code(path: Path) -> Iterator[Line]:
    """String literals of two words or more, values in braces."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {id(node) for silent in ast.walk(tree) for node in _unread(silent)}
    for node in ast.walk(tree):
        if id(node) in skipped or not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        text = _text(node)
        if WORDS.search(text) and not CODE.search(text):
            yield _line(path, node.lineno, text)


def _unread(node: ast.AST) -> Iterator[ast.AST]:
    """What of this node no person reads as it is: docstrings, log calls, the pieces of a joined string, asserts."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in UNREAD_CALLS:
        yield from ast.walk(node)
    elif isinstance(node, ast.JoinedStr):
        yield from (part for part in ast.walk(node) if part is not node)
    elif isinstance(node, ast.Assert):
        yield from ast.walk(node)


def _text(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"
        for part in node.values
        if isinstance(part, ast.Constant | ast.FormattedValue)
    )


def _line(path: Path, number: int, text: str) -> Line:
    return Line(file=path.relative_to(ROOT).as_posix(), line=number, text=" ".join(text.split()))


def as_markdown(lines: list[Line]) -> str:
    """A heading a file, a text a line with its place."""
    pieces = ["# Every text", ""]
    last = ""
    for one in lines:
        if one.file != last:
            pieces += ["", f"## {one.file}", ""]
            last = one.file
        pieces.append(f"- {one.line}: {one.text}")
    return "\n".join(pieces) + "\n"


def main() -> None:
    """Write the file and say where it is."""
    OUT.parent.mkdir(exist_ok=True)
    lines = everything()
    OUT.write_text(as_markdown(lines), encoding="utf-8")
    sys.stdout.write(f"{len(lines)} texts in {OUT.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
