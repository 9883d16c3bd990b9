"""The words of a Markdown text without its signs."""

from time import thread_time

import pytest

from cortex.base.plain_text import plain_text


@pytest.mark.parametrize("rule", ["---", "|---|:-:|", " --- | ---", "- - ---", "\t-----\t", "|-|---"])
def test_a_rule_is_no_text(rule: str) -> None:
    assert plain_text(f"a\n{rule}\nb") == "a b"


def test_a_line_of_dashes_is_looked_at_once() -> None:
    """Each result of a search shows such a piece: eight hundred held the loop 0.3 s, eight thousand minutes."""
    begun_s = thread_time()
    assert plain_text("-" * 800 + "x") == "-" * 800 + "x"
    assert thread_time() - begun_s < 0.1
