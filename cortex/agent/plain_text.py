"""A model's Markdown as plain text, for where none is drawn: lock screens, mails, the list of notices.

Loaded when the first such text is sent; the chat's own rendering is `web/markdown.py`.
"""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

LONGEST_CHARACTERS = 8_000  # a notice holds half of it
CELLS = " · "
POINT, BOXES = "• ", {"[ ] ": "☐ ", "[x] ": "☑ "}
_INDENT = "  "
_parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def plain_text(markdown: str) -> str:
    """The words alone: a dot or number ahead of points, cells of a row side by side, a link's address behind."""
    return "\n".join(_lines(_parser.parse(markdown[:LONGEST_CHARACTERS]))).strip()


def _lines(tokens: Sequence[Token]) -> list[str]:
    """Return a line for each block and row, an empty one between blocks that stood apart at the top."""
    lines: list[str] = []
    marks: list[str] = []  # of the points that are open; one that was written is blank from then on
    cells: list[str] | None = None
    for token in tokens:
        if token.type in ("list_item_open", "blockquote_open"):
            marks.append(f"{token.info}{token.markup} " if token.info else POINT if token.type[0] == "l" else "")
        elif token.type in ("list_item_close", "blockquote_close"):
            marks.pop()
        elif token.type == "tr_open":
            cells = []
        elif token.type == "tr_close":
            lines.append(CELLS.join(filter(None, cells or ())))
            cells = None
        elif token.type == "inline" and cells is not None:
            cells.append(_words(token.children or ()))
        elif token.content and token.type in ("inline", "fence", "code_block"):
            words = _words(token.children) if token.children else token.content.rstrip("\n")
            lines += _under(marks, words)
        elif token.level == 0 and token.nesting < 1 and lines:
            lines.append("")
    return [line for at, line in enumerate(lines) if line or (at and lines[at - 1])]


def _under(marks: list[str], words: str) -> list[str]:
    """The words behind the mark of their point, or below what stands there already."""
    mark = marks[-1] if marks else ""
    if mark == POINT and (box := BOXES.get(words[:4].lower())):
        mark, words = box, words[4:]
    if mark:
        marks[-1] = _INDENT
    ahead = _INDENT * len(list(filter(None, marks[:-1])))
    return [f"{ahead}{mark if not at else _INDENT if mark else ''}{line}" for at, line in enumerate(words.split("\n"))]


def _words(tokens: Sequence[Token]) -> str:
    """Return what a line says."""
    said, address, began = "", "", 0
    for token in tokens:
        if token.type == "link_open":
            address, began = str(token.attrGet("href") or ""), len(said)
        elif token.type == "link_close":
            is_told = address.removeprefix("mailto:") in said[began:] or not address
            said += "" if is_told else f" ({address})"
        elif token.type in ("softbreak", "hardbreak"):
            said += "\n"
        else:
            said += token.content
    return said
