"""Text of an ODT: paragraphs, headings, tables, notes, comments; headers and footers of its pages behind it.

Pages are where the writing program noted that they end. What is deleted and still kept by tracking, drawn, or a
document inside is counted in the note.
"""

import re
from collections import Counter

from cortex.integrations.documents import unread
from cortex.integrations.documents.flow import Flow
from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.documents.packed import DAMAGED, LOCKED, Package
from cortex.integrations.documents.pages import Pages

_FORM = "urn:oasis:names:tc:opendocument:xmlns:form:1.0"
_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_SKIPPED = frozenset({"annotation-end", "note-citation", "binary-data", "tracked-changes"})
_MASTERS = frozenset({"master-styles"})  # of styles.xml: what stands at the top and bottom of pages
_COUNTED = (
    (re.compile(r"Pictures/.+"), "picture"),
    (re.compile(r"(?:[^/]+/)*Object \d+/content\.xml"), "embedded document"),
    (re.compile(r"media/.+", re.IGNORECASE), "sound or video"),
)
_CELLS = ("table-cell", "covered-table-cell")
_FILLED_IN = ("current-value", "current-state", "current-selected")
BLANKS_MOST = 100
DEPTH_MOST = 9


def read(data: bytes, pages: Pages) -> None:
    """Put the text into `pages`; UnreadableError for one that cannot be opened."""
    package = Package(data)
    if "content.xml" not in package.names:
        raise UnreadableError(DAMAGED)
    if "META-INF/manifest.xml" in package.names:
        package.parse("META-INF/manifest.xml", start=_check_lock)
    missing: Counter[str] = Counter()
    for name in sorted(package.names):
        missing.update(what for form, what in _COUNTED if form.fullmatch(name))
    pages.note = unread.counts_note(missing)
    body = _Body(Flow(pages), missing)
    package.parse("content.xml", start=body.start, end=body.end, text=body.text)
    if "styles.xml" in package.names:
        around = Pages()
        styles = _Body(Flow(around), missing, within=_MASTERS)
        with unread.counted(missing):
            package.parse("styles.xml", start=styles.start, end=styles.end, text=styles.text)
        if text := around.whole():
            pages.text(f"Headers and footers:\n{text}")
    pages.note = unread.counts_note(missing)


def _check_lock(tag: str, _: dict[str, str]) -> None:
    if tag.endswith(" encryption-data"):
        raise UnreadableError(LOCKED)


class _Body:
    """`within`: only what stands in such elements is read; all of it where there are none."""

    def __init__(self, flow: Flow, missing: Counter[str], within: frozenset[str] = frozenset()) -> None:
        self._flow = flow
        self._missing = missing
        self._within = within
        self._inside = 0
        self._skipped = 0

    def start(self, tag: str, marks: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        self._inside += bool(self._inside) or name in self._within
        if self._skipped or name in _SKIPPED:
            self._missing["tracked deletion"] += name == "deletion"
            self._skipped += 1
            return
        if self._within and not self._inside:
            return
        if _is_paragraph(tag):
            self._flow.begin(min(_number(marks, "outline-level"), DEPTH_MOST) if name == "h" else 0)
        elif name == "annotation":
            self._flow.say("[Comment:]")
        elif name in ("table-row", *_CELLS):
            self._flow.begin_row()
        else:
            self._missing["form field"] += any(f"{_FORM} {key}" in marks for key in _FILLED_IN)
            self._sign(name, marks)

    def _sign(self, name: str, marks: dict[str, str]) -> None:
        """Return what stands for a character, or ends a line or a page."""
        match name:
            case "tab":
                self._flow.add("\t")
            case "s":
                self._flow.add(" " * min(_number(marks, "c"), BLANKS_MOST))
            case "line-break":
                self._flow.add("\n")
            case "soft-page-break":
                self._flow.end_page()

    def end(self, tag: str) -> None:
        is_read = not self._within or self._inside
        self._inside -= bool(self._inside)
        if self._skipped:
            self._skipped -= 1
            return
        name = tag.rpartition(" ")[2]
        if not is_read:
            return
        if _is_paragraph(tag):
            self._flow.end()
        elif name in _CELLS:
            self._flow.end_cell()
        elif name == "table-row":
            self._flow.end_row()

    def text(self, text: str) -> None:
        if not self._skipped and (not self._within or self._inside):
            self._flow.add(text)


def _is_paragraph(tag: str) -> bool:
    """Also who wrote a comment, and when; fields of the text that have these names are none."""
    space, _, name = tag.rpartition(" ")
    return name in ("p", "h") or space == "http://purl.org/dc/elements/1.1/"


def _number(marks: dict[str, str], name: str) -> int:
    """The count that the element gives, at least 1."""
    text = marks.get(f"{_TEXT} {name}", "1")
    return max(int(text), 1) if text.isdecimal() and len(text) < 10 else 1
