"""Tells which callback holds the event loop of a daemon that a test started, and where it was.

Counted is the processor time of the loop's own thread, so that a busy machine blames nobody. `tests/children.py` puts
it into each child, `tests/conftest.py` fails the test during which a child told of anything.
"""

import asyncio
import io
import os
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path

HELD_S = 0.5  # more than a slow core needs for what takes a fast one 200 ms
LOOK_S = 0.05
WHOLE = ".told"
READY = ("Cortex is at ", "Cortex works ")  # the start, which may load and compile, ends with these words


class Watchdog:
    """Watches the loop of the thread that made it. Reports are files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._begun_s: float | None = None
        self._seen: list[str] = []

    def watch(self) -> None:
        """From now on. There is no public way to hear of each callback; `Handle._run` is where the loop calls them."""
        run = asyncio.Handle._run

        def watched(handle: asyncio.Handle) -> None:
            if threading.get_ident() != self._thread:
                return run(handle)
            self._seen, self._begun_s = [], time.thread_time()
            run(handle)
            held_s, self._begun_s = time.thread_time() - self._begun_s, None
            if held_s > HELD_S:
                self._report(f"{held_s * 1000:.0f} ms of processor in {_name(handle)}\n\n" + "\n".join(self._seen))
            return None

        setattr(asyncio.Handle, "_run", watched)  # noqa: B010 - mypy knows no method of ours there
        threading.Thread(target=self._look, name="watchdog", daemon=True).start()

    def _look(self) -> None:
        """Note where the thread is while a callback runs for long, or when it lets go of the interpreter."""
        while True:
            time.sleep(LOOK_S)
            begun_s = self._begun_s
            if begun_s is not None and time.clock_gettime(self._clock) - begun_s > HELD_S / 2:
                frame = sys._current_frames().get(self._thread)
                self._seen.append("".join(traceback.format_stack(frame)[-25:]))

    def _report(self, text: str) -> None:
        """Whole or not at all: who reads may look at any time. A full disk or a folder that is gone is no fault."""
        file = self._folder / f"{os.getpid()}-{time.monotonic_ns()}"
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
            file.rename(file.with_suffix(WHOLE))


def _name(handle: asyncio.Handle) -> str:
    """The task whose step it was, else the callback."""
    return repr(getattr(getattr(handle, "_callback", None), "__self__", None) or handle)


class Output(io.TextIOWrapper):
    """A child's standard output; the words by which it says that it is ready begin the watch."""

    watchdog: Watchdog | None = None

    def write(self, text: str) -> int:
        """As always."""
        if self.watchdog is not None and text.startswith(READY):
            self.watchdog.watch()
            self.watchdog = None
        return super().write(text)


def output(folder: Path) -> Output:
    """Standard output of this process, with a watchdog on the loop of this thread."""
    made = Output(open(1, "wb", closefd=False), write_through=True)  # noqa: SIM115 - the process's own, until it ends
    made.watchdog = Watchdog(folder)
    return made


def reports(folder: Path) -> list[str]:
    """What was told since the last look."""
    files = sorted(folder.glob(f"*{WHOLE}"))
    found = [file.read_text(encoding="utf-8") for file in files]
    for file in files:
        file.unlink()
    return found
