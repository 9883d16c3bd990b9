"""Collects the text of one document within limits, and cuts it into numbered pages. Used by all that read a kind."""

import re

from msgspec import Struct, field

TEXT_CHARACTERS = 3_000_000
PAGES_MOST = 3_000
PART_CHARACTERS = 3_000  # of a document without pages of its own
PART_LEAST = 1_000  # a heading begins a part only behind so much
OUTLINE_MOST = 200
TITLE_CHARACTERS = 100
# Control characters, signs that turn the direction of text, and those that no reader shows but a model may read.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
_GAPS = re.compile("\n{3,}")


class FullError(Exception):
    """The document is longer than is read; what was collected stays."""


class _Block(Struct, kw_only=True):
    text: str
    title: str = ""
    depth: int = 0
    is_break: bool = False


class PagesFound(Struct, frozen=True, kw_only=True):
    """The pages of a document. `pages`: heading and text of each; `is_paged`: they are its own, not cut by us."""

    pages: list[tuple[str, str]]
    outline: list[str]
    note: str
    is_paged: bool


class Pages(Struct):
    """The text of one document, as it is read; `note` is a sentence for the person on what is missing."""

    note: str = ""
    _blocks: list[_Block] = field(default_factory=list)
    _size: int = 0
    _breaks: int = 0

    def text(self, text: str) -> None:
        """Add a paragraph; FullError when that is more than is read."""
        self._add(_Block(text=cleaned(text).strip("\n")))

    def heading(self, text: str, depth: int, *, is_shown: bool = True) -> None:
        """Add a heading, 1 for the highest; `is_shown`: its words are a paragraph too, else it only marks the place."""
        whole = " ".join(cleaned(text).split())
        if whole:
            shown = f"{'#' * min(depth, 6)} {whole}" if is_shown else ""
            self._add(_Block(text=shown, title=whole[:TITLE_CHARACTERS], depth=max(depth, 1)))

    def end_page(self) -> None:
        """Begin another page: what follows is on the next page."""
        self._breaks += 1
        if self._breaks > PAGES_MOST:
            raise FullError
        self._blocks.append(_Block(text="", is_break=True))

    def whole(self) -> str:
        """All text so far as one."""
        return "\n\n".join(block.text for block in self._blocks if block.text)

    def found(self) -> PagesFound:
        """All of it, in pages: as the document ends them, else cut behind so much text, at headings if possible."""
        pages: list[tuple[str, str]] = []
        outline: list[str] = []
        is_paged = self._breaks > 0
        for blocks in self._by_break() if is_paged else _by_size(self._blocks):
            titles = [block for block in blocks if block.title]
            word = "page" if is_paged else "part"
            outline += [f"{'  ' * (one.depth - 1)}{one.title} ({word} {len(pages) + 1})" for one in titles]
            text = "\n\n".join(block.text for block in blocks if block.text)
            pages.append((titles[0].title if titles else "", text))
        while pages and not pages[-1][1]:
            pages.pop()
        return PagesFound(pages=pages, outline=outline[:OUTLINE_MOST], note=self.note, is_paged=is_paged)

    def _add(self, block: _Block) -> None:
        room = TEXT_CHARACTERS - self._size
        block.text = block.text[:room]
        self._size += len(block.text) + 2
        if block.text or block.title:
            self._blocks.append(block)
        if self._size > TEXT_CHARACTERS:
            raise FullError

    def _by_break(self) -> list[list[_Block]]:
        made: list[list[_Block]] = [[]]
        for block in self._blocks:
            if block.is_break:
                made.append([])
            else:
                made[-1].append(block)
        return made


def cleaned(text: str) -> str:
    """The text without what cannot be seen and without carriage returns."""
    lines = _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    return _GAPS.sub("\n\n", "\n".join(line.rstrip() for line in lines))


def _by_size(blocks: list[_Block]) -> list[list[_Block]]:
    made: list[list[_Block]] = []
    size = 0
    for block in [piece for whole in blocks for piece in _pieces(whole)]:
        is_full = size + len(block.text) > PART_CHARACTERS or (block.title and size > PART_LEAST)
        if not made or (is_full and made[-1]):
            made.append([])
            size = 0
        made[-1].append(block)
        size += len(block.text)
    return made


def _pieces(block: _Block) -> list[_Block]:
    """The block, or stretches of it that are short enough, cut behind a line or a word."""
    text, made = block.text, []
    while len(text) > PART_CHARACTERS:
        cut = max(text.rfind("\n", 1, PART_CHARACTERS), text.rfind(" ", PART_CHARACTERS // 2, PART_CHARACTERS))
        end = cut if cut > 0 else PART_CHARACTERS
        made.append(_Block(text=text[:end]))
        text = text[end:].lstrip("\n")
    return [*made, _Block(text=text, title=block.title, depth=block.depth)]
