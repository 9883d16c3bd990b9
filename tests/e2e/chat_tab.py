"""A page test's two ends: an app served in a thread of its own, and a tab that sends, waits and compares."""

import asyncio
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, Page

from tests import loops
from tests.e2e.browser import Window, open_window
from tests.patience import PATIENCE_S


class Served:
    """An app on a free port of this machine; `do` runs a coroutine in its loop."""

    def __init__(self, make: Callable[[AsyncExitStack], Awaitable[tuple[FastAPI, Any]]]) -> None:
        """`make` is awaited in the server's own loop: the app and whatever the test wants to hold.

        What it puts on the stack is closed when no request goes on any more.
        """
        self.loop = asyncio.new_event_loop()
        self._make = make
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if not self._ready.wait(PATIENCE_S):
            raise TimeoutError("the server did not start")

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._port}"

    def do(self, work: Awaitable[Any]) -> Any:
        """The result of a coroutine, run beside the app."""

        async def waited() -> Any:
            return await work

        return asyncio.run_coroutine_threadsafe(waited(), self.loop).result(PATIENCE_S)

    def close(self) -> None:
        """Stop and wait for the end."""
        self._server.should_exit = True
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._serve())
        finally:
            loops.close(self.loop)

    async def _serve(self) -> None:
        async with AsyncExitStack() as stack:
            app, self.held = await self._make(stack)
            settings = uvicorn.Config(
                app, host="127.0.0.1", port=0, log_level="error", ws="none", lifespan="off", timeout_graceful_shutdown=9
            )
            self._server = uvicorn.Server(settings)
            task = asyncio.create_task(self._server.serve())
            while not self._server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)
            self._port = self._server.servers[0].sockets[0].getsockname()[1]
            self._ready.set()
            await task


class Tab:
    """A window on the chat."""

    def __init__(self, window: Window) -> None:
        """Nothing is loaded yet."""
        self.context, self.page, self.complaints = window.context, window.page, window.complaints

    def go(self, path: str) -> None:
        """Load a page and let its stream connect."""
        self.page.goto(path)
        self.until("() => document.readyState === 'complete'")

    def until(self, script: str, seconds: float = PATIENCE_S) -> None:
        """Wait until a script says true; polled from here, because the page's CSP forbids evaluating strings."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.page.evaluate(script):
                return
            self.page.wait_for_timeout(30)
        raise TimeoutError(script)

    def idle(self) -> None:
        """Wait until no answer is being written."""
        self.until("() => document.querySelector('#composer')?.dataset.running === '0'")
        self.page.wait_for_timeout(80)

    def send(self, text: str, *, waits: bool = True) -> None:
        """Write a message, send it, and wait for the end of the answer."""
        before, ended = self.page.locator(".turn.user").count(), self.page.locator(".turn.bot .foot").count()
        self.page.fill("#text", text)
        self.page.click(".send:not(.stop)")
        self.until(f"() => document.querySelectorAll('.turn.user').length > {before}")
        if waits:  # the message is shown a moment before the composer knows that it is being answered
            self.until(f"() => document.querySelectorAll('.turn.bot .foot').length > {ended}")
            self.idle()

    def body(self) -> str:
        """The log as markup, without the marks that htmx leaves and without blanks."""
        return body(self.page)

    def as_reloaded(self) -> str:
        """The log once it is as a tab has it that loads it now: on a busy machine the last part may still be drawn."""
        with closing(self.context.new_page()) as fresh:
            fresh.goto(self.page.url)
            end = time.monotonic() + PATIENCE_S
            while (live := self.body()) != (loaded := body(fresh)) and time.monotonic() < end:
                self.page.wait_for_timeout(50)
            assert live == loaded
        return live


def body(page: Page) -> str:
    """The log of a page, like `Tab.body`."""
    html: str = page.evaluate("() => document.querySelector('#log').innerHTML")
    return plain(html)


def plain(html: str) -> str:
    """Markup without htmx's own class names and attributes, and with blanks between elements taken out."""
    html = re.sub(r"\s*\bhtmx-[a-z]+\b", "", html)
    html = re.sub(r' data-htmx-powered="[^"]*"| class=""| open=""| title="\d+ min \d+ s left"', "", html)
    html = re.sub(r'(class="turn (?:user|bot)) old"', r'\1"', html)
    return re.sub(r">\s+<", "><", re.sub(r"\s+", " ", html))


@contextmanager
def tab(browser: Browser, url: str, token: str, **options: Any) -> Iterator[Tab]:
    """A tab of its own profile, logged in by the token; `options` as `open_window` takes them."""
    window = open_window(browser, url, **options)
    window.context.add_cookies([{"name": "cortex", "value": token, "url": url}])
    try:
        yield Tab(window)
    finally:
        window.context.close()
