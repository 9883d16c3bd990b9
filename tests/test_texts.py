"""What people read, listed by `.ci/texts.py` to be read in one go, is in words that need no learning."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
OURS_ALONE = re.compile(
    r"\b(?:(?:the|this) house|stands?|told|take (?:that|it) back|leads off|your word|goes once by)\b", re.IGNORECASE
)


@pytest.fixture(scope="module")
def texts() -> ModuleType:
    spec = importlib.util.spec_from_file_location("texts", ROOT / ".ci" / "texts.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_kind_of_sentence_is_listed(texts: ModuleType) -> None:
    page = texts.page()
    for sentence in (
        "## web/templates/side.html",
        "- Search or do",  # a template
        "- Select at least one chat first.",  # an error
        "- {…} {…}.{…}",  # news after a redirect, of parts
        "- Dated entries, sorted into journals.",  # a card
    ):
        assert f"\n{sentence}\n" in page
    assert page.count("\n- ") > 3_000


def test_people_read_no_words_of_our_own(texts: ModuleType) -> None:
    assert [line for line in texts.page().splitlines() if OURS_ALONE.search(line)] == []
