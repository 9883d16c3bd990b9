"""`cortex jobs preview`, run as a program."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import ROOT, environment, run
from tests.patience import PATIENCE_S

SPRING = ("--tz", "Europe/Berlin", "--from", "2027-03-27T00:00")
NOT_LOADED = ("numpy", "sqlalchemy", "cortex.app", "apscheduler", "dbos")


def preview(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run(("jobs", "preview", *words), env=environment(home, **more), cwd=home)


def test_json_is_a_list_of_times_with_their_offset(tmp_path: Path) -> None:
    done = preview(tmp_path, "0 9 * * 0", *SPRING, "--count", "3", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [
        "2027-03-28T09:00:00+02:00",
        "2027-04-04T09:00:00+02:00",
        "2027-04-11T09:00:00+02:00",
    ]


def test_words_are_read_and_the_change_of_the_clock_is_told(tmp_path: Path) -> None:
    done = preview(tmp_path, "every day at half past two in the morning", *SPRING, "--count", "2")
    assert done.stdout.splitlines() == [
        "every day at 02:30 (Europe/Berlin)",
        "  Sat 2027-03-27 02:30+01:00",
        "  Sun 2027-03-28 03:30+02:00",
        "the clock jumps 02:00 -> 03:00 on 2027-03-28; 02:30 does not exist then, so it runs at 03:30 instead",
    ]


def test_the_zone_of_the_house_is_taken_when_none_is_named(tmp_path: Path) -> None:
    done = preview(tmp_path, "@daily", "--from", "2027-01-01T12:00", "--count", "1", CORTEX_TIME_ZONE="Asia/Kolkata")
    assert done.stdout.splitlines() == ["every day at 00:00 (Asia/Kolkata)", "  Sat 2027-01-02 00:00+05:30"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("0 0 31 2 *",), "'0 0 31 2 *' never comes"),
        (("61 9 * * *",), "is no cron line: bad minute"),
        (("when mum comes home",), "I can't read"),
        (("2020-01-01 10:00",), "has passed"),
        (("daily", "--tz", "Mars/Olympus"), "is not a time zone"),
        (("daily", "--from", "yesterday"), "is not a time"),
        (("daily", "--from", "9999-12-31"), "Write a year from 1970 to 2200."),
        (("0 0 30 2 *",), "'0 0 30 2 *' never comes"),
        (("0 0 * * FRIL",), "is no cron line: bad day-of-week"),
        (("0 9 * * * root /bin/backup",), "has 7 fields; a cron line has five"),
        (("daily", "--count", "0"), "'0' is not valid; write a number from 1 to 1000."),
        (("daily", "--count", "-3"), "'-3' is not valid"),
        (("daily", "--count", "9" * 5000), "is not valid"),
        (("daily", "--count", "many"), "'many' is not valid"),
        (("0", "9", "a.txt", "b.txt", "0"), "I can't read"),
        (("daily", "--cuont", "5"), "There is no option '--cuont' here"),
        (("daily at 9", "--zone", "Europe/Berlin"), "there are --tz, --from, --count and --json"),
        (("daily at 9", "--zone=Europe/Berlin"), "There is no option '--zone=Europe/Berlin' here"),
        (("daily", "-z", "UTC"), "There is no option '-z' here"),
        (("-1 * * * *",), "is no cron line: bad minute"),
        ((), "Nothing is said of a time."),
    ],
)
def test_what_cannot_be_shown_is_one_line_and_an_exit_code(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    done = preview(tmp_path, *words, "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("last", "Friday", "of", "the", "month", "at", "17:00"), "2027-04-30T17:00:00+02:00"),
        (("in 20 minutes",), "2027-03-27T00:20:00+01:00"),
        (("0", "9", "*", "*", "0"), "2027-03-28T09:00:00+02:00"),
    ],
    ids=["without quotes", "a moment", "a line without quotes"],
)
def test_words_need_no_quotes(tmp_path: Path, words: tuple[str, ...], first: str) -> None:
    done = preview(tmp_path, *words, *SPRING, "--count", "1", "--json")
    assert (json.loads(done.stdout), done.stderr) == ([first], "")


def test_nothing_heavy_is_loaded_for_a_preview() -> None:
    script = "import sys, cortex.commands.preview; print([one for one in sys.argv[1:] if one in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script, *NOT_LOADED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_the_command_stands_in_the_help_of_all_commands(tmp_path: Path) -> None:
    done = run(("jobs", "--help"), env=environment(tmp_path), cwd=tmp_path)
    assert "preview" in done.stdout
