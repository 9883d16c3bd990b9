import pytest

from cortex.base.errors import UserError
from cortex.base.front_matter import front_matter


def test_reads_keys_and_body() -> None:
    lists = "tools: [web, 'tasks']\ncore:\n- a\n- b\n"
    text = f"---\n{lists}max_rounds: 7\nbudget_usd: 0.5\nadmin_only: true\nmodels:\n---\n\nHi.\n"
    keys, body = front_matter(text, "x.md")
    assert keys == {
        "tools": ("web", "tasks"),
        "core": ("a", "b"),
        "max_rounds": 7,
        "budget_usd": 0.5,
        "admin_only": True,
        "models": None,
    }
    assert body == "Hi."


def test_a_file_without_front_matter_is_all_body() -> None:
    assert front_matter("Just words.\n---\nmore", "x.md") == ({}, "Just words.\n---\nmore")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("---\ntools: [a]\n", "never closed"),
        ("---\nnonsense\n---\n", "line 2"),
        ("---\ntools: [a\n---\n", "must end with"),
        ("---\na: 1\na: 2\n---\n", "twice"),
        ("---\n- a\n---\n", "a list item without a list"),
    ],
)
def test_a_slip_is_named(text: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        front_matter(text, "x.md")
