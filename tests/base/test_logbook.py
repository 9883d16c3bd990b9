"""The newest lines, by level and words."""

import logging

import pytest

from cortex.base.log import LogBook


@pytest.fixture
def book() -> LogBook:
    made = LogBook(keep=4)
    log = logging.Logger("cortex.test", logging.DEBUG)
    log.addHandler(made)
    log.info("forgotten")
    log.debug("Fine detail")
    log.info("Started on %s", "8484")
    log.warning("Disk is filling")
    log.error("Disk is full")
    return made


@pytest.mark.parametrize(
    ("count", "level", "contains", "lines"),
    [
        (10, "INFO", "", ("Started on 8484", "Disk is filling", "Disk is full")),
        (10, "debug", "", ("Fine detail", "Started on 8484", "Disk is filling", "Disk is full")),
        (1, "INFO", "", ("Disk is full",)),
        (10, "ERROR", "", ("Disk is full",)),
        (10, "INFO", "DISK", ("Disk is filling", "Disk is full")),
        (10, "no such level", "8484", ("Started on 8484",)),
        (0, "INFO", "", ()),
    ],
)
def test_what_is_shown(book: LogBook, count: int, level: str, contains: str, lines: tuple[str, ...]) -> None:
    assert book.tail(count, level, contains) == lines


def test_a_record_that_cannot_be_formatted_breaks_nothing(book: LogBook, capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.Logger("cortex.test")
    log.addHandler(book)
    log.info("%d", "no number")
    assert book.tail(1) == ("Disk is full",)
    assert "no number" in capsys.readouterr().err
