"""The bell of every page as a live stream: by itself, or woven into a conversation's, so that a tab holds one.

Called by `web/pages/notifications.py` and `web/pages/chat.py`.
"""

import asyncio
from collections.abc import AsyncGenerator

from cortex.app import Cortex
from cortex.base.user import User
from cortex.services.chat.chat import Tick
from cortex.services.notices.live import LiveNotices
from web.render import Context, Renderer
from web.sse import KEEP_ALIVE, RETRY_MS, SseMessage, partial


async def bell(services: Cortex, pages: Renderer, user: User, shown: int) -> AsyncGenerator[str, None]:
    """The messages that keep the number current on a page that showed `shown`, and say what is new, encoded."""
    macros = pages.macros("ui.html", Context())
    yield SseMessage(data="", event="ready", retry_ms=RETRY_MS).encode()
    async for ring in LiveNotices(notices=services.notices, streams=services.streams).follow(user, shown):
        if isinstance(ring, Tick):
            yield KEEP_ALIVE
            continue
        number = macros.unread(ring.unread)
        yield SseMessage(
            data=partial("#bell-n", "innerHTML", number) + partial("#menu-n", "innerHTML", number)
        ).encode()
        yield SseMessage(data=str(ring.unread), event="unread").encode()
        for notice_id in ring.over:
            yield SseMessage(data=notice_id, event="heard").encode()
        for notice in ring.news:
            yield SseMessage(data=macros.told(notice), event="told").encode()


async def woven(leading: AsyncGenerator[str, None], beside: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    """Both streams as they come, each at the reader's pace; ends with the leading one."""
    streams = {0: leading, 1: beside}
    coming = {asyncio.ensure_future(anext(stream)): number for number, stream in streams.items()}  # noqa: TID251 - ended below
    try:
        while 0 in coming.values():
            ready, _ = await asyncio.wait(coming, return_when=asyncio.FIRST_COMPLETED)
            for one in ready:
                number = coming.pop(one)
                try:
                    text = one.result()
                except StopAsyncIteration:
                    continue
                yield text
                coming[asyncio.ensure_future(anext(streams[number]))] = number  # noqa: TID251 - ended below
    finally:
        for one in coming:
            one.cancel()
        await asyncio.gather(*coming, return_exceptions=True)
        for stream in streams.values():
            await stream.aclose()
