"""Text of a DOCX: paragraphs, headings, tables, notes; pages where Word noted where they end."""

import re

from cortex.integrations.documents.flow import Flow
from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.documents.packed import DAMAGED, Package
from cortex.integrations.documents.pages import Pages

_MAIN = re.compile(r"word/document\d*\.xml")
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_HEADING = re.compile(r"(?:heading|title) ?(\d?)", re.IGNORECASE)
_SKIPPED = frozenset({"Fallback", "delText", "instrText", "del", "moveFrom"})  # said twice, deleted, or a field's code


def read(data: bytes, pages: Pages) -> None:
    """Put the text into `pages`; UnreadableError for one that cannot be opened."""
    package = Package(data)
    main = next((name for name in sorted(package.names) if _MAIN.fullmatch(name)), "")
    if not main:
        raise UnreadableError(DAMAGED)
    styles = _Styles()
    if "word/styles.xml" in package.names:
        package.parse("word/styles.xml", start=styles.start, end=_nothing, text=_nothing)
    for name in (main, *(name for name in _NOTES if name in package.names)):
        body = _Body(Flow(pages), styles.depths)
        package.parse(name, start=body.start, end=body.end, text=body.text)


def _nothing(_: str) -> None:
    pass


def _value(marks: dict[str, str], key: str = "val") -> str:
    return next((value for name, value in marks.items() if name.rpartition(" ")[2] == key), "")


class _Styles:
    """Which styles are headings, by their names, which are English in every language of Word."""

    def __init__(self) -> None:
        self.depths: dict[str, int] = {}
        self._id = ""

    def start(self, tag: str, marks: dict[str, str]) -> None:
        match tag.rpartition(" ")[2]:
            case "style":
                self._id = _value(marks, "styleId")
            case "name" if self._id and (found := _HEADING.fullmatch(_value(marks))):
                self.depths.setdefault(self._id, int(found[1] or 1))
            case "outlineLvl" if self._id and _value(marks) in map(str, range(9)):
                self.depths[self._id] = int(_value(marks)) + 1


class _Body:
    def __init__(self, flow: Flow, depths: dict[str, int]) -> None:
        self._flow = flow
        self._depths = depths
        self._skipped = 0
        self._is_text = False

    def start(self, tag: str, marks: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if self._skipped or name in _SKIPPED:
            self._skipped += 1
            return
        flow = self._flow
        self._is_text = name == "t"
        match name:
            case "p" if "wordprocessingml" in tag:
                flow.begin()
            case "pStyle" if flow.top:
                flow.top.depth = self._depths.get(_value(marks), 0)
            case "numPr" if flow.top:
                flow.top.is_item = True
            case "tab":
                flow.add("\t")
            case "br" | "cr" if _value(marks, "type") != "page":
                flow.add("\n")
            case "br" | "lastRenderedPageBreak":
                flow.end_page()
            case "tr":
                flow.begin_row()

    def end(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        self._is_text = False
        name = tag.rpartition(" ")[2]
        if name == "p" and "wordprocessingml" in tag:
            self._flow.end()
        elif name == "tr":
            self._flow.end_row()

    def text(self, text: str) -> None:
        if self._is_text and not self._skipped:
            self._flow.add(text)
