"""Text of a DOCX: paragraphs, headings, tables, text boxes; headers, footers, notes and comments behind it.

Pages are where Word noted that they end. What is deleted and still kept by tracking, drawn, or a file inside is counted
in the note.
"""

import re
from collections import Counter

from cortex.integrations.documents import unread
from cortex.integrations.documents.charsets import decoded_file, decoded_page
from cortex.integrations.documents.flow import Flow
from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.documents.packed import DAMAGED, Package
from cortex.integrations.documents.pages import Pages
from cortex.integrations.documents.plain import markdown
from cortex.integrations.page_text import whole

_MAIN = re.compile(r"word/document\d*\.xml")
_BEHIND = (  # parts with text of their own, and what they are called above it
    (re.compile(r"word/(?:footnotes|endnotes)\d*\.xml"), ""),
    (re.compile(r"word/comments\d*\.xml"), "Comments:"),
    (re.compile(r"word/header\d*\.xml"), "Header:"),
    (re.compile(r"word/footer\d*\.xml"), "Footer:"),
    (re.compile(r"word/charts/chart\w*\.xml"), "Chart:"),
    (re.compile(r"word/diagrams/data\d*\.xml"), "Diagram:"),
)
_INSERTED = re.compile(r"word/(?:[\w/]*/)?[\w-]*\.(x?html?|txt|mht|rtf|docx)", re.IGNORECASE)  # an altChunk's own file
_COUNTED = (
    (re.compile(r"word/media/.+"), "picture"),
    (re.compile(r"word/(?:embeddings|activeX)/.+"), "embedded file"),
)
_HEADING = re.compile(r"(?:heading|title) ?(\d?)", re.IGNORECASE)
_SKIPPED = frozenset(
    {"Fallback", "instrText", "del", "moveFrom", "delInstrText"}
)  # said twice, deleted, a field's code
_TEXTS = frozenset({"t", "v"})  # `v`: a value in a chart's cache


def read(data: bytes, pages: Pages) -> None:
    """Put the text into `pages`; UnreadableError for one that cannot be opened."""
    package = Package(data)
    names = sorted(package.names)
    main = next((name for name in names if _MAIN.fullmatch(name)), "")
    if not main:
        raise UnreadableError(DAMAGED)
    styles = _Styles()
    missing: Counter[str] = Counter()
    if "word/styles.xml" in package.names:
        with unread.counted(missing):
            package.parse("word/styles.xml", start=styles.start)
    for name in names:
        missing.update(what for form, what in _COUNTED if form.fullmatch(name))
    pages.note = unread.counts_note(missing)
    _read_part(package, main, pages, styles, missing)
    said: set[str] = set()
    for form, what in _BEHIND:
        for name in filter(form.fullmatch, names):
            inner = Pages()
            with unread.counted(missing):
                _read_part(package, name, inner, styles, missing)
            text = inner.whole()
            if text and text not in said:  # each chapter may have the same header
                said.add(text)
                pages.text(f"{what}\n{text}" if what else text)
    for name in names:
        if (found := _INSERTED.fullmatch(name)) and not name.startswith(("word/media/", "word/embeddings/")):
            with unread.counted(missing):
                _read_inserted(package, name, found[1].lower(), pages, missing)
    pages.note = unread.counts_note(missing)


def _read_part(package: Package, name: str, pages: Pages, styles: "_Styles", missing: Counter[str]) -> None:
    body = _Body(Flow(pages), styles.depths, missing)
    package.parse(name, start=body.start, end=body.end, text=body.text)


def _read_inserted(package: Package, name: str, ending: str, pages: Pages, missing: Counter[str]) -> None:
    """A document of another kind that Word would lay into this one when it is opened."""
    if ending == "txt":
        pages.text(decoded_file(package.content(name)))
    elif ending.endswith(("htm", "html")):
        markdown(whole(decoded_page(package.content(name))).text, pages)
    else:
        missing["inserted document"] += 1


def _value(marks: dict[str, str], key: str = "val") -> str:
    return next((value for name, value in marks.items() if name.rpartition(" ")[2] == key), "")


class _Styles:
    """The styles that are headings, by their names, which are English in every language of Word."""

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
    def __init__(self, flow: Flow, depths: dict[str, int], missing: Counter[str]) -> None:
        self._flow = flow
        self._depths = depths
        self._missing = missing
        self._skipped = 0
        self._is_text = False
        self._is_point = False  # a number or name in a chart, which stands in no paragraph

    def start(self, tag: str, marks: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if self._skipped or name in _SKIPPED:
            if name == "delText":
                self._missing["tracked deletion"] += 1
            self._skipped += 1
            return
        flow = self._flow
        self._is_text = name in _TEXTS
        self._is_point = name == "v" and flow.top is None
        if self._is_point:
            flow.begin()
        match name:
            case "p" if "wordprocessingml" in tag or "drawingml" in tag:
                flow.begin()
            case "pStyle" if flow.top:
                flow.top.depth = self._depths.get(_value(marks), 0)
            case "numPr" if flow.top:
                flow.top.is_item = True
            case "comment" if who := _value(marks, "author"):
                flow.say(f"{who}:")
            case "docPr" | "cNvPr" if described := _value(marks, "descr"):
                flow.say(f"[Picture: {described}]")
            case "tr" | "tc":
                flow.begin_row()
            case _:
                self._sign(name, marks)

    def _sign(self, name: str, marks: dict[str, str]) -> None:
        """Return what stands for a character or for words, or ends a line or a page."""
        match name:
            case "textpath" if drawn := _value(marks, "string"):
                self._flow.say(drawn)
            case "ddList" | "checkBox":
                self._missing["form field"] += 1
            case "tab" | "ptab":
                self._flow.add("\t")
            case "noBreakHyphen":
                self._flow.add("-")
            case "sym" if re.fullmatch(r"[0-9A-Fa-f]{4}", code := _value(marks, "char")):
                self._flow.add("\u2022" if code.upper() >= "E000" else chr(int(code, 16)))
            case "br" | "cr" if _value(marks, "type") != "page":
                self._flow.add("\n")
            case "br" | "lastRenderedPageBreak":
                self._flow.end_page()

    def end(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        self._is_text = False
        name = tag.rpartition(" ")[2]
        if (name == "p" and ("wordprocessingml" in tag or "drawingml" in tag)) or (name == "v" and self._is_point):
            self._is_point = False
            self._flow.end()
        elif name == "tc":
            self._flow.end_cell()
        elif name == "tr":
            self._flow.end_row()

    def text(self, text: str) -> None:
        if self._is_text and not self._skipped:
            self._flow.add(text)
