"""The daemon and the browser of the end-to-end tests. Chromium is opened once a file, a profile once a test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from playwright.sync_api import Browser

from tests.e2e.browser import Window, chromium, open_window
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from web import assets

TELL_VIOLATIONS = """addEventListener('securitypolicyviolation', event =>
  console.error('refused by the CSP: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample))"""


class Opens(Protocol):
    """Opens a profile on an origin, logged in by the cookie `token`; further options as `open_window` takes them."""

    def __call__(self, origin: str, token: str = "", **options: Any) -> Window: ...


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assets.make()
    with chromium() as opened:
        yield opened


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that is not started yet; it ends with the test."""
    made = Daemon(tmp_path / "home")
    yield made
    made.close()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A running daemon that the tests of a file share; `ada` is its admin."""
    made = Daemon(tmp_path_factory.mktemp("house") / "home", delay_ms=4)
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def ada(house: Daemon) -> Iterator[Caller]:
    """The admin of the shared house."""
    with Caller(house) as caller:
        yield caller.set_up()


@pytest.fixture
def opens(browser: Browser) -> Iterator[Opens]:
    """Opens profiles. In the end: nothing was refused by the CSP, no script complained."""
    windows: list[Window] = []

    def repository(origin: str, token: str = "", **options: Any) -> Window:
        window = open_window(browser, origin, **options)
        if options.get("has_script", True):
            window.context.add_init_script(TELL_VIOLATIONS)
        if token:
            window.context.add_cookies([{"name": "cortex", "value": token, "url": origin}])
        windows.append(window)
        return window

    yield repository
    complaints = [line for window in windows for line in window.complaints]
    for window in windows:
        window.context.close()
    assert complaints == []
