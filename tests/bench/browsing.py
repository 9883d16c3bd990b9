"""Chromium as a meter: what a page load takes on the wire and on the main thread, by the DevTools protocol."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from _pytest.outcomes import Skipped
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

from tests.bench.figure import Unmeasured
from tests.e2e.browser import DESK, chromium
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon

WATCH = """window.tasks = [];
new PerformanceObserver(list => { for (const one of list.getEntries()) window.tasks.push(one.duration); })
  .observe({ type: 'longtask', buffered: true });"""
FIRST_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


@contextmanager
def browser() -> Iterator[Browser]:
    """The system's Chromium; Unmeasured where there is none."""
    try:
        with chromium(is_whole=True) as found:
            yield found
    except Skipped as reason:
        raise Unmeasured(str(reason)) from reason


@dataclass(kw_only=True)
class Wire:
    """What came over the network: requests, encoded bytes in all, and those of scripts."""

    requests: int = 0
    bytes: int = 0
    script_bytes: int = 0
    _kinds: dict[str, tuple[str, str]] = field(default_factory=dict)

    def listen(self, session: CDPSession) -> None:
        """Count from now on; the live stream and data addresses are no loads."""
        session.send("Network.enable")
        session.on("Network.responseReceived", self._begun)
        session.on("Network.loadingFinished", self._ended)

    def _begun(self, event: dict[str, Any]) -> None:
        self._kinds[event["requestId"]] = (event["type"], event["response"]["url"])

    def _ended(self, event: dict[str, Any]) -> None:
        kind, url = self._kinds.get(event["requestId"], ("", "data:"))
        if url.startswith("data:"):
            return
        self.requests += 1
        self.bytes += event["encodedDataLength"]
        self.script_bytes += event["encodedDataLength"] if kind == "Script" else 0


def profile(found: Browser, daemon: Daemon, caller: Caller) -> BrowserContext:
    """A fresh profile with an empty cache, logged in as the caller."""
    context = found.new_context(base_url=daemon.origin, viewport=DESK)
    context.add_cookies([{"name": "cortex", "value": caller.token, "url": daemon.origin}])
    context.add_init_script(WATCH)
    return context


def meters(session: CDPSession) -> dict[str, float]:
    """Chromium's own counters, durations in seconds."""
    return {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}


def long_tasks(page: Page) -> list[float]:
    """Main-thread tasks of more than 50 ms since the page began to load, in milliseconds."""
    found: list[float] = page.evaluate("() => window.tasks")
    return found
