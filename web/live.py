"""What open pages are sent as it happens: painted once for all pages of a person on the same thing, and given to each.

A page that comes is first brought to where the others are. One that reads too slowly is brought there again, instead of
having everything kept for it. Called by `web/pages/chat.py` and `web/pages/notifications.py`; holds no rule.
"""

import asyncio
import functools
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import Context
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.clock import ticks_s
from cortex.base.errors import CortexError
from cortex.base.events import Event, OpenPart
from cortex.base.user import User
from cortex.services.chat.chat import LOOK_AGAIN_S, LogPage
from cortex.services.content.tasks import lists_of
from cortex.services.notices.live import LiveNotices
from cortex.services.runtime import work_of
from web.frame import status_frame, work_frame
from web.render import Context as PageContext
from web.render import Frame, Renderer
from web.sse import RETRY_MS, Painter, SseMessage, TurnViewContext, partial

log = logging.getLogger(__name__)

LASTS_S = 300.0  # then the browser comes back, and its login is looked at again
KEEP_ALIVE_S = 15.0
KEEP_ALIVE = ": still here\n\n"
READY = SseMessage(data="", event="ready", retry_ms=RETRY_MS).encode()
WAITING_MOST = 256_000  # characters
# What grows is shown at most this often, a long open block (it is sent again whole) a little less often; the next
# look sees all that came meanwhile.
FLUSH_S, FLUSH_MOST_S, SLOW_CHARACTERS_S = 0.08, 0.16, 100_000
MADE_WITHIN_S = 10.0  # between a page being made and its stream
EACH_PAGE_S = 0.002  # longer for each page: to send to one takes a twentieth of that in processor time


class OpenPage:
    """Keeps what one open page has not been sent yet. `seq`: it has been sent the log up to there."""

    def __init__(self, seq: int = 0, waiting_most: int = WAITING_MOST) -> None:
        """waiting_most: characters that are kept while the page does not read."""
        self.seq = seq
        self._most = waiting_most
        self.is_over = self._is_behind = False
        self._waiting: list[tuple[str, int]] = []
        self._size = 0
        self._has_news = asyncio.Event()

    def push(self, text: str, seq: int = 0) -> None:
        """Send it this next, which brings it up to `seq`. Of what is too much to keep nothing is kept."""
        self._waiting.append((text, seq))
        self._size += len(text)
        if self._size > self._most:
            self._waiting.clear()
            self._is_behind = True
        self._has_news.set()

    def begin(self, seq: int) -> None:
        """Push from here on what follows all that it is about to be sent, up to `seq`."""
        self.seq, self._is_behind, self._size = seq, False, 0
        self._waiting.clear()
        if not self.is_over:
            self._has_news.clear()

    def end(self) -> None:
        """Nothing more will come."""
        self.is_over = True
        self._has_news.set()

    async def news(self, patience_s: float) -> None:
        """Return once something was pushed, or the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._has_news.wait()
        self._has_news.clear()

    async def texts(self, ends_s: float) -> AsyncGenerator[str, None]:
        """Return what is pushed, all that waits in one, until then; a sign of life every 15 quiet seconds.

        Ends when there is no more, and when the page fell behind: then it has been sent the log up to `seq` alone.
        """
        while ticks_s() < ends_s:
            await self.news(min(KEEP_ALIVE_S, ends_s - ticks_s()))
            if self._is_behind:
                return
            taken, self._size, self._waiting = self._waiting, 0, []
            if taken or not self.is_over:
                yield "".join(text for text, _ in taken) or KEEP_ALIVE
            self.seq = max([self.seq, *(seq for _, seq in taken)])
            if self.is_over:
                return


class Feed(ABC):
    """One source that several pages show. It goes on until their access ends, or the last of them is gone."""

    def __init__(self) -> None:
        self.joined = 0
        self.is_ready = asyncio.Event()
        self.is_over = False
        self._pages: set[OpenPage] = set()

    def start(self) -> None:
        """Follow the source. In a context of its own: the request that happens to be first ends before."""
        self._running = asyncio.create_task(self._run(), context=Context())  # noqa: TID251 - ended by `stop`, heard by `_end`
        self._running.add_done_callback(self._end)

    def stop(self) -> None:
        """Nobody looks any more."""
        self._running.cancel()

    def add(self, page: OpenPage) -> None:
        """Push what comes to this page too."""
        self._pages.add(page)
        if self.is_over:
            page.end()

    def leave(self, page: OpenPage) -> None:
        """Push it nothing more."""
        self._pages.discard(page)

    def _push(self, text: str, seq: int = 0) -> None:
        for page in self._pages:
            page.push(text, seq)

    @abstractmethod
    async def _run(self) -> None:
        """Follow the source to its end; `is_ready` is set once pages can join."""

    def _end(self, running: "asyncio.Task[None]") -> None:
        """The pages end with it: the browsers come back, and are let in or not."""
        if not running.cancelled() and running.exception() is not None:
            log.error("live page failed", exc_info=running.exception())
        self.is_over = True
        self.is_ready.set()
        for page in self._pages:
            page.end()


class ConversationFeed(Feed):
    """A conversation of this person, folded and painted once."""

    def __init__(self, services: Cortex, renderer: Renderer, user: User, cid: str) -> None:
        super().__init__()
        self._services, self._renderer, self._user, self._cid = services, renderer, user, cid
        self._between = asyncio.Lock()  # pages join between two changes

    async def caught_up(self, page: OpenPage) -> AsyncGenerator[str, None]:
        """Return what brings the page from its `seq` to where the others are; the rest is pushed."""
        self.add(page)
        if self.is_over:
            return  # perhaps before pages could join
        while self._seq < page.seq and not page.is_over:  # it has seen a row that is about to be painted
            await page.news(KEEP_ALIVE_S)
        async with self._between:
            after, upto, open_parts = page.seq, self._seq, await self._painter.open_parts()
            page.begin(upto)
        if after < upto:
            async for text in self._missed(after, upto):
                yield text
        if open_parts:
            yield open_parts
        if self._services.runtime.outages.is_waiting:
            yield self._painter.outage(is_over=False)

    def tell_outage(self) -> None:
        """The database went away, or is back: let the pages say so."""
        if self.is_ready.is_set() and not self.is_over:
            self._push(self._painter.outage(is_over=not self._services.runtime.outages.is_waiting))

    async def _run(self) -> None:
        page = await self._services.chat.log(self._user, self._cid)
        composer = await self._services.composer.composer(self._user, page.conversation)
        self._window_tokens, self._engine = composer.window_tokens, composer.engine
        self._painter = await asyncio.to_thread(self._made, page, page.seq)
        self._seq = page.seq
        self.is_ready.set()
        async for events, parts in self._services.chat.follow(self._user, self._cid, page.seq):
            async with self._between:
                text, self._painter = await self._painted(self._painter, [*events, *parts])
                self._seq = events[-1].seq if events else self._seq
                self._push(text, self._seq)
            flush_s = min(FLUSH_MOST_S, FLUSH_S + len(text) / SLOW_CHARACTERS_S) if parts else 0.0
            await asyncio.sleep(flush_s + EACH_PAGE_S * len(self._pages))

    async def _missed(self, after: int, upto: int) -> AsyncGenerator[str, None]:
        page = await self._services.chat.log(self._user, self._cid)
        painter = await asyncio.to_thread(self._made, page, after)
        for event in await self._services.chat.events(self._user, self._cid, after, upto):
            text, painter = await self._painted(painter, [event])
            yield text

    async def _painted(self, painter: Painter, items: Sequence[Event | OpenPart]) -> tuple[str, Painter]:
        """The messages for these, and the painter that goes on.

        Where another version was chosen the whole log is painted anew: what is shown again may be older than the page.
        """
        shows = [at for at, item in enumerate(items) if isinstance(item, Event) and item.kind == "turn.show"]
        if not shows:
            return await painter.painted(items), painter
        at, show = shows[-1], cast("Event", items[shows[-1]])
        before = await painter.painted(items[:at])
        page = await self._services.chat.log(self._user, self._cid)
        painter = await asyncio.to_thread(self._made, page, show.seq)
        whole = await painter.whole(page.earlier, next(iter(show.payload["shown"]), ""))
        return before + whole + await painter.painted(items[at + 1 :]), painter

    def _made(self, page: LogPage, seq: int) -> Painter:
        """For a thread: a long log is folded, and at first the templates are compiled."""
        log = page.folded(seq)
        log.seq = max(log.seq, seq)
        context = TurnViewContext(
            frame=Frame(user=self._user),
            cid=self._cid,
            opens={},
            window_tokens=self._window_tokens,
            engine=self._engine,
        )
        return Painter(self._renderer, context, log)


class BellFeed(Feed):
    """The number on a person's bell, what is new, that a task list changed, and the word for what works just now."""

    def __init__(self, services: Cortex, pages: Renderer, user: User) -> None:
        super().__init__()
        self._services, self._renderer, self._user = services, pages, user
        self._notices, self._streams = services.notices, services.streams
        self._places: dict[OpenPage, tuple[str, str]] = {}  # page -> its conversation, and the word it was sent last
        self._worked_s = -math.inf
        self._working: frozenset[str] = frozenset()  # the conversations that worked at the last look

    async def join(self, page: OpenPage, shown: int, cid: str = "") -> None:
        """Push what comes to the page, and first the number if it is not the one that is `shown`.

        The word goes along where it changed so lately that the page may have been made before.
        """
        self.add(page)
        self._places[page] = (cid, "")
        if not self.is_over and shown != self._unread:
            page.push(self._number())
        if ticks_s() - self._worked_s < MADE_WITHIN_S:
            await self._tell_work()

    def leave(self, page: OpenPage) -> None:
        """Push it nothing more."""
        super().leave(page)
        self._places.pop(page, None)

    async def _run(self) -> None:
        heard = await self._streams.hub.changed(work_of(self._user.id), -1, LOOK_AGAIN_S)
        await self._is_news()  # what works already when the first page comes
        async with asyncio.TaskGroup() as both:
            beside = [both.create_task(self._lists_ring()), both.create_task(self._work_rings(heard))]
            await self._notices_ring()  # until the person's access ends
            for one in beside:
                one.cancel()

    async def _work_rings(self, heard: int) -> None:
        """A chat or a job began or ended: say it near the person's name."""
        key, hub = work_of(self._user.id), self._streams.hub
        while True:
            last, heard = heard, await hub.changed(key, heard, LOOK_AGAIN_S)
            if heard != last:
                self._worked_s = ticks_s()
                if await self._is_news():
                    await self._tell_work()

    async def _is_news(self) -> bool:
        """Tell whether another chat than a page shows works or rests now: to make the word asks for much else."""
        try:
            async with self._services.page_view():
                frame = await work_frame(self._services, self._user)
        except CortexError:
            return False
        now = frozenset(one.id for one in frame.working)
        before, self._working = self._working, now
        return any(now - {cid} != before - {cid} for cid, _ in self._places.values())

    async def _tell_work(self) -> None:
        """Send each page the word, unless it was the last that it was sent: no page counts the chat that it shows."""
        try:
            frame = await status_frame(self._services, self._user)
        except CortexError:  # the next change, or a press, says it
            return
        words: dict[str, str] = {}
        for page, (cid, sent) in list(self._places.items()):
            if cid not in words:
                words[cid] = await self._renderer.aside(self._word, replace(frame, conversation_id=cid))
            if words[cid] != sent and page in self._places:
                self._places[page] = (cid, words[cid])
                page.push(words[cid])

    def _word(self, frame: Frame) -> str:
        macros: Any = self._renderer.macros("ui.html", PageContext(frame=frame))
        return SseMessage(data=partial("#status", "innerHTML", macros.status())).encode()

    async def _lists_ring(self) -> None:
        """A page that shows the person's task lists looks at them again."""
        key, hub = lists_of(self._user.id), self._streams.hub
        heard = await hub.changed(key, -1, LOOK_AGAIN_S)
        while True:
            last, heard = heard, await hub.changed(key, heard, LOOK_AGAIN_S)
            if heard != last:
                self._push(SseMessage(data="again", event="lists").encode())

    async def _notices_ring(self) -> None:
        # Any: Jinja makes the macros' names at run time; in a thread, because at first it compiles the template.
        self._macros: Any = await asyncio.to_thread(self._renderer.macros, "ui.html", PageContext())
        self._unread = await self._notices.unread(self._user.id)
        self.is_ready.set()
        live = LiveNotices(notices=self._notices, streams=self._streams)
        async for update in live.follow(self._user, self._unread):
            self._unread = update.unread
            over = (SseMessage(data=notice_id, event="heard") for notice_id in update.over)
            news = (SseMessage(data=self._macros.told(notice), event="told") for notice in update.news)
            self._push(self._number() + "".join(one.encode() for one in (*over, *news)))

    def _number(self) -> str:
        number = self._macros.unread(self._unread)
        both = partial("#bell-n", "innerHTML", number) + partial("#menu-n", "innerHTML", number)
        return SseMessage(data=both).encode() + SseMessage(data=str(self._unread), event="unread").encode()


F = TypeVar("F", bound=Feed)


class LivePages:
    """The feeds of this process, each for as long as a page shows it."""

    def __init__(self, services: Cortex, pages: Renderer, waiting_most: int = WAITING_MOST) -> None:
        """waiting_most: as for `OpenPage`."""
        self._services, self._pages, self._most = services, pages, waiting_most
        self._feeds: dict[tuple[User, str], Feed] = {}
        services.runtime.outages.on_change.append(self._tell_outage)

    def _tell_outage(self) -> None:
        for feed in self._feeds.values():
            if isinstance(feed, ConversationFeed):
                feed.tell_outage()

    async def conversation(self, user: User, cid: str, seq: int, shown: int) -> AsyncGenerator[str, None]:
        """The log past `seq` as it grows, and the bell, whose number is `shown`. Ends after five minutes."""
        yield READY
        page, ends_s = OpenPage(seq, self._most), ticks_s() + LASTS_S
        make = functools.partial(ConversationFeed, self._services, self._pages, user, cid)
        async with self._bell(page, user) as bell, self._joined(page, (user, cid), make) as feed:
            while not page.is_over and ticks_s() < ends_s:
                async for text in feed.caught_up(page):
                    yield text
                await bell.join(page, shown, cid)
                async for text in page.texts(ends_s):
                    yield text
                shown = -1  # what was dropped may have told another number

    async def bell(self, user: User, shown: int) -> AsyncGenerator[str, None]:
        """The bell alone."""
        yield READY
        page, ends_s = OpenPage(0, self._most), ticks_s() + LASTS_S
        async with self._bell(page, user) as bell:
            while not page.is_over and ticks_s() < ends_s:
                page.begin(0)
                await bell.join(page, shown)
                async for text in page.texts(ends_s):
                    yield text
                shown = -1

    def _bell(self, page: OpenPage, user: User) -> AbstractAsyncContextManager[BellFeed]:
        return self._joined(page, (user, ""), functools.partial(BellFeed, self._services, self._pages, user))

    @asynccontextmanager
    async def _joined(self, page: OpenPage, key: tuple[User, str], make: Callable[[], F]) -> AsyncIterator[F]:
        feed = cast("F | None", self._feeds.get(key))  # a key's feeds are of one kind
        if feed is None or feed.is_over:
            feed = make()
            feed.start()
            self._feeds[key] = feed
        feed.joined += 1
        try:
            await feed.is_ready.wait()
            yield feed
        finally:
            feed.leave(page)
            feed.joined -= 1
            if not feed.joined:
                feed.stop()
                if self._feeds.get(key) is feed:
                    del self._feeds[key]
