"""Spaces between things come from the seven steps of the design: what is off them is counted, and only falls."""

import re
from pathlib import Path

import pytest

STYLES = Path(__file__).parents[1] / "web" / "static"
STEPS_PX = {0.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0}
HAIR_PX = 3  # a line, and what makes up for one
OFF = {"app.css": 93, "sheet.css": 3, "setup.css": 1}  # fewer: lower the number
_SPACE = re.compile(r"(?<![\w-])(?:(?:padding|margin)(?:-[a-z-]+)?|(?:row-|column-)?gap)\s*:\s*([^;}]+)")
_MADE = re.compile(r"\w+\((?:[^()]|\([^()]*\))*\)")  # var(), calc(), env()
_LENGTH = re.compile(r"(?<![\w.-])-?(\d*\.?\d+)px")


def off_the_steps(text: str) -> list[str]:
    """The declarations of a sheet with a length that is none of the steps, once for each such length."""
    return [
        said[0]
        for said in _SPACE.finditer(text)
        for length in _LENGTH.findall(_MADE.sub("", said[1]))
        if float(length) > HAIR_PX and float(length) not in STEPS_PX
    ]


@pytest.mark.parametrize("sheet", sorted(one.name for one in STYLES.glob("*.css")))
def test_spaces_are_steps_of_the_design(sheet: str) -> None:
    found = off_the_steps((STYLES / sheet).read_text(encoding="utf-8"))
    assert len(found) <= OFF.get(sheet, 0), found


def test_what_is_off_is_found() -> None:
    assert off_the_steps("a{padding:7px var(--s1) calc(9px + 1px);margin:-8px 2px;gap:10px 13px;inline-size:7px}") == [
        "padding:7px var(--s1) calc(9px + 1px)",
        "gap:10px 13px",
        "gap:10px 13px",
    ]
