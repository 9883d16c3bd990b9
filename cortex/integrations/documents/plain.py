"""Text files: whatever their encoding, with the headings of Markdown, the columns of a table, the parts of code."""

import re
from collections.abc import Callable

from cortex.integrations.documents import unread
from cortex.integrations.documents.charsets import LOST, decoded_file, decoded_page
from cortex.integrations.documents.kinds import Kind
from cortex.integrations.documents.pages import Pages
from cortex.integrations.page_text import whole

ROWS = 40  # of a table, that make a paragraph
ROW_LINES = 200  # of one row
_HEADING = re.compile(r"#{1,6}(?=\s)")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_PART = re.compile(
    r"(?:(?:export|default|pub(?:\(\w+\))?|public|private|protected|static|final|abstract|async|unsafe|open|data)\s+)*"
    r"(?:def|class|function|func|fn|struct|enum|interface|trait|impl|module|namespace|type)\s+(\w+)"
)


def read(data: bytes, pages: Pages, kind: Kind) -> None:
    """Put the text into `pages`."""
    text = (decoded_page if kind == "html" else decoded_file)(data).replace("\r\n", "\n").replace("\r", "\n")
    if lost := text.count(LOST) - data.count(LOST.encode()):
        pages.note = f"{lost:,} letters could not be read: the encoding of this file is not clear." if lost > 0 else ""
    if kind == "html":
        _page(text, pages)
        return
    for number, page in enumerate(text.split("\f")):  # a form feed ends a page
        if number:
            pages.end_page()
        READERS.get(kind, _text)(page, pages)


def _page(text: str, pages: Pages) -> None:
    found = whole(text)
    unseen = f"Not read: {', '.join(dict.fromkeys(found.frames))}." if found.frames else ""
    pages.note = unread.joined(pages.note, unseen)
    if found.title:
        pages.heading(found.title, 1)
    markdown(found.text, pages)


def _text(text: str, pages: Pages) -> None:
    for paragraph in text.split("\n\n"):
        pages.text(paragraph)


def markdown(text: str, pages: Pages) -> None:
    """Put text in Markdown into `pages`, its headings as such."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line.lstrip())
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        found = None if fence else _HEADING.match(line)
        if found or not (line.strip() or fence):
            pages.text("\n".join(lines))
            lines.clear()
        if found:
            pages.heading(line[found.end() :].strip().rstrip("#"), found.end())
        elif line.strip() or fence:
            lines.append(line)
    pages.text("\n".join(lines))


def _table(text: str, pages: Pages) -> None:
    rows = _rows(text)
    for start in range(0, len(rows), ROWS):
        pages.heading(f"Rows {start + 1} to {min(start + ROWS, len(rows))}", 1, is_shown=False)
        pages.text("\n".join(rows[start : start + ROWS]))


def _rows(text: str) -> list[str]:
    """The rows of a table that are not blank. One goes on where a quote is open, unless it is never closed."""
    rows: list[str] = []
    row: list[str] = []
    is_open = False
    for line in text.split("\n"):
        row.append(line)
        is_open ^= line.count('"') % 2 == 1
        if len(row) > ROW_LINES and is_open:
            rows += row  # a stray quote: each line is its own
            row, is_open = [], False
        elif not is_open:
            rows.append("\n".join(row))
            row = []
    return [one for one in [*rows, *row] if one.strip()]


def _code(text: str, pages: Pages) -> None:
    lines: list[str] = []
    for line in text.split("\n"):
        found = _PART.match(line)
        if found:
            pages.text("\n".join(lines))
            lines.clear()
            pages.heading(found[1], 1, is_shown=False)
        lines.append(line)
    pages.text("\n".join(lines))


READERS: dict[Kind, Callable[[str, Pages], None]] = {"markdown": markdown, "table": _table, "code": _code}
