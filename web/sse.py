"""A conversation's events as messages for the browser: the macros of the page, aimed at the parts that changed.

One `Painter` for all open pages of a person on it (`live.py`). It folds the same log as the page, so that the live
document equals a reloaded one.
"""

import re
from collections.abc import AsyncIterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from fastapi.responses import StreamingResponse
from markupsafe import Markup, escape
from msgspec import Struct
from starlette.types import Receive, Scope, Send

from cortex.app import Cortex
from cortex.base import scan
from cortex.base.events import Event, OpenPart
from cortex.base.user import User
from cortex.services.chat.transcript import Transcript
from cortex.services.chat.transcript_views import (
    CallCard,
    CallGroup,
    Part,
    TextPart,
    ThinkingPart,
    TurnView,
    ViewChange,
    dom_id,
    key_of,
)
from web.render import Context, Renderer, described

if TYPE_CHECKING:  # the markdown parser is read with the first answer
    from web.markdown_stream import PartChange as Piece
    from web.markdown_stream import Stream

RETRY_MS = 800
SHORT = 4_000  # characters of a growing part that are painted in place: a thread for each few words would cost more
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_LINE_ENDS = re.compile(r"\r\n|\r|\n")


class TurnViewContext(Context, frozen=True, kw_only=True):
    """The values that `turn.html` reads."""

    cid: str = described("the conversation's id")
    opens: "dict[str, Stream]" = described("part id -> what is shown of a part that is being written")
    window_tokens: int = described("how much the model can read; 0 when that does not matter", default=0)
    engine: bool = described("whether the figures of tools and rounds stand under an answer", default=False)


class SseMessage(Struct, frozen=True, kw_only=True):
    """One SSE message. `event`: a named one for app.js; else `data` is swapped. `id`: where to resume."""

    data: str
    event: str = ""
    id: int | None = None
    retry_ms: int | None = None

    def encode(self) -> str:
        """The message as it goes over the wire; a line break in the data can never end it early."""
        head = f"id: {self.id}\n" if self.id is not None else ""
        head += f"event: {self.event}\n" if self.event else ""
        head += f"retry: {self.retry_ms}\n" if self.retry_ms is not None else ""
        return head + "".join(f"data: {line}\n" for line in _LINE_ENDS.split(self.data)) + "\n"


class LiveStream(StreamingResponse):
    """A stream of encoded messages to one person, who may hold only so many: it counts from its first byte to its end.

    Raises Throttled before it begins.
    """

    def __init__(self, services: Cortex, user: User, messages: AsyncIterable[str]) -> None:
        """`messages` are encoded."""
        super().__init__(messages, media_type="text/event-stream", headers=HEADERS)
        self._holding = services.streams.holding(user.id)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the messages end or the reader goes."""
        with self._holding:
            await super().__call__(scope, receive, send)


def partial(target: str, swap: str, html: str = "") -> Markup:
    """An aimed piece: htmx puts `html` (ours or sanitised) at `target`."""
    return Markup('<hx-partial hx-target="{}" hx-swap="{}">{}</hx-partial>').format(target, swap, Markup(html))  # noqa: S704


def open_streams(parts: tuple[OpenPart, ...]) -> "dict[str, Stream]":
    """Return what a page shows of the parts that are being written while it is rendered."""
    return {part.part: _fed(part) for part in parts}


class Painter:
    """Turns events and open parts into messages, for pages that showed the log up to some `seq`."""

    def __init__(self, pages: Renderer, context: TurnViewContext, transcript: Transcript) -> None:
        """`context.opens` must be empty: this painter fills it with what it has sent."""
        self._pages = pages
        self._macros: Any = pages.macros("turn.html", context)  # Jinja makes the macros' names at run time
        self._ui: Any = pages.macros("ui.html", context)
        self._cid, self._window = context.cid, context.window_tokens
        self._shown = context.opens
        self._newest: dict[str, OpenPart] = {}  # part id -> as it was painted last, while it is being written
        self._log = transcript

    async def painted(self, items: Sequence[Event | OpenPart]) -> str:
        """The messages that bring a page up to date with these, encoded; long ones are made beside the event loop."""
        if all(isinstance(item, OpenPart) and len(item.text) < SHORT for item in items):
            return self._painted(items)
        return await self._pages.aside(self._painted, items)

    async def whole(self, earlier: int | None, shown: str) -> str:
        """The messages that show the whole log anew. `earlier`: as `LogPage` has it; `shown`: the turn to tell of."""
        return await self._pages.aside(self._painted_whole, earlier, shown)

    def outage(self, is_over: bool) -> str:
        """The message that says that the database is away, or back."""
        return SseMessage(data=partial("#outage", "innerHTML", self._macros.outage(is_over))).encode()

    async def open_parts(self) -> str:
        """The messages that show a page, which has no more than the log, the parts that are being written."""
        return await self._pages.aside(self._painted_open) if self._newest else ""

    def _painted(self, items: Sequence[Event | OpenPart]) -> str:
        return "".join(message.encode() for item in items for message in self.paint(item))

    def _painted_open(self) -> str:
        html = [self._paint_whole(*found) for new in self._newest.values() if (found := self._find_open(new))]
        return "".join(SseMessage(data=one).encode() for one in html)

    def _painted_whole(self, earlier: int | None, shown: str) -> str:
        m, log = self._macros, self._log
        link = [m.earlier(earlier)] if earlier is not None else []
        turns = [m.turn(turn, marker=log.marker_after(turn)) for turn in log.turns]
        html = (
            partial("#log", "innerMorph", Markup("").join([*link, m.beginning(log.beginning), *turns]))
            + self._paint_context()
        )
        told = SseMessage(data=f"q{key_of(shown)}", event="shown", id=log.seq)
        return SseMessage(data=html).encode() + told.encode()

    def paint(self, item: Event | OpenPart) -> list[SseMessage]:
        """The messages that bring the page up to date with one item."""
        if isinstance(item, OpenPart):
            html = self._paint_open(item)
            return [SseMessage(data=html)] if html else []
        return self._paint_event(item)

    def _paint_event(self, event: Event) -> list[SseMessage]:
        was_running = self._log.running is not None
        changes = self._log.apply(event)
        # one message a change: a piece may aim at an element that the piece before has made
        found = [SseMessage(data=html) for change in changes if (html := self._paint_change(change))]
        if aside := self._paint_aside(event, was_running):
            found.append(SseMessage(data=aside))
        found += [SseMessage(data=data, event=name) for name, data in self._signals(event, changes, was_running)]
        # The id goes with the last message: a connection that breaks before it gets the whole event again.
        if found:
            found[-1] = SseMessage(data=found[-1].data, event=found[-1].event, id=event.seq)
        # Nothing to show, yet a browser that connects again must not ask for it again.
        return found or [SseMessage(data="", event="seen", id=event.seq)]

    def _signals(self, event: Event, changes: list[ViewChange], was_running: bool) -> Iterator[tuple[str, str]]:
        """Yield what app.js must know: scroll to a question, switch the stop button, say it in the status line."""
        for change in changes:
            if change.kind == "turn.new":
                yield "turn", f"q{key_of(change.turn)}"
        if event.kind == "title":
            yield "title", " ".join(self._log.title.split())
        if event.kind == "approval" and event.payload["state"] == "asked":
            yield "run", "ask"
        if event.kind == "turn.end":
            yield "ended", str(event.payload["state"])
        is_running = self._log.running is not None
        if is_running != was_running:
            yield "run", "start" if is_running else "idle"

    def _paint_aside(self, event: Event, was_running: bool) -> str:
        """Return what changes outside the log: the mark in the sidebar, how full the context is in the header."""
        is_running, html = self._log.running is not None, Markup("")
        if is_running != was_running or event.kind == "approval":
            is_waiting = event.kind == "approval" and event.payload["state"] == "asked"
            html += partial(f"#cr-{self._cid}", "innerHTML", self._ui.doing(is_running, is_waiting))
        return html + self._paint_context() if event.kind == "turn.end" else html

    def _paint_context(self) -> Markup:
        if not self._window:
            return Markup("")
        return partial("#ctx", "innerHTML", self._macros.context(self._log.context_tokens, self._window))

    def _paint_change(self, change: ViewChange) -> str:
        turn = self._log.turn(change.turn)
        key = key_of(change.turn)
        match change.kind:
            case "turn.drop":
                return partial(f"#q{key}", "delete") + partial(f"#t{key}", "delete")
            case "title":
                title = escape(self._log.title)
                return partial("#title", "innerHTML", title) + partial(f"#ct-{self._cid}", "innerHTML", title)
            case "marker.drop":
                return partial(f"#m{change.part}", "delete")
            case "undo":
                return self._paint_undo(turn, change)
        return self._paint_turn(change, turn, key) if turn else ""

    def _paint_turn(self, change: ViewChange, turn: TurnView, key: str) -> str:
        m = self._macros
        match change.kind:
            case "turn.new":
                return partial("#log", "beforeend", m.turn(turn))
            case "turn.start":
                return partial(f"#q{key}", "innerHTML", m.question_inner(turn)) + partial(
                    f"#q{key}", "afterend", m.answer(turn)
                )
            case "question":
                return partial(f"#q{key}", "innerHTML", m.question_inner(turn))
            case "turn.end":
                return partial(f"#f{key}", "outerHTML", m.tail_box(turn))
            case "status":
                return partial(f"#w{key}", "innerHTML", m.status(turn))
            case "body":
                return partial(f"#b{key}", "innerMorph", m.body(turn))
            case "marker.new":
                marker = self._log.markers[change.part]
                return partial(f"#t{key}", "afterend", m.summary(marker))
        part = self._log.part(turn.id, change.part)
        return self._paint_part(change, turn, part) if part else ""

    def _paint_part(self, change: ViewChange, turn: TurnView, part: Part) -> str:
        block = _block_of(turn, part)
        html = self._macros.block(turn, block)
        if isinstance(block, CallGroup):
            if block.calls[0] == part and change.kind == "part.new":
                return partial(f"#b{turn.key}", "beforeend", html)
            return partial(f"#{dom_id('g', turn.id, block.id)}", "outerMorph", html)
        if change.kind == "part.new":
            return partial(f"#b{turn.key}", "beforeend", html)
        if isinstance(part, TextPart) and change.kind == "part" and not part.is_partial:
            return self._finish(turn, part)
        self._shown.pop(part.id, None)
        self._newest.pop(part.id, None)
        swap = "outerHTML" if change.kind == "part.again" else "outerMorph"
        return partial(f"#{_element(turn, part)}", swap, self._macros.block(turn, block))

    def _paint_undo(self, turn: TurnView | None, change: ViewChange) -> str:
        part = self._log.part(change.turn, change.part)
        if turn and isinstance(part, CallCard):
            return self._paint_part(change, turn, part)
        return partial(f"#{dom_id('u', change.turn, change.part)}", "innerHTML", self._macros.undo("", "undone", ""))

    # --- parts that are being written -------------------------------------------------------------------------------

    def _paint_open(self, new: OpenPart) -> str:
        found = self._find_open(new)
        if found is None:
            return ""
        turn, part = found
        stream, before = self._shown.get(part.id), self._newest.get(part.id)
        self._newest[part.id] = new
        if stream is None or before is None or before.attempt != new.attempt or not new.text.startswith(stream.text):
            self._shown[part.id] = _fed(new)
            return self._paint_whole(turn, part)
        more = new.text[len(stream.text) :]
        stream.feed(more)
        target = _element(turn, part)
        if isinstance(part, ThinkingPart):
            return partial(f"#{target}o", "beforeend", escape(more)) if more else ""
        pieces = stream.flush()
        if pieces and stream.is_cut:
            return partial(f"#{target}", "innerHTML", self._macros.text_open(turn.key, target, part))
        return _pieces(target, pieces, stream.open_html)

    def _find_open(self, new: OpenPart) -> tuple[TurnView, TextPart | ThinkingPart] | None:
        """Where it stands, if the log has begun it and not ended it."""
        turn, part = self._log.turn(new.turn_id), self._log.part(new.turn_id, new.part)
        if turn is None or not isinstance(part, TextPart | ThinkingPart) or not part.is_open:
            return None
        return turn, part

    def _paint_whole(self, turn: TurnView, part: TextPart | ThinkingPart) -> str:
        target = _element(turn, part)
        if isinstance(part, ThinkingPart):
            return partial(f"#{target}o", "innerHTML", escape(self._shown[part.id].text))
        return partial(f"#{target}", "innerHTML", self._macros.text_open(turn.key, target, part))

    def _finish(self, turn: TurnView, part: TextPart) -> str:
        stream, target = self._shown.pop(part.id, None), _element(turn, part)
        newest = self._newest.pop(part.id, None)
        is_known = newest is not None and newest.attempt == part.attempt
        if stream is None or not is_known or not part.text.startswith(stream.text):
            return partial(f"#{target}", "outerHTML", self._macros.block(turn, part))
        stream.feed(part.text[len(stream.text) :])
        pieces = stream.finish()
        if stream.is_cut:
            return partial(f"#{target}", "outerHTML", self._macros.block(turn, part))
        return _pieces(target, pieces, None)


def _pieces(target: str, pieces: "list[Piece]", open_html: str | None) -> str:
    """The changes as htmx takes them, each place named once; open_html: the open block afterwards, None at the end.

    The open block is a new element after a commit: an old one would be seen to move down.
    """
    kinds = {piece.kind for piece in pieces}
    if "replace" in kinds:
        return partial(f"#{target}", "innerHTML", pieces[-1].html)
    if "commit" in kinds or open_html is None:
        settled = "".join(piece.html for piece in pieces if piece.kind == "commit")
        after = "" if open_html is None else f'<div class="open" id="{target}o">{open_html}</div>'
        return partial(f"#{target}o", "outerHTML", settled + after)
    if "open" in kinds:
        return partial(f"#{target}o", "innerMorph", open_html)
    lines = "".join(piece.html for piece in pieces)
    return partial(f"#{target}o code.live", "beforeend", lines) if lines else ""


def _element(turn: TurnView, part: Part) -> str:
    return dom_id("p", turn.id, part.id)


def _block_of(turn: TurnView, part: Part) -> Part | CallGroup:
    for block in turn.blocks:
        if isinstance(block, CallGroup) and part in block.calls:
            return block
    return part


def _fed(part: OpenPart) -> "Stream":
    stream = cast("Stream", scan.load("web.markdown_stream").Stream(dom_id("p", part.turn_id, part.part)))
    stream.feed(part.text)
    if part.kind == "text":
        stream.flush()
    return stream
