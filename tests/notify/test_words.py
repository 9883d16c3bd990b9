"""What may be said on a channel: cuts, clean text, private notices."""

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cortex.notify.words import clean, cut, json_bytes, label, one_line, shown, utf8_bytes
from cortex.ports.channels import PRIVATE_TEXT, PRIVATE_TITLE, Action, Notice
from tests.notify.told import PLAIN, PRIVATE

ANY_TEXT = st.text(st.characters(exclude_categories=()))
GRAPHEMES = st.lists(st.sampled_from(["a", "ä", "e\u0301", "🏳️‍🌈", "👨‍👩‍👧‍👦", "🇩🇪", '"', "\n", "語", "नि"])).map(
    "".join
)


@given(text=GRAPHEMES, most=st.integers(0, 80))
def test_a_cut_fits_and_ends_at_a_whole_character(text: str, most: int) -> None:
    short = cut(text, most)
    assert utf8_bytes(short) <= most
    characters = regex.findall(r"\X", text)
    wholes = {"".join(characters[:count]).rstrip() + "…" for count in range(len(characters))} | {text, ""}
    assert short in wholes


@given(text=ANY_TEXT, most=st.integers(0, 80))
def test_a_cut_counts_what_json_makes_of_it(text: str, most: int) -> None:
    assert json_bytes(cut(clean(text), most, json_bytes)) <= most


@given(ANY_TEXT)
def test_a_clean_text_is_valid_and_shows_what_it_is(text: str) -> None:
    tidy = clean(text)
    assert tidy.encode("utf-8").decode("utf-8") == tidy
    assert not set(tidy) & {"\r", "\x00", "\x1b", "\x7f", "\x85", "\u202e", "\u2066"}
    assert "\n" not in one_line(text)


def test_a_private_notice_says_only_that_there_is_something() -> None:
    said = shown(PRIVATE)
    assert (said.title, said.text, said.kind) == (PRIVATE_TITLE, PRIVATE_TEXT, "")
    assert [label(action) for action in said.actions] == ["Done", "Snooze"]
    assert said.path == PLAIN.path


def test_an_open_notice_keeps_its_words_in_one_line_of_title() -> None:
    said = shown(replace(PLAIN, title="Water\r\nthe \x07plants", text=" The fern\u202e first. "))
    assert (said.title, said.text) == ("Water the plants", "The fern first.")
    assert [label(action) for action in said.actions] == ["Done", "Snooze 10 min"]


def test_an_empty_title_gets_the_house_s_name() -> None:
    assert shown(replace(PLAIN, title=" \n ")).title == PRIVATE_TITLE


@pytest.mark.parametrize("path", ["https://evil.example/", "//evil.example", "reminders", "/a\\b", "/a b", "/a\nb", ""])
def test_a_link_leads_to_a_page_of_ours(path: str) -> None:
    with pytest.raises(ValueError, match="a page of ours"):
        Notice(id="1", kind="test", title="t", text="", path=path)
    with pytest.raises(ValueError, match="a page of ours"):
        Action(kind="ack", path=path)
