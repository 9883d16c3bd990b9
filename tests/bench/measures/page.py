"""The first load of the chat page in a real Chromium with an empty cache."""

import statistics

from playwright.sync_api import Browser

from tests.bench.browsing import FIRST_PAINT, Wire, browser, profile
from tests.bench.figure import Bench, Figure
from tests.bench.processes import ask, running
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon

SETTLE_MS = 1_500
KB = 1024


def measure(bench: Bench) -> list[Figure]:
    """Four lines for a conversation with two turns in it."""
    with browser() as found, running(bench.folder / "home") as daemon, Caller(daemon) as caller:
        caller.set_up()
        conversation = ask(caller, "add milk and eggs to my shopping list")
        ask(caller, "what's on my list?", conversation)
        loads = [_load(found, daemon, caller, f"/c/{conversation}") for _ in range(bench.runs)]
    wire, _ = loads[0]
    how = "Chromium, empty cache, a conversation of two turns; compressed, with headers"
    return [
        Figure(what="chat page, first load", value=wire.bytes / KB, unit="KB", how=how, goal=42),
        Figure(what="chat page, requests", value=wire.requests, unit="", how="without the live stream", goal=4),
        Figure(what="chat page, scripts", value=wire.script_bytes / KB, unit="KB", how="compressed", goal=21),
        Figure(
            what="chat page, first contentful paint",
            value=statistics.median(paint_ms for _, paint_ms in loads),
            unit="ms",
            how=f"on this machine, 1280 x 860, median of {len(loads)}",
            goal=300,
        ),
    ]


def _load(found: Browser, daemon: Daemon, caller: Caller, path: str) -> tuple[Wire, float]:
    context = profile(found, daemon, caller)
    page = context.new_page()
    wire = Wire()
    wire.listen(context.new_cdp_session(page))
    page.goto(path, wait_until="load")
    page.wait_for_timeout(SETTLE_MS)
    paint_ms: float = page.evaluate(FIRST_PAINT)
    context.close()
    return wire, paint_ms
