"""A skill's file: what it says, and a clear word for each slip."""

import pytest

from cortex.base.errors import UserError
from cortex.base.skill import TEXT_CHARS_MAX, Skill, skill_of

GOOD = """---
title: Writing  invoices
description: "How we number them: always"
phrases: [bill a customer, invoice for]
tools:
  - file_write
---

1. Number them.
"""


def test_a_file_says_what_it_is_called_when_it_is_wanted_and_how_it_is_done() -> None:
    assert skill_of("invoices", GOOD) == (
        Skill(
            name="invoices",
            title="Writing  invoices",  # a text stays as it came; only its line for a model is tidied
            description="How we number them: always",
            phrases=("bill a customer", "invoice for"),
            tools=("file_write",),
        ),
        "1. Number them.",
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "must begin with ---"),
        ("Just words", "must begin with ---"),
        ("---\ntitle: A\ndescription: B\n", "never closed"),
        ("---\ntitle A\n---\nBody", "line 2: 'title A' is not `key: value`"),
        ("---\ntitle: A\n---\nBody", "'description' is missing"),
        ("---\ntitle:\ndescription: B\n---\nBody", "'title' is missing"),
        ("---\ntitle: [A]\ndescription: B\n---\nBody", "'title' must be text; put it into quotes"),
        ("---\ntitle: A\ndescription: B\n---\n\n", "the text below"),
        ("---\ntitle: A\ndescription: B\nauthor: C\n---\nBody", "unknown key 'author'"),
        ("---\ntitle: A\ndescription: B\ntools: [a, '']\n---\nBody", "'tools' must be a list"),
        (f"---\ntitle: {'A' * 81}\ndescription: B\n---\nBody", "'title' has 1 to 80 characters"),
        (f"---\ntitle: A\ndescription: {'B' * 1_025}\n---\nBody", "'description' has 1 to 1024 characters"),
        (f"---\ntitle: A\ndescription: B\nphrases: [{'a, ' * 21}]\n---\nBody", "'phrases' holds at most 20"),
        (f"---\ntitle: A\ndescription: B\n---\n{'x' * TEXT_CHARS_MAX}", "at most 8,000 characters"),
    ],
)
def test_each_slip_is_named_with_the_file(text: str, told: str) -> None:
    with pytest.raises(UserError) as refused:
        skill_of("x", text)
    assert refused.value.message.startswith("skills/x.md")
    assert told in refused.value.message


def test_one_bare_word_is_a_list_of_one() -> None:
    skill, _ = skill_of("x", "---\ntitle: A\ndescription: B\ntools: task_list\n---\nBody")
    assert skill.tools == ("task_list",)


@pytest.mark.parametrize("word", ["yes", "no", "true", "null", "~", "2026-01-01", "1e3", "0x10", "12:30", "2026", "-5"])
def test_what_looks_like_another_value_is_a_text(word: str) -> None:
    skill, _ = skill_of("x", f"---\ntitle: {word}\ndescription: {word} # said\n---\nBody")
    assert (skill.title, skill.description) == (word, word)


def test_a_body_is_kept_to_the_last_sign() -> None:
    body = "    indented\n\u2028\x0c\x85 and so on  \n\n"
    assert skill_of("x", f"---\ntitle: A\ndescription: B\n---\n\n{body}\n")[1] == body
