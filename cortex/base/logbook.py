"""Keeps the newest log lines in memory, for `cortex_logs` and the page. A handler beside the one of `base/log.py`."""

import logging
from collections import deque


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
