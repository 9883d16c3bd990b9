"""The readable text of a web page as Markdown. A program: address and page on its input, title and text on its output.

It has a process of its own, because the parser is native, holds the interpreter while it works, and takes 25 s for
20,000 nested elements (2026-11-22): `web.py` starts it, and kills it in time.
"""

import re
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin

from msgspec import Struct
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

HTML_CHARACTERS = 3_000_000
MAIN_CHARACTERS = 250  # what is found to be the main text and is shorter, or less than
MAIN_SHARE = 0.1  # this of the page, is not: then the whole page is read
_MARKS = {"ul": "- ", "ol": "1. "}
_STARTS = {f"h{level}": f"\n\n{'#' * level} " for level in range(1, 7)} | {"p": "\n\n", "pre": "\n\n```\n"}
_ENDS = {**dict.fromkeys(_STARTS, "\n\n"), "pre": "\n```\n\n"}
_INDENT = re.compile(r"\n\s*$")
_BLANK = re.compile(r"(?<!\s)\s*\n[ \t]*\n(?:[ \t]*\n)*")
_ITEM = re.compile(r"^( *(?:-|1\.) )\s+", re.MULTILINE)


def readable(html: str, url: str) -> tuple[str, str]:
    """Title and main text of a page, menus and adverts left out; empty texts when there is none."""
    tree = HTMLTree.parse(html[:HTML_CHARACTERS].encode("utf-8", "replace").decode())
    _deepen(tree)
    main, whole = _markdown(tree, url, is_main=True), _markdown(tree, url, is_main=False)
    is_found = len(main) >= max(MAIN_CHARACTERS, MAIN_SHARE * len(whole))
    return " ".join((tree.title or "").split()), main if is_found else whole


class WholePage(Struct, frozen=True, kw_only=True):
    """All text of a page, as Markdown. `frames`: what it shows of elsewhere, or holds without showing it."""

    title: str
    text: str
    frames: list[str]


def whole(html: str, *, is_inner: bool = False) -> WholePage:
    """Everything that a page says, menus, tables, forms and hidden text too: for a file that a person gave."""
    tree = HTMLTree.parse(html[:HTML_CHARACTERS].encode("utf-8", "replace").decode())
    frames = [] if len(html) <= HTML_CHARACTERS else [f"what is behind the first {HTML_CHARACTERS:,} characters"]
    texts = [_markdown(tree, "", is_main=False, is_file=True)]
    document = tree.document
    for element in document.query_selector_all("iframe, frame, object[data], embed[src]") if document else ():
        inner = element.getattr("srcdoc") or ""
        if inner and not is_inner:
            found = whole(inner, is_inner=True)
            texts.append(found.text)
            frames += found.frames
        else:
            place = element.getattr("src") or element.getattr("data") or ""
            frames.append(f"a frame ({place[:80]})" if place else "a frame")
    if document and document.query_selector("template"):
        frames.append("a template that no program fills in here")
    title = " ".join((tree.title or "").split())
    return WholePage(title=title, text="\n\n".join(filter(None, texts)), frames=frames)


def _deepen(tree: HTMLTree) -> None:
    """Put everything three levels deeper: resiliparse takes a list that is near the top for a menu."""
    for _ in range(3):
        around = tree.create_element("div")
        if tree.body and around:
            while child := tree.body.first_child:
                around.append_child(child)
            tree.body.append_child(around)


def _markdown(tree: HTMLTree, url: str, *, is_main: bool, is_file: bool = False) -> str:
    writer = _Markdown(url)
    writer.feed(
        extract_plain_text(
            tree,
            preserve_formatting="minimal_html",
            main_content=is_main,
            links=True,
            comments=False,
            form_fields=is_file,
            noscript=is_file,
        )
    )
    writer.close()
    return _ITEM.sub(r"\1", _BLANK.sub("\n\n", "".join(writer.pieces))).strip()


class _Markdown(HTMLParser):
    """Writes the few elements that resiliparse keeps: headings, paragraphs, lists, preformatted text and links."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._url = url
        self._lists: list[str] = []  # the marks of those that are open
        self._link = (0, "")  # where the words of the link begin, and where it leads

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """Write what goes ahead of the element's words."""
        if tag == "a":
            self._link = (len(self.pieces), dict(attrs).get("href") or "")
        elif tag == "li":
            self.pieces.append(f"\n{'  ' * (len(self._lists) - 1)}{(self._lists or ['- '])[-1]}")
        elif tag in _MARKS:
            self.pieces.append("" if self._lists else "\n")
            self._lists.append(_MARKS[tag])
        else:
            self.pieces.append(_STARTS.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        """Write what goes behind them."""
        if tag == "a":
            start, href = self._link
            self.pieces[start:] = [self._linked("".join(self.pieces[start:]), href)]
        if tag in _MARKS:
            del self._lists[-1:]
            self.pieces.append("" if self._lists else "\n\n")
        self.pieces.append(_ENDS.get(tag, ""))

    def handle_data(self, data: str) -> None:
        """The words; in a list the next line is begun by the next item."""
        self.pieces.append(_INDENT.sub("", data) if self._lists else data)

    def _linked(self, words: str, href: str) -> str:
        """The words as a link; alone when it leads nowhere else."""
        try:
            target = urljoin(self._url, href)
        except ValueError:
            return words
        is_elsewhere = target.startswith(("http://", "https://")) and urldefrag(target).url != urldefrag(self._url).url
        return f"[{' '.join(words.split())}]({target})" if is_elsewhere and words.strip() else words


if __name__ == "__main__":
    address, _, page = sys.stdin.buffer.read().decode().partition("\n")
    sys.stdout.buffer.write("\n".join(readable(page, address)).encode())
