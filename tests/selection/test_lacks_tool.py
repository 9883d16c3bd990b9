"""Whether an answer is one: judged on sentences that were written apart from those that it was fitted on."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cortex.base.clock import ticks_s
from cortex.selection.model import lacks_tool
from cortex.selection.model.lacks_tool import does_not_answer
from tests.bench import answers
from tests.patience import PATIENCE_S

LANGUAGES = ("en", "de", "fr", "es", "it", "nl", "pt")


def test_nine_of_ten_refusals_are_told_and_hardly_an_answer_is_taken_for_one() -> None:
    rows = answers.sentences(answers.JUDGE)
    assert [sum(row.is_refusal == kind for row in rows) for kind in (True, False)] == [200, 200]
    found = answers.judged()
    assert tuple(found) == (*LANGUAGES, "all")
    recall, alarms = found["all"]
    assert recall >= 0.9
    assert alarms <= 0.03
    assert min(found[name][0] for name in LANGUAGES) >= 0.8
    assert max(found[name][1] for name in LANGUAGES) <= 0.1


def test_nothing_that_is_judged_by_was_fitted_on() -> None:
    told = {row.text for row in answers.sentences(answers.FIT)}
    assert told.isdisjoint(row.text for row in answers.sentences(answers.JUDGE))


def test_the_line_is_fitted_on_the_sentences_that_are_there() -> None:
    assert lacks_tool.read(lacks_tool.FILE.read_bytes()).fitted_on == answers.digest(), "run make train"


@pytest.mark.full
def test_the_same_sentences_give_the_same_line() -> None:
    assert answers.fitted() == lacks_tool.FILE.read_bytes()


@pytest.mark.parametrize("text", ["", "  ", "…", "👍", "```\nraise RuntimeError('I cannot access it')\n```"])
def test_an_answer_without_words_of_its_own_is_no_refusal(text: str) -> None:
    assert not does_not_answer(text)


def test_what_is_quoted_is_somebody_elses_word() -> None:
    quoted = "I don't have access to your files."
    assert does_not_answer(quoted)
    assert not does_not_answer(f'The message reads: "{quoted}" Ask your admin for it.')


def test_a_long_answer_costs_no_time_worth_naming() -> None:
    assert not does_not_answer("The tower was built in three years. " * 20_000)


@pytest.mark.parametrize("sign", ["«", "“a ", "„", '"', "`", "```\n", "»", "”"])
def test_a_sign_that_is_repeated_costs_no_time_worth_naming(sign: str) -> None:
    began_s = ticks_s()
    lacks_tool.features(sign * 200_000)
    assert ticks_s() - began_s < PATIENCE_S / 10


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "lacks_tool.bin").write_bytes(lacks_tool.FILE.read_bytes())
    monkeypatch.setattr(lacks_tool, "FILE", tmp_path / "lacks_tool.bin")
    lacks_tool._line.cache_clear()
    yield tmp_path / "lacks_tool.bin"
    lacks_tool._line.cache_clear()


def change(at: int) -> Callable[[Path], None]:
    def changed(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    return changed


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "of the version before": lambda path: path.write_bytes(path.read_bytes()[:-4]),
    "garbled": lambda path: path.write_bytes(b"\xff" * path.stat().st_size),
    "its head": change(1),
    "its weights": change(900),
    "its checksum": change(-1),
}


@pytest.mark.parametrize("harm", DAMAGES.values(), ids=DAMAGES)
def test_without_its_file_no_answer_is_a_refusal_and_the_log_says_so_once(
    place: Path, harm: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    quoted = "I don't have access to your files."
    assert does_not_answer(quoted)
    harm(place)
    lacks_tool._line.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert not does_not_answer(quoted)
        assert not does_not_answer("OK.")
    (record,) = caplog.records
    assert "lacks_tool.bin" in record.getMessage()
    assert "Install this" in record.getMessage()
