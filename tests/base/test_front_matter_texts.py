"""Front matter and YAML: what we write is read back, and what we read ourselves YAML reads the same."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cortex.base.front_matter import bare, front_matter, joined, legacy, quoted, simple, split
from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.yaml_texts import texts_of

ODD = ["\x85", "\u2028", "\u2029", "\ufeff", "\x00", "\x1b", "\x7f", "\ufffe", "\U0001f389", '"', "'", "\\", ": ", " #"]
ODD += [
    "- ",
    "[",
    "]",
    "{",
    "&a",
    "*a",
    "!t",
    "|",
    ">",
    "%",
    "@",
    "`",
    "---",
    "...",
    "<<",
    "yes",
    "1e3",
    "\t",
    "\r",
    "\n",
]
ANY = st.text() | st.lists(st.sampled_from([*ODD, " ", "a", "C # code", ":", "#", ",", "-"]), max_size=8).map("".join)


@given(ANY, st.lists(ANY, max_size=3), ANY)
@example("Summarise PR #12 and C # code", ["About C # code", "a, b"], " x \n\n")
def test_every_text_that_is_written_is_read_back_by_us_and_by_yaml(title: str, words: list[str], body: str) -> None:
    keys = f"title: {quoted(title)}\nwords: [{', '.join(map(quoted, words))}]\nname: {bare(title)}\n"
    head, found = split(joined(keys, body), "x.md")
    assert found == body
    assert head is not None
    assert simple(head) == {"title": title, "words": tuple(words), "name": title}
    assert texts_of(head) == {"title": title, "words": words, "name": title}


def test_dashes_within_a_text_do_not_end_the_front_matter() -> None:
    head = "name: n\ndescription: |\n  first\n  ---\n  4711"
    assert split(f"---\n{head}\n---\nbody\n ---\n", "x.md") == (head, "body\n ---")
    assert split("---\nname: n\n ---\nbody", "x.md") == ("name: n", "body")


SIGNS = ["a", "B 1", " ", "  ", ":", ": ", "#", " #", "-", "- ", ",", "[", "]", "'", '"', "\\", "&", "*", "!", "|", ">"]
SIGNS += [
    "\n",
    "\nkey: ",
    "\n- ",
    "\n  - ",
    "\n  ",
    "\nother:",
    "yes",
    "~",
    "\t",
    "\u2028",
    "\r\n",
    "%",
    "{",
    "}",
    "?",
    "\\n",
]
HEADS = st.lists(st.sampled_from(SIGNS), max_size=12).map(lambda parts: "k: " + "".join(parts))


@given(HEADS)
def test_what_is_read_here_yaml_reads_the_same(head: str) -> None:
    found = simple(head)
    if found is not None:
        assert texts_of(head) == {key: list(one) if isinstance(one, tuple) else one for key, one in found.items()}


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("a: &x 1\nb: *x", "anchors"),
        ("a: !!python/object:os.system x", "tag"),
        ("<<: {a: 1}", "merging"),
        ("a: 1\na: 2", "twice"),
        ("a: " + "[" * 5_000, "nested deeper"),
        ("a: [" + "1," * 3_000 + "1]", "far more"),
        ("? [a]\n: b", "a key is a text"),
        ("a: 1\n--- \nb: 2", "second document"),
        ("- a", "key: value"),
        ("a: [b: c", "Line 3"),
        ('a: "\\ud800"', "half of a sign|invalid Unicode"),  # by Python's parser, and by the one in C
        ("a: " + "x" * 20_001, "20,000 are read"),
        ("a\x01b: c", "no YAML"),
    ],
)
def test_yaml_that_is_not_read_says_where_and_why(head: str, told: str) -> None:
    with pytest.raises(UnreadableError, match=told):
        texts_of(head)


def test_a_role_of_before_is_read_as_it_was() -> None:
    head = "tools: [web, 'tasks']\nmodels: [a: b]\nmax_rounds: 7 # few\nmode: 'chat'\ncore:\n  - x\n"
    assert front_matter(f"---\n{head}---\n\n Hi. \n", "x.md") == (
        {"tools": ("web", "tasks"), "models": ("a: b",), "max_rounds": 7, "mode": "chat", "core": ("x",)},
        "Hi.",
    )
    assert legacy('title: "A # b"', "x.md") == {"title": '"A'}, "of earlier versions, where YAML refuses the whole"
