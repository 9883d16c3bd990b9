import pytest

from cortex.selection import talk, text


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("What\u2019s  ON my list?", ("what's", "on", "my", "list")),
        ("\uff34\uff21\uff33\uff2b list", ("task", "list")),
        ("STRASSE straße", ("strasse", "strasse")),
        ("to-do", ("to", "do")),
        ("", ()),
    ],
    ids=["quotes", "full width", "folded", "hyphen", "blank"],
)
def test_words_are_normalised(said: str, words: tuple[str, ...]) -> None:
    assert text.words(said) == words


@pytest.mark.parametrize(
    ("one", "other"),
    [("lights", "light"), ("groceries", "grocery"), ("running", "run"), ("added", "add"), ("searching", "search")],
)
def test_forms_of_a_word_meet(one: str, other: str) -> None:
    assert text.stem(one) == text.stem(other)


def test_addresses_files_and_code_count_by_their_shape() -> None:
    assert text.URL in text.terms("read https://example.com/light")
    assert "light" not in text.terms("read https://example.com/light")
    assert text.FILE in text.terms("show file notes.md")
    assert text.CODE in text.terms("run `df -h` here")


@pytest.mark.parametrize("said", ["hello", "Hi there!", "thanks a lot", "", "  ", "guten Morgen", "merci"])
def test_small_talk_is_known(said: str) -> None:
    assert talk.is_small_talk(said)


@pytest.mark.parametrize("said", ["lights off", "what's on my list", "hello, add milk to my list", "weather"])
def test_a_request_is_no_small_talk(said: str) -> None:
    assert not talk.is_small_talk(said)


@pytest.mark.parametrize("said", ["yes", "yes, please", "go ahead", "ok do it", "ja bitte", "sí claro"])
def test_a_yes_is_known(said: str) -> None:
    assert talk.is_assent(said)


@pytest.mark.parametrize("said", ["no", "yesterday I went out", "please add milk to my list"])
def test_other_words_are_no_yes(said: str) -> None:
    assert not talk.is_assent(said)
