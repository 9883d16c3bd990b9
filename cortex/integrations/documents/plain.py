"""Text files: whatever their encoding, with the headings of Markdown, the columns of a table, the parts of code."""

import re
from collections.abc import Callable

from resiliparse.parse.encoding import detect_encoding

from cortex.integrations.documents.kinds import Kind
from cortex.integrations.documents.pages import Pages
from cortex.integrations.page_text import readable

SAMPLE_BYTES = 65_536
MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
WINDOWS = {"iso8859-1": "cp1252", "iso8859-2": "cp1250", "iso8859-5": "cp1251", "iso8859-7": "cp1253"}
WINDOWS |= {"iso8859-9": "cp1254", "iso8859-8": "cp1255", "iso8859-6": "cp1256", "iso8859-13": "cp1257"}
ROWS = 40  # of a table, that make a paragraph
_C1 = re.compile(rb"[\x80-\x9f]")
_HEADING = re.compile(r"#{1,6}(?=\s)")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_PART = re.compile(
    r"(?:(?:export|default|pub(?:\(\w+\))?|public|private|protected|static|final|abstract|async|unsafe|open|data)\s+)*"
    r"(?:def|class|function|func|fn|struct|enum|interface|trait|impl|module|namespace|type)\s+(\w+)"
)


def read(data: bytes, pages: Pages, kind: Kind) -> None:
    """Put the text into `pages`."""
    text = decoded(data).replace("\r\n", "\n").replace("\r", "\n")
    if kind == "html":
        read_html(text, pages)
        return
    for number, page in enumerate(text.split("\f")):  # a form feed ends a page
        if number:
            pages.end_page()
        READERS.get(kind, _text)(page, pages)


def decoded(data: bytes, said: str = "") -> str:
    """The text of these bytes: as a mark at their beginning or `said` has it, in UTF-8, or as they look."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    for encoding in filter(None, (said, "utf-8")):
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    found = detect_encoding(data[:SAMPLE_BYTES], html5_compatible=False) or ""
    # What looks like ISO 8859 and uses its control characters is the code page of Windows that has letters there.
    found = WINDOWS.get(found, found) if found == "iso8859-1" or _C1.search(data) else found
    try:
        return data.decode(found, "replace")
    except LookupError:
        return data.decode("cp1252", "replace")


def read_html(text: str, pages: Pages) -> None:
    """Put the readable text of a web page into `pages`."""
    title, body = readable(text, "")
    if title:
        pages.heading(title, 1)
    _markdown(body, pages)


def _text(text: str, pages: Pages) -> None:
    for paragraph in text.split("\n\n"):
        pages.text(paragraph)


def _markdown(text: str, pages: Pages) -> None:
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
    rows = [row for row in text.split("\n") if row.strip()]
    for start in range(0, len(rows), ROWS):
        pages.heading(f"Rows {start + 1} to {min(start + ROWS, len(rows))}", 1, is_shown=False)
        pages.text("\n".join(rows[start : start + ROWS]))


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


READERS: dict[Kind, Callable[[str, Pages], None]] = {"markdown": _markdown, "table": _table, "code": _code}
