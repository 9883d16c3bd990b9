"""A model's Markdown as the small HTML that messengers take, cut into parts of a limited length. Pure.

Loaded when the first answer goes out. Only <b>, <i>, <s>, <code>, <pre>, <a> and <blockquote> are written, all that is
text is escaped, and no part ends inside a tag.
"""

from collections.abc import Iterator, Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token

LONGEST = 200_000
REST = "\n\n_The rest is longer than a messenger takes. Read it on the page._"
_SPOT = {"strong": "b", "em": "i", "s": "s"}
_SCHEMES = ("http://", "https://", "mailto:")
_parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
Piece = tuple[str, str, str]  # tags that open, text without markup, tags that close


def html_parts(markdown: str, most_units: int) -> Sequence[str]:
    """The text as HTML in parts of at most so many UTF-16 units each, counted without the tags."""
    parts: list[str] = []
    written, units = "", 0
    whole = markdown if len(markdown) <= LONGEST else markdown[:LONGEST] + REST
    for opening, text, closing in _pieces(_parser.parse(whole)):
        for line in _short(text, most_units):
            size = _units(line)
            if units + size > most_units:
                parts.append(written)
                written, units = "", 0
                line = line.lstrip("\n")
                size = _units(line)
            written += f"{opening}{escape(line, quote=False)}{closing}" if line else ""
            units += size
    return [part for part in (*(one.strip("\n") for one in parts), written.strip("\n")) if part.strip()]


class _Place:
    """Where a block stands: in which points, quotes and cells of a table."""

    def __init__(self) -> None:
        self.marks: list[str] = []  # of the points that are open; one that was written is blank from then on
        self.quotes = self.cells = 0
        self.is_first, self.is_heading = True, False

    def go(self, token: Token) -> None:
        """Follow a token that opens or ends something."""
        self.is_heading = token.type == "heading_open"
        match token.type:
            case "list_item_open":
                self.marks.append(f"{token.info}. " if token.info else "• ")
            case "list_item_close":
                self.marks.pop()
            case "blockquote_open" | "blockquote_close":
                self.quotes += token.nesting
            case "tr_open" | "table_close":
                self.cells = 0
            case "th_open" | "td_open":
                self.cells += 1
            case _:
                pass

    def ahead(self) -> str:
        """Return what stands ahead of the block: an empty line at the top, a mark in a point."""
        gap = "" if self.is_first else " · " if self.cells > 1 else "\n" if self.marks or self.cells else "\n\n"
        self.is_first = False
        if not self.marks:
            return gap
        mark = "  " * (len(self.marks) - 1) + self.marks[-1]
        self.marks[-1] = "  "
        return gap + mark


def _pieces(tokens: Sequence[Token]) -> Iterator[Piece]:
    """Blocks in order."""
    place = _Place()
    for token in tokens:
        if token.type not in ("inline", "fence", "code_block", "hr"):
            place.go(token)
            continue
        yield "", place.ahead(), ""
        opening, closing = ("<blockquote>", "</blockquote>") if place.quotes else ("", "")
        if token.type == "hr":
            yield "", "———", ""
        elif token.type != "inline":
            yield f"{opening}<pre>", token.content.rstrip("\n"), f"</pre>{closing}"
        elif place.quotes:
            yield opening, "".join(text for _, text, _ in _inline(token.children or (), "")), closing
        else:
            yield from _inline(token.children or (), "b" if place.is_heading else "")


def _inline(tokens: Sequence[Token], around: str) -> Iterator[Piece]:
    """Pieces of one line, each with all the tags that it stands in, so that it can be cut anywhere."""
    open_tags: list[tuple[str, str]] = [("", f"<{around}>")] if around else []
    for token in tokens:
        name = token.type.removesuffix("_open").removesuffix("_close")
        if token.type.endswith("_open"):
            open_tags.append((name, _opening(name, token)))
        elif token.type.endswith("_close"):
            open_tags = [*open_tags[:-1]]
        else:
            tags = [tag for _, tag in open_tags if tag]
            if token.type == "code_inline":
                tags.append("<code>")
            text = "\n" if token.type in ("softbreak", "hardbreak") else token.content
            yield "".join(tags), text, "".join(f"</{tag[1:].split(' ')[0].rstrip('>')}>" for tag in reversed(tags))


def _opening(name: str, token: Token) -> str:
    if name == "link":
        address = str(token.attrGet("href") or "")
        return f'<a href="{escape(address)}">' if address.startswith(_SCHEMES) else ""
    return f"<{_SPOT[name]}>" if name in _SPOT else ""


def _short(text: str, most_units: int) -> Iterator[str]:
    """The text in pieces that fit, cut behind a line or a word where there is one; never inside a sign."""
    while _units(text) > most_units:
        room, at = most_units, 0
        while room >= (size := 2 if ord(text[at]) > 0xFFFF else 1):
            room, at = room - size, at + 1
        cut = max(text.rfind("\n", at // 2, at), 0) or max(text.rfind(" ", at // 2, at), 0) or at
        yield text[:cut]
        text = text[cut:]
    yield text


def _units(text: str) -> int:
    return len(text) + sum(ord(sign) > 0xFFFF for sign in text)
