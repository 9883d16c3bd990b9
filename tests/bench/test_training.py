"""`cortex train`: what it says is of utterances that were left out; weights of other utterances are refused."""

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from cortex.base.errors import UserError
from cortex.commands import reliability, training
from cortex.commands.cli import app
from cortex.selection.model import weights
from cortex.selection.model.utterances import LabelledUtterance
from cortex.selection.types import Example
from tests.bench import reliability_plot, train
from tests.bench.ground import ground
from tests.selection.garden import GARDEN, fitted

BYTES = weights.to_bytes(fitted().weights)


@pytest.fixture(scope="module")
def found() -> training.TrainingResult:
    return training.judged(ground().over(GARDEN).asked("", "cortex"), fitted())


def cells(rows: training.Rows) -> dict[str, list[str]]:
    return {row[0]: list(row[1:]) for row in rows}


def test_every_utterance_is_judged_under_its_category_or_kind(found: training.TrainingResult) -> None:
    needing, needless = cells(training.needing(found)), cells(training.needless(found))
    assert {name: row[0] for name, row in needing.items() if name != "category"} == {
        "pumps": "30",
        "seeds": "24",
        "several": "2",
        "web": "12",
        "all": "68",
    }
    assert {name: row[0] for name, row in needless.items() if name in training.KINDS} == {
        "chat": "12",
        "llm": "9",
        "open": "9",
    }


def test_recall_is_the_share_that_was_sent_all_it_needs(found: training.TrainingResult) -> None:
    wishes = [wish for wish in found.wishes if wish.needed]
    met = sum(wish.needed <= wish.sent for wish in wishes)
    assert cells(training.needing(found))["all"][1] == f"{met / len(wishes):.3f}"
    assert 0.5 < met / len(wishes) <= 1


def test_the_stages_and_thresholds_of_real_messages_judge(found: training.TrainingResult) -> None:
    named = replace(
        fitted(), told=(LabelledUtterance(text="use seed_list here", tools=("seed_list",)), *fitted().told[1:])
    )
    wish = training.judged(ground().over(GARDEN).asked("", "cortex"), named).wishes[0]
    assert "seed_list" in wish.sent
    assert "seed_list" not in found.wishes[0].sent


def test_every_chance_stands_in_the_table(found: training.TrainingResult) -> None:
    tool, wish, work = found.curves
    n_open = sum(row.kind == "open" for row in fitted().told)
    assert sum(each.cases for each in tool.bins) == fitted().chances.tools.size - n_open
    assert sum(each.cases for each in wish.bins) == 68 + 12
    assert sum(each.cases for each in work.bins) == 68 - 12 + 9 + 9
    assert [row[0] for row in reliability.rows(found.curves)[1:3]] == ["0.00 to 0.02", "0.02 to 0.05"]


def test_the_page_has_all_tables_and_their_place_once(found: training.TrainingResult) -> None:
    told = train.markdown(found)
    assert "| several | 2 |" in told
    assert told.count("|---|--:|") == 3
    page = train.PAGE.read_text(encoding="utf-8")
    assert (page.count(train.BEGIN), page.count(train.END)) == (1, 1)


def test_the_same_fit_gives_the_same_plot(found: training.TrainingResult) -> None:
    drawn = train.plot(found)
    assert drawn == train.plot(replace(found))
    assert all(each.of in drawn for each in found.curves)
    assert "prefers-color-scheme: dark" in drawn


# --- whether the file is current ----------------------------------------------------------------------------------


def test_weights_of_these_utterances_are_current() -> None:
    assert training.stale(GARDEN, BYTES) == ""


def test_weights_of_other_utterances_are_old() -> None:
    more = (*GARDEN.several, Example(text="stop the pump and look up frost dates", tools=("pump_stop", "web_search")))
    assert "the utterances are others" in training.stale(replace(GARDEN, several=more), BYTES)


def test_weights_that_lack_a_tool_are_old() -> None:
    tool = replace(GARDEN.entries[0], name="pump_prime")
    assert "pump_prime" in training.stale(replace(GARDEN, entries=(*GARDEN.entries, tool)), BYTES)


def test_a_damaged_file_is_old() -> None:
    assert "cannot be read" in training.stale(GARDEN, BYTES[:-30])


@pytest.mark.parametrize("data", [BYTES, b"nonsense"], ids=["of a garden", "damaged"])
def test_the_check_says_what_to_do_and_changes_nothing(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(data)
    done = CliRunner().invoke(app, ["train", "--check", "--out", str(path)])
    assert done.exit_code == 1
    assert "run `make train`" in done.output
    assert path.read_bytes() == data
    assert [each.name for each in tmp_path.iterdir()] == ["weights.bin"]


def test_the_check_of_a_file_that_is_not_there_fails(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["train", "--check", "--out", str(tmp_path / "none.bin")])
    assert done.exit_code == 1
    assert "there is no such file" in done.output


# --- reliability --------------------------------------------------------------------------------------------------


def test_chances_are_told_by_bins() -> None:
    cases = [(0.01, False)] * 98 + [(0.01, True)] * 2 + [(0.65, True)] * 3 + [(0.65, False)] + [(1.0, True)]
    made = reliability.curve("tool", "a tool is needed", cases)
    assert [(each.least, each.most, each.cases) for each in made.bins] == [
        (0.0, 0.02, 100),
        (0.6, 0.7, 4),
        (0.95, 1.0, 1),
    ]
    assert [each.true for each in made.bins] == [0.02, 0.75, 1.0]
    assert made.error() == pytest.approx((100 * 0.01 + 4 * 0.10 + 0) / 105)
    assert made.error(0.05) == pytest.approx(0.4 / 5)


def test_no_case_is_no_error() -> None:
    assert reliability.curve("tool", "a tool is needed", ()).error() == 0.0


def test_a_bin_of_few_cases_is_not_drawn() -> None:
    few, many = ([(0.5, True)] * count for count in (reliability_plot.LEAST_CASES - 1, reliability_plot.LEAST_CASES))
    assert reliability_plot.svg([reliability.curve("a", "b", few)], "").count("<circle") == 0
    assert reliability_plot.svg([reliability.curve("a", "b", many)], "").count("<circle") == 1


def test_without_numpy_it_says_what_to_install_and_still_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cortex.selection.model.fit")
    monkeypatch.setitem(sys.modules, "numpy", None)
    ran = CliRunner().invoke(app, ["train"])
    assert isinstance(ran.exception, UserError)
    assert "the extra `train`" in ran.exception.message
    assert CliRunner().invoke(app, ["train", "--check"]).exit_code == 0
