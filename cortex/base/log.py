"""Logging set-up: one line an entry, with the ids of user and turn on it and known secrets blotted out.

Nobody else configures logging; modules only say `logging.getLogger(__name__)`. `LogBook` keeps the newest lines in
memory, for `cortex_logs` and the page.
"""

import logging
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

USER_ID: ContextVar[str] = ContextVar("user_id", default="-")
TURN_ID: ContextVar[str] = ContextVar("turn_id", default="-")

BLOT = "[secret]"
OURS = ("cortex", "web")  # only these know what may not be logged: a driver's debug lines hold every row it writes
_SHORTEST = 6
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F) if code not in (0x09, 0x0A)}


class SecretFilter:
    """Replaces every secret it was told of. One stands for a process; what is shorter than 6 characters is left."""

    def __init__(self, *values: str) -> None:
        """Start with these values."""
        self._values: set[str] = set()
        self.add(*values)

    def add(self, *values: str) -> None:
        """Blot these out from now on."""
        self._values.update(value for value in values if len(value) >= _SHORTEST)

    def blot(self, text: str) -> str:
        """The text without any known secret."""
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, BLOT)
        return text


class LineFormatter(logging.Formatter):
    """Time, level, name, user and turn, message; control characters from outside are escaped, so that a line is one."""

    def __init__(self, blotter: SecretFilter) -> None:
        """Blot by this blotter."""
        super().__init__()
        self.blotter = blotter

    def format(self, record: logging.LogRecord) -> str:
        """The finished line, a traceback below it."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        message = record.getMessage().translate(_CONTROLS).replace("\n", "\\n")
        line = f"{at} {record.levelname:<7} {record.name} user={USER_ID.get()} turn={TURN_ID.get()} {message}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info).translate(_CONTROLS)
        return self.blotter.blot(line)


def set_up(level: str, blotter: SecretFilter, stream: TextIO | None = None) -> None:
    """Send every log line of the process to `stream` (standard error) in one shape; `level`: see `set_level`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LineFormatter(blotter))
    logging.getLogger().handlers[:] = [handler]
    set_level(level)


def set_level(level: str) -> None:
    """Let our own lines come from this level on; of libraries only warnings come, whatever it is."""
    ours = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger().setLevel(max(logging.WARNING, ours))
    for name in OURS:
        logging.getLogger(name).setLevel(ours)


def also_blot(*values: str) -> None:
    """Blot these out too, in every line that the process writes from now on: a key that was made after the start."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, LineFormatter):
            handler.formatter.blotter.add(*values)


@contextmanager
def bound(*, user_id: str | None = None, turn_id: str | None = None) -> Iterator[None]:
    """Put these ids on every line that is logged inside."""
    tokens = [(USER_ID, USER_ID.set(user_id))] if user_id else []
    if turn_id:
        tokens.append((TURN_ID, TURN_ID.set(turn_id)))
    try:
        yield
    finally:
        for variable, token in reversed(tokens):
            variable.reset(token)


class LogBook(logging.Handler):
    """The last `keep` lines, written by whatever formatter it is given (`log.LineFormatter` blots secrets out)."""

    def __init__(self, keep: int = 2_000) -> None:
        super().__init__()
        self._lines: deque[tuple[int, str]] = deque(maxlen=keep)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line."""
        try:
            self._lines.append((record.levelno, self.format(record)))
        except (TypeError, ValueError):
            self.handleError(record)

    def tail(self, count: int, level: str = "INFO", contains: str = "") -> tuple[str, ...]:
        """Up to `count` newest lines of at least this level that contain the words, oldest first."""
        least = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
        wanted = contains.casefold()
        fit = [line for number, line in list(self._lines) if number >= least and wanted in line.casefold()]
        return tuple(fit[-count:]) if count > 0 else ()
