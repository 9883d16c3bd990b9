"""Chromium for the end-to-end tests: windows that note every complaint of the console, and axe.

Chromium is the system's; without it the tests are skipped with that reason. Its headless shell takes six tenths of the
processor (105 s and 65 s over nine tests, 2026-11-23) and shows no notifications. axe-core comes from npm into an
ignored folder, once.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

from tests.patience import PATIENCE_S

ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=HttpsUpgrades,PaintHolding,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup",
)
SHELL = "chromium-headless-shell"
WHOLE = ("chromium", "chromium-browser")
AXE = "axe-core@4.14.1"
AXE_FOLDER = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
DESK: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}
PATIENCE_MS = PATIENCE_S * 1000
# Both widths and both themes daily, in two pairs of the four: what is wrong in one of the other two alone, as dark at a
# desk, is found by `make test-full`.
LOOKS = pytest.mark.parametrize(
    ("is_phone", "is_dark"),
    [
        pytest.param(False, False, id="desk-light"),
        pytest.param(True, True, id="phone-dark"),
        pytest.param(False, True, id="desk-dark", marks=pytest.mark.full),
        pytest.param(True, False, id="phone-light", marks=pytest.mark.full),
    ],
)
expect.set_options(timeout=PATIENCE_MS)  # for every test: they all open their windows here


@contextmanager
def chromium(*, is_whole: bool = False) -> Iterator[Browser]:
    """The system's Chromium, as its headless shell unless `is_whole`; the test is skipped where there is none."""
    names = WHOLE if is_whole else (SHELL, *WHOLE)
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("needs the system package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGS))
        yield browser
        browser.close()


@dataclass(kw_only=True)  # no slots: playwright hangs its own marks on the handler's owner
class Window:
    """A profile of its own with one page. `complaints`: errors and warnings of the console, and uncaught ones."""

    context: BrowserContext
    page: Page
    complaints: list[str] = field(default_factory=list)

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type} {message.text}")


def open_window(
    browser: Browser,
    origin: str,
    *,
    width: int = DESK["width"],
    height: int = DESK["height"],
    is_dark: bool = False,
    is_phone: bool = False,
    has_script: bool = True,
    time_zone: str = "UTC",
    bypass_csp: bool = False,
) -> Window:
    """A new profile whose relative addresses belong to `origin`; it asks for less motion, so that scrolling is done."""
    context = browser.new_context(
        base_url=origin,
        viewport=PHONE if is_phone else {"width": width, "height": height},
        color_scheme="dark" if is_dark else "light",
        is_mobile=is_phone,
        has_touch=is_phone,
        java_script_enabled=has_script,
        reduced_motion="reduce",
        timezone_id=time_zone,
        bypass_csp=bypass_csp,
    )
    window = Window(context=context, page=context.new_page())
    window.page.set_default_timeout(PATIENCE_MS)
    window.page.on("console", lambda message: window._note(message))
    window.page.on("pageerror", lambda error: window.complaints.append(f"pageerror {error}"))
    return window


def axe_source() -> str:
    """axe-core's script; fetched from npm on first use, else the test is skipped with the reason."""
    if not AXE_FOLDER.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("needs npm to fetch axe-core")
        command = [npm, "install", "--no-save", "--no-package-lock", "--ignore-scripts", "--prefix", "tests/e2e", AXE]
        root = Path(__file__).parents[2]
        if subprocess.run(command, cwd=root, capture_output=True, timeout=PATIENCE_S).returncode:
            pytest.skip("needs axe-core from npm, which could not be fetched")
    return AXE_FOLDER.read_text(encoding="utf-8")


def axe(page: Page) -> list[str]:
    """The violations on the page as it stands, a line each; run through the debugger, which the CSP does not bind.

    The script and its run are one expression: a page that a link is still leaving would take the script with it.
    """
    script = (
        f"{axe_source()};axe.run(document, {{runOnly: {json.dumps(RULES)}}}).then(r => JSON.stringify(r.violations.map("
        "v => `${v.id} (${v.impact}) ${v.nodes[0].target.join(' ')}: ${v.nodes[0].failureSummary}`)))"
    )
    page.wait_for_load_state()
    debugger = page.context.new_cdp_session(page)
    answer = debugger.send("Runtime.evaluate", {"expression": script, "awaitPromise": True, "returnByValue": True})
    debugger.detach()
    assert "exceptionDetails" not in answer, answer["exceptionDetails"]
    found: list[str] = json.loads(answer["result"]["value"])
    return found


def overflow_px(page: Page) -> int:
    """How far the page reaches past its window's side; a phone's own width grows with what is too wide."""
    assert page.viewport_size is not None
    page.wait_for_load_state()  # without its style sheet every page is too wide
    wide: int = page.evaluate("() => document.documentElement.scrollWidth")
    return wide - page.viewport_size["width"]
