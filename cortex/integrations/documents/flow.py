"""What DOCX and ODT have in common: paragraphs that may hold others, tables, breaks. Fed by their parsers."""

from msgspec import Struct, field

from cortex.integrations.documents.pages import Pages


class _Paragraph(Struct):
    pieces: list[str] = field(default_factory=list)
    depth: int = 0  # 0 is no heading
    is_item: bool = False


class Flow(Struct):
    """Builds paragraphs for `pages`. A table's row is one paragraph, its cells apart by tabs."""

    pages: Pages
    _open: list[_Paragraph] = field(default_factory=list)
    _rows: list[list[str]] = field(default_factory=list)
    _is_fresh: bool = False  # nothing is on the page yet

    @property
    def top(self) -> _Paragraph | None:
        """The paragraph that is being read."""
        return self._open[-1] if self._open else None

    def begin(self, depth: int = 0) -> None:
        """A paragraph begins, maybe inside another; `depth` of a heading."""
        self._open.append(_Paragraph(depth=depth))

    def add(self, text: str) -> None:
        """More of its text; between paragraphs there is none."""
        if self._open:
            self._open[-1].pieces.append(text)
            self._is_fresh = self._is_fresh and not text.strip()

    def say(self, text: str) -> None:
        """A paragraph of our own, ahead of what follows."""
        self.begin()
        self.add(text)
        self.end()

    def end(self) -> None:
        """It is over."""
        if not self._open:
            return
        paragraph = self._open.pop()
        text = "".join(paragraph.pieces).strip()
        if self._rows:
            self._rows[-1].append(text)
        elif text and paragraph.depth:
            self.pages.heading(text, paragraph.depth)
        elif text:
            self.pages.text(f"- {text}" if paragraph.is_item else text)

    def begin_row(self) -> None:
        """A table's row begins, maybe in a cell of another, or a cell of it."""
        self._rows.append([])

    def end_row(self) -> None:
        """It is over."""
        if not self._rows:
            return
        row = "\t".join(self._rows.pop()).rstrip()
        if self._rows:
            self._rows[-1].append(row)
        elif row:
            self.pages.text(row)

    def end_cell(self) -> None:
        """Make one piece of the row of what came since `begin_row` was called for this cell, also of nothing."""
        if len(self._rows) > 1:
            cell = " ".join(filter(None, self._rows.pop()))
            self._rows[-1].append(cell)

    def end_page(self) -> None:
        """A new page begins here, maybe inside a paragraph, whose text so far stays on the old one.

        Word notes a break twice, as it was asked for and as it was laid out: the second, with nothing between, is none.
        """
        if self._is_fresh:
            return
        self._is_fresh = True
        if self._open and not self._rows and (text := "".join(self._open[-1].pieces).strip()):
            self.pages.text(text)
            self._open[-1].pieces.clear()
        self.pages.end_page()
