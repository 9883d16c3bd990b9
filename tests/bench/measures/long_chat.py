"""A conversation of 1,000 messages in a real Chromium: opened, scrolled, and with a further answer streaming in."""

import asyncio
import statistics
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

from cortex.app import Cortex
from cortex.base.ids import new_id
from cortex.base.settings import load_settings
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.bench.browsing import browser, long_tasks, meters, profile
from tests.bench.figure import Bench, Figure, percentile
from tests.bench.processes import ask, running
from tests.bench.sample import ANSWER
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.e2e.person import type_and_send, wait_for_end
from tests.plain_world import PLAIN_TURN

TURNS = 500
SETTLE_MS = 1_500
NOTCHES = 40
FRAMES = """() => { window.frames_ms = []; let last = performance.now();
  const tick = now => { window.frames_ms.push(now - last); last = now; window.ticking = requestAnimationFrame(tick); };
  window.ticking = requestAnimationFrame(tick); }"""
TAKEN = "() => { cancelAnimationFrame(window.ticking); return window.frames_ms.slice(2); }"
COUNT = """() => { window.messages = 0;
  document.addEventListener('htmx:sse:after:message', () => window.messages++); }"""


def measure(bench: Bench) -> list[Figure]:
    """Five lines; the newest turns are on the page, the others a link away, as for a reader."""
    home = bench.folder / "home"
    with running(home) as daemon, Caller(daemon) as caller:
        caller.set_up()
        conversation = ask(caller, "add milk and eggs to my shopping list")
    asyncio.run(_grow(home, conversation))
    with browser() as found, running(home, delay_ms=30) as daemon, Caller(daemon) as caller:
        caller.log_in()
        repository = [_open(found, daemon, caller, conversation) for _ in range(bench.runs)]
        context, page = _page(found, daemon, caller, conversation)
        frames_ms = _scroll(page)
        work_ms, messages = _append(context, page)
    how = f"Chromium, {TURNS * 2:,} messages stored"
    several = f"{how}, median of {bench.runs}"
    return [
        Figure(
            what="1,000 messages, work to open",
            value=statistics.median(work for work, _ in repository),
            unit="ms",
            how=f"{several}, all tasks of the main thread",
            goal=1000,
        ),
        Figure(
            what="1,000 messages, longest task to open",
            value=statistics.median(longest for _, longest in repository),
            unit="ms",
            how=f"{several}; 0: none over 50 ms",
            goal=60,
        ),
        Figure(
            what="1,000 messages, a streamed message",
            value=work_ms / max(1, messages),
            unit="ms",
            how=f"{how}, script, style and layout over {messages} messages of one answer",
            goal=5,
        ),
        Figure(
            what="1,000 messages, scroll frame, 95th percentile",
            value=percentile(frames_ms, 0.95),
            unit="ms",
            how=f"{how}, {NOTCHES} turns of the wheel",
            goal=20,
        ),
    ]


def _page(found: Browser, daemon: Daemon, caller: Caller, conversation: str) -> tuple[BrowserContext, Page]:
    context = profile(found, daemon, caller)
    page = context.new_page()
    page.goto(f"/c/{conversation}", wait_until="load")
    page.wait_for_timeout(SETTLE_MS)
    return context, page


def _open(found: Browser, daemon: Daemon, caller: Caller, conversation: str) -> tuple[float, float]:
    context = profile(found, daemon, caller)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    page.goto(f"/c/{conversation}", wait_until="load")
    page.wait_for_timeout(SETTLE_MS)
    work_ms = meters(session)["TaskDuration"] * 1000
    longest = max(long_tasks(page), default=0.0)
    context.close()
    return work_ms, longest


def _scroll(page: Page) -> list[float]:
    page.evaluate(FRAMES)
    page.mouse.move(700, 400)
    for _ in range(NOTCHES):
        page.mouse.wheel(0, -300)
        page.wait_for_timeout(16)
    frames_ms: list[float] = page.evaluate(TAKEN)
    return frames_ms


def _append(context: BrowserContext, page: Page) -> tuple[float, int]:
    """Main-thread milliseconds of an answer that streams in, and how many messages brought it."""
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    page.evaluate(COUNT)
    before = _worked_ms(session)
    type_and_send(page, "tell me who you are")
    page.wait_for_timeout(500)
    wait_for_end(page, 60)
    spent_ms = _worked_ms(session) - before
    return spent_ms, int(page.evaluate("() => window.messages"))


def _worked_ms(session: CDPSession) -> float:
    """Script, style and layout so far: tasks as a whole also count what the machine does for others meanwhile."""
    now = meters(session)
    return sum(now[name] for name in ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration")) * 1000


async def _grow(home: Path, conversation: str) -> None:
    """Repeat the conversation's only turn, with a longer answer, until it has 500."""
    async with Cortex.at_rest(load_settings(None, home=home)) as cortex:
        user = await cortex.accounts.named("Ada")
        log = (await cortex.chat.log(user, conversation)).events
        (old,) = {event.turn_id for event in log if event.turn_id}
        for _ in range(TURNS - 1):
            new = f"turn:{new_id()}"
            events = [(one.kind, _moved(one.payload, str(old), new), new) for one in log if one.turn_id]
            async with cortex.runtime.db.transaction(user.id) as repository:
                turns = repository(TurnsRepository)
                await turns.create(NewTurn(new, conversation, "add milk", state="running", **PLAIN_TURN))
                await turns.move(new, "done")
                await repository(ConversationsRepository).append(conversation, events)


def _moved(value: Any, old: str, new: str) -> Any:
    """The payload as one of the new turn; what was said in it becomes a long answer."""
    if isinstance(value, dict):
        longer = {"text": ANSWER} if value.get("kind") == "text" and value.get("text") else {}
        return {key: _moved(one, old, new) for key, one in {**value, **longer}.items()}
    if isinstance(value, list):
        return [_moved(one, old, new) for one in value]
    return new if value == old else value
