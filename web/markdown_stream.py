"""Markdown that is still arriving: finished blocks are committed once, only the open block is sent again.

One `Stream` per text part and painter. What the operations build in the browser equals `markdown.render` of the
whole text when it is finished; tests hold it to that. A text that grows too long stops growing on the page.
"""

import re
from typing import Literal

from msgspec import Struct

from web.markdown import FIRST_LEVEL, code_block, language_of, parse, plain_code, render, render_piece, shown_to

_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})([^\n`]*)\n")
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")  # as the parser counts them
_BARE_MARKER = re.compile(r"^\s*([-*+]|\d+[.)]|#{1,6})\s*$")
_HALF_LINK = re.compile(r"!?\[[^\]\n]*(\]\([^)\n]*)?$")
_OPEN_LONG = 4_000  # characters of an open block from which on it is rendered anew only when it has grown by a part
_GROWTH = 1 / 16
_TOO_SHORT = 4  # characters of a last line that may still turn into something else (a marker, an underline)


class PartChange(Struct, frozen=True, kw_only=True):
    """A change of the part on the page.

    commit: put before the open block, which becomes empty · open: the open block's new content ·
    code: append to the live listing in the open block · replace: the whole part anew, at the end and where it is cut.
    """

    kind: Literal["commit", "open", "code", "replace"]
    html: str


class _Fence(Struct):
    mark: str
    language: str
    sent_to: int
    lines: str = ""


class Stream:
    """A growing text and what of it is already settled."""

    def __init__(self, key: str = "") -> None:
        """`key` as for `markdown.render`."""
        self.text = ""
        self._key = key
        self._committed: list[str] = []
        self.is_cut = False
        self._settled = 0
        self._looked_at = 0
        self._fence: _Fence | None = None
        self._open = ""
        self._level = FIRST_LEVEL

    @property
    def committed_html(self) -> str:
        """The blocks that will not change any more."""
        return "".join(self._committed)

    @property
    def open_html(self) -> str:
        """The block being written, as last flushed."""
        if self._fence:
            return code_block(self._fence.language, self._fence.lines, is_live=True)
        return self._open

    def feed(self, more: str) -> None:
        """Take the next piece; nothing is rendered until `flush`."""
        self.text += more

    def flush(self) -> list[PartChange]:
        """Return what changed on the page since the last flush."""
        if self.is_cut or self._has_hardly_grown():
            return []
        if shown_to(self.text) < len(self.text):
            return self._cut()
        self._looked_at = len(self.text)
        changes: list[PartChange] = []
        while self._step(changes):
            pass
        if self._fence is None:
            shown = self._preview(self.text[self._settled :])
            if shown != self._open:
                self._open = shown
                changes.append(PartChange(kind="open", html=shown))
        return changes

    def finish(self) -> list[PartChange]:
        """The last changes; afterwards the page shows exactly what `render` makes of the whole text."""
        changes = self.flush()
        if not self.is_cut and shown_to(self.text) < len(self.text):
            return self._cut()
        if self.is_cut:
            return changes
        tail = self.text[self._settled :]
        if tail.strip():
            self._commit(len(tail), changes)
        self._fence, self._open = None, ""
        whole = render(self.text, self._key)
        if self.committed_html != whole:
            self._committed = [whole]
            changes = [PartChange(kind="replace", html=whole)]
        return changes

    def _has_hardly_grown(self) -> bool:
        """Tell whether a long open block may wait: each look at it costs all of it."""
        size = len(self.text) - self._settled
        return self._fence is None and size > _OPEN_LONG and len(self.text) - self._looked_at < size * _GROWTH

    def _cut(self) -> list[PartChange]:
        """From now on the page shows the first part, as it will in the end."""
        self.is_cut, self._fence, self._open = True, None, ""
        self._committed = [render(self.text, self._key)]
        return [PartChange(kind="replace", html=self.committed_html)]

    def _step(self, changes: list[PartChange]) -> bool:
        if self._fence:
            return self._advance_fence(self._fence, changes)
        tail = self.text[self._settled :]
        lead = len(tail) - len(tail.lstrip("\n"))
        match = _FENCE.match(tail[lead:])
        if match:
            self._settled += lead
            self._fence = _Fence(match.group(2), language_of(match.group(3)), self._settled + match.end())
            self._open = ""
            changes.append(PartChange(kind="open", html=self.open_html))
            return True
        return self._commit_blocks(tail, changes)

    def _commit_blocks(self, tail: str, changes: list[PartChange]) -> bool:
        """Settle all but the last block at once: a look at each would parse what comes after it again and again."""
        starts = [token.map[0] for token in parse(tail) if token.level == 0 and token.nesting >= 0 and token.map]
        lines = _LINE.findall(tail)
        last = "".join(lines[starts[-1] :]) if starts else ""
        if "\n" not in last and len(last) < _TOO_SHORT:
            starts = starts[:-1]
        if len(starts) < 2:
            return False
        self._commit(sum(map(len, lines[: starts[-1]])), changes)
        return True

    def _advance_fence(self, fence: _Fence, changes: list[PartChange]) -> bool:
        closing = re.compile(rf"^ {{0,3}}{re.escape(fence.mark[0])}{{{len(fence.mark)},}}[ \t]*(?:\n|$)", re.M)
        rest = self.text[fence.sent_to :]
        match = closing.search(rest)
        if match and rest[match.end() - 1 : match.end()] == "\n":
            self._commit(fence.sent_to + match.end() - self._settled, changes)
            self._fence = None
            return True
        if match is None and (cut := rest.rfind("\n") + 1):
            lines = plain_code(rest[:cut])
            fence.lines += lines
            fence.sent_to += cut
            changes.append(PartChange(kind="code", html=lines))
        return False

    def _commit(self, size: int, changes: list[PartChange]) -> None:
        piece = self.text[self._settled : self._settled + size]
        html, self._level = render_piece(piece, self._level)
        self._committed.append(html)
        self._settled += size
        self._open = ""
        changes[:] = [change for change in changes if change.kind == "commit"]
        changes.append(PartChange(kind="commit", html=html))

    def _preview(self, tail: str) -> str:
        """The open block without the flicker of half-written marks."""
        lines = tail.lstrip("\n").split("\n")
        if not tail.strip() or (lines[0].startswith("|") and len(lines) < 3):
            return ""
        if _BARE_MARKER.match(lines[-1]):
            tail = "\n".join(lines[:-1])
        return render_piece(close_inline(tail), self._level)[0]


def close_inline(text: str) -> str:
    """The text with its dangling inline marks finished, so that raw syntax does not flash."""
    text = _HALF_LINK.sub(lambda match: match.group(0).lstrip("![^").split("](")[0], text)
    if len(re.findall(r"(?<!`)`(?!`)", text)) % 2 == 1:
        return text + "`"
    if len(re.findall(r"\*\*", re.sub(r"`[^`]*`", "", text))) % 2 == 1:
        if text.endswith("**"):
            return text[:-2]
        return text + "*" if text.endswith("*") else text.rstrip() + "**"
    return text
