"""Makes the picture of README.md: `make pictures` writes `docs/cortex.webp`, 20 seconds that move.

A daemon with a scripted model, and somebody who uses its page in Chromium. A frame is shown for as long as the story
says and not for as long as it took, so a slow machine makes the same picture.
"""

import io
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from tests.bench.processes import add_model, running
from tests.e2e.browser import chromium, open_window
from tests.e2e.caller import Caller
from tests.patience import PATIENCE_S
from tests.scripted_server import Say, ScriptedServer, Use, rule

DOCS = Path(__file__).parent.parent / "docs"
WIDTH_PX, HEIGHT_PX = 1200, 750
KEY_MS, LETTERS_A_FRAME = 110, 3
STREAM_MS = 120
LENGTH_MS = 20_000
QUALITY = 62
LIST = "add milk, eggs and rice to the shopping list"
JOB = "every weekday at 7:30 tell me what is due today"
END, ASK = ".turn.bot .foot", ".ask-row [value=once]"
MODEL = (
    rule(
        "milk, eggs",
        Say(
            calls=tuple(
                Use("task_create", {"title": what, "list_name": "shopping"}) for what in ("Milk", "Eggs", "Rice")
            )
        ),
        "Milk, eggs and rice are on your shopping list.",
    ),
    rule(
        "every weekday",
        Use("cron_add", {"prompt": "Tell me what is due today.", "when": "every weekday at 7:30", "name": "Due today"}),
        "Done. Each weekday at half past seven you get a note with what is due.",
    ),
)


@dataclass
class Film:
    """Frames, and for how many milliseconds each is shown."""

    page: Page
    frames: list[bytes] = field(default_factory=list)
    lengths_ms: list[int] = field(default_factory=list)

    def show(self, length_ms: int) -> None:
        """Take the page as it is."""
        self.frames.append(self.page.screenshot(animations="disabled", caret="hide"))
        self.lengths_ms.append(length_ms)

    def write(self, text: str) -> None:
        """Type a message and send it."""
        self.page.click("#text")
        for at in range(0, len(text), LETTERS_A_FRAME):
            self.page.keyboard.insert_text(text[at : at + LETTERS_A_FRAME])
            self.show(KEY_MS)
        self.page.keyboard.press("Enter")

    def watch(self, selector: str, count: int) -> None:
        """Show what changes until the page has so many of these; AssertionError if it never has."""
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            self.show(STREAM_MS)
            if self.frames[-2:-1] == self.frames[-1:]:
                del self.frames[-1], self.lengths_ms[-1]
            if self.page.locator(selector).count() >= count:
                return
            self.page.wait_for_timeout(40)
        raise AssertionError(f"the page never had {count} of {selector}")

    def save(self, path: Path) -> None:
        """Write it as a WebP that repeats; the last frame fills what is left of the length."""
        self.lengths_ms[-1] += max(0, LENGTH_MS - sum(self.lengths_ms))
        pictures = [Image.open(io.BytesIO(frame)).convert("RGB") for frame in self.frames]
        pictures[0].save(
            path,
            save_all=True,
            append_images=pictures[1:],
            duration=self.lengths_ms,
            loop=0,
            quality=QUALITY,
            kmax=8,
            method=6,
        )


def play(film: Film) -> None:
    """A list, the reasons for its tools, and a job that asks first."""
    page = film.page
    page.goto("/c/new")
    film.show(900)
    film.write(LIST)
    film.watch(END, 1)
    film.show(1400)
    page.click(f"{END} [data-pop=why]")
    film.watch("#why-b > *", 1)
    film.show(3000)
    page.keyboard.press("Escape")
    film.write(JOB)
    film.watch(ASK, 1)
    film.show(2800)
    page.click(ASK)
    film.watch(END, 2)
    film.show(1800)
    page.goto("/jobs")
    film.show(2500)


def main() -> None:
    """Write the picture, and say how large and long the film is."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ScriptedServer(*MODEL) as model,
        chromium() as browser,
        running(Path(folder) / "home") as daemon,
        Caller(daemon) as caller,
    ):
        caller.set_up()
        add_model(caller, model)
        model.delay_s = 0.05
        window = open_window(browser, daemon.origin, width=WIDTH_PX, height=HEIGHT_PX)
        window.context.add_cookies([{"name": "cortex", "value": caller.token, "url": daemon.origin}])
        film = Film(window.page)
        play(film)
        film.save(DOCS / "cortex.webp")
    size_kb = (DOCS / "cortex.webp").stat().st_size / 1000
    sys.stdout.write(f"{len(film.frames)} frames, {sum(film.lengths_ms) / 1000:.1f} s, {size_kb:.0f} KB\n")


if __name__ == "__main__":
    main()
