"""Text of an ODT: paragraphs, headings, tables, notes; pages where the writing program noted where they end."""

from cortex.integrations.documents.flow import Flow
from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.documents.packed import DAMAGED, LOCKED, Package
from cortex.integrations.documents.pages import Pages

_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_SKIPPED = frozenset({"tracked-changes", "annotation", "annotation-end", "note-citation", "binary-data"})
BLANKS_MOST = 100
DEPTH_MOST = 9


def read(data: bytes, pages: Pages) -> None:
    """Put the text into `pages`; UnreadableError for one that cannot be opened."""
    package = Package(data)
    if "content.xml" not in package.names:
        raise UnreadableError(DAMAGED)
    if "META-INF/manifest.xml" in package.names:
        package.parse("META-INF/manifest.xml", start=_check_lock, end=_nothing, text=_nothing)
    body = _Body(Flow(pages))
    package.parse("content.xml", start=body.start, end=body.end, text=body.text)


def _nothing(_: str) -> None:
    pass


def _check_lock(tag: str, _: dict[str, str]) -> None:
    if tag.endswith(" encryption-data"):
        raise UnreadableError(LOCKED)


class _Body:
    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._skipped = 0

    def start(self, tag: str, marks: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if self._skipped or name in _SKIPPED:
            self._skipped += 1
            return
        match name:
            case "p":
                self._flow.begin()
            case "h":
                self._flow.begin(min(_number(marks, "outline-level"), DEPTH_MOST))
            case "tab":
                self._flow.add("\t")
            case "s":
                self._flow.add(" " * min(_number(marks, "c"), BLANKS_MOST))
            case "line-break":
                self._flow.add("\n")
            case "soft-page-break":
                self._flow.end_page()
            case "table-row":
                self._flow.begin_row()

    def end(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        name = tag.rpartition(" ")[2]
        if name in ("p", "h"):
            self._flow.end()
        elif name == "table-row":
            self._flow.end_row()

    def text(self, text: str) -> None:
        if not self._skipped:
            self._flow.add(text)


def _number(marks: dict[str, str], name: str) -> int:
    """The count that the element gives, at least 1."""
    text = marks.get(f"{_TEXT} {name}", "1")
    return max(int(text), 1) if text.isdecimal() and len(text) < 10 else 1
