"""Log lines: ids on each, secrets blotted, one entry one line."""

import io
import logging
from collections.abc import Iterator

import pytest

from cortex.base.log import BLOT, OURS, SecretFilter, bound, set_up


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, levels = root.handlers[:], {name: logging.getLogger(name).level for name in ("", *OURS)}
    stream = io.StringIO()
    set_up("info", SecretFilter("sk-very-secret", "abc"), stream)
    yield stream
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_user_and_turn_are_on_the_line_while_bound(lines: io.StringIO) -> None:
    log = logging.getLogger("cortex.test")
    with bound(user_id="u1", turn_id="turn:2"):
        log.info("inside")
    log.info("outside")
    inside, outside = lines.getvalue().splitlines()
    assert inside.endswith("cortex.test user=u1 turn=turn:2 inside")
    assert outside.endswith("cortex.test user=- turn=- outside")


def test_known_secrets_are_blotted_even_in_a_traceback(lines: io.StringIO) -> None:
    try:
        raise ValueError("key sk-very-secret refused")
    except ValueError:
        logging.getLogger("cortex.test").exception("with sk-very-secret and abc")
    text = lines.getvalue()
    assert "sk-very-secret" not in text
    assert text.count(BLOT) == 3
    assert "abc" in text


def test_a_message_from_outside_cannot_forge_a_second_line(lines: io.StringIO) -> None:
    logging.getLogger("cortex.test").info("name=%s", "x\n2026 INFO root all is well\x1b[2J")
    assert len(lines.getvalue().splitlines()) == 1
    assert "\x1b" not in lines.getvalue()


@pytest.mark.parametrize(("level", "shown"), [("debug", "ours"), ("info", ""), ("error", "")])
def test_of_libraries_only_warnings_come(lines: io.StringIO, level: str, shown: str) -> None:
    set_up(level, SecretFilter(), lines)
    logging.getLogger("aiosqlite").info("execute INSERT with all values")
    logging.getLogger("a.new.library").debug("every header")
    logging.getLogger("cortex.test").debug("ours")
    assert lines.getvalue().strip().rpartition(" ")[2] == shown
