"""Lists every sentence that a person may read, by file, to be read in one go: `docs/texts.md`, a part of `make docs`.

From templates: what is in `_(…)`. From code: what errors, notices, confirm pages, cards and news after a redirect say.
What a model reads (tools' docstrings, prompts, `ToolFailed`) is not listed; `docs/tools.md` has the tools.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAD = "# Texts\n\nEvery sentence that a person may read, by file. Generated: `make docs` writes this file.\n"
_MARKED = re.compile(r"""\b_\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")
ERRORS = {"UserError", "NotAllowed", "NotFound", "Conflict", "Busy", "ConfigError", "CortexError"}
NEWS = {"redirect": 2, "Toast": 0}  # the place of the words
NAMED = {"title", "text", "words", "about", "hint", "label"}
MADE = re.compile(r"(Context|Entry|Notice|NoticeValues|Draft|Finding|Toast|Field|Choice)$")


def texts_of(path: Path) -> Iterator[str]:
    """The sentences of a file, in order."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        for double, single in _MARKED.findall(source):
            yield (double or single).replace('\\"', '"').replace("\\'", "'")
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            yield from filter(None, map(_words, _said(node)))


def _said(call: ast.Call) -> Iterator[ast.expr]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ERRORS or name == "_":
        yield from call.args[:1]
    elif name in NEWS:
        yield from call.args[NEWS[name] : NEWS[name] + 1]
    if MADE.search(name):
        yield from (one.value for one in call.keywords if one.arg in NAMED)


def _words(node: ast.expr) -> str:
    """A text as it is written, `{…}` for what is filled in; "" for what is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) and " " in node.value.strip() else ""
    if isinstance(node, ast.JoinedStr):
        parts = (str(one.value) if isinstance(one, ast.Constant) else "{…}" for one in node.values)
        return "".join(parts)
    return ""


def page() -> str:
    """The whole file."""
    files = sorted([*ROOT.glob("web/templates/*.html"), *ROOT.glob("web/**/*.py"), *ROOT.glob("cortex/**/*.py")])
    blocks = [HEAD]
    for path in files:
        found = dict.fromkeys(" ".join(text.split()) for text in texts_of(path))
        lines = [f"- {text}" for text in found if text]
        if lines:
            blocks.append(f"\n## {path.relative_to(ROOT)}\n\n" + "\n".join(lines) + "\n")
    return "".join(blocks)


if __name__ == "__main__":
    sys.stdout.write(page())
