"""Answers that repeat themselves without end are seen; answers that only look alike are left alone."""

from itertools import cycle, islice, product
from pathlib import Path

import pytest

from cortex.providers.runaway import Runaway

PARAGRAPH = (
    "I am a helpful assistant, and I am here to answer what you ask. Please tell me what you would like to know, and I "
    "will do my best to find it. If there is anything else that you want, only say so, and I will look at once. "
)
REASONS = (
    "The first thing to look at is the weather of the day.\n",
    "Then we should ask who of the family comes along.\n",
    "After that the food has to be bought in the village.\n",
    "It may be wise to leave the house before the rain.\n",
)


def kept(text: str, asked: str = "", *, cut: int = 5) -> int | None:
    """How much is kept of what runs away, None where it does not."""
    guard = Runaway(asked)
    for at in range(0, len(text), cut):
        if guard.feed(text[at : at + cut]):
            return guard.kept
    return None


@pytest.mark.parametrize("cut", [1, 5, 4_000])
@pytest.mark.parametrize(
    "round_",
    [
        "Hello! ",
        "Hello! How can I help you today?\n\n",
        "the ",
        "I am sorry, but I cannot do that.\n",
        PARAGRAPH,
        "| a | b | c |\n",
        "你好我能帮你什么吗。",
        "wait, let me think about that again, ",
    ],
    ids=["word", "greeting", "the", "sentence", "paragraph", "row", "chinese", "comma"],
)
def test_the_same_again_and_again_is_stopped_and_kept_once_or_twice(round_: str, cut: int) -> None:
    start = "Good morning. Here is what I found for you.\n"
    upto = kept(start + round_ * (6_000 // len(round_)), cut=cut)
    assert upto is not None
    assert len(start) + len(round_) <= upto <= len(start) + max(3 * len(round_), 60)


def test_it_is_stopped_early() -> None:
    assert kept("Hello! " * 160) is not None
    text = "Good morning. I'm glad to have you here. " + "I'm glad to have you. " * 100
    assert text[: kept(text) or 0].count("you.") in (2, 3)
    assert text[: kept(text) or 0].rstrip().endswith("you.")
    assert kept(PARAGRAPH * 13) is not None


@pytest.mark.parametrize("sign", ["-", " ", "\n", ".", "ab", "=\n", "\u200b", "0,"])
def test_signs_without_end_are_stopped(sign: str) -> None:
    assert kept("Here is the table:\n" + sign * (8_000 // len(sign))) is not None


def test_the_same_sentences_in_another_order_are_stopped() -> None:
    rounds = islice(cycle(["0123", "0213", "1032", "3210", "2301"]), 80)
    text = "Let us plan the walk of Sunday.\n" + "".join(REASONS[int(at)] for each in rounds for at in each)
    upto = kept(text)
    assert upto is not None
    assert text[:upto].count(REASONS[0]) in (2, 3)


def test_a_loop_in_code_is_stopped_too() -> None:
    assert kept("```python\n" + "    print('hello')\n" * 400) is not None


def test_a_number_of_things_that_was_asked_for_is_given() -> None:
    lines = "I will be on time.\n" * 100
    assert kept(lines) is not None
    assert kept(lines, "Write “I will be on time” 100 times.") is None
    assert kept("0,0,0,0,0,0,0,0\n" * 100, "a csv of zeros, 100 rows") is None
    assert kept("Hello! " * 3_000, "Say it 100 times.") is not None
    assert kept(lines, "hello, it is 10:30 on 2026-11-27") is not None


SONG = "When the night is over, and the day has begun,\nwe go down to the river, we go down to the sun.\n\n"
LONG_ANSWERS = {
    "letters": "a" * 200,
    "rule": "Title\n" + "=" * 400 + "\n",
    "table": "| day | what |\n| --- | --- |\n" + "".join(f"| {day} | nothing planned, rest |\n" for day in range(400)),
    "wide table": "|" + "---|" * 60 + "\n" + ("|" + "   |" * 60 + "\n") * 3,
    "list": "".join(f"{n}. Take {n} eggs and stir them.\n" for n in range(300)),
    "json": "[" + ", ".join(f'{{"id": {n}, "name": "Lamp {n}", "on": false}}' for n in range(300)) + "]",
    "numbers": "".join(str(n * n) for n in range(2_000)),
    "third": "0." + "142857" * 100,
    "song": "".join(f"Verse {n}\nThis is the verse with number {n} of the song.\n{SONG}" for n in range(12)),
    "refrain": SONG * 6,
    "code": "".join(
        f"def test_{n}() -> None:\n    value = make({n})\n    assert value.is_good\n    assert value.is_done\n\n"
        for n in range(200)
    ),
    "zeros": "```csv\n" + "0,0,0,0,0,0,0,0\n" * 60 + "```\n",
    "art": "```\n" + "+" + "-" * 60 + "+\n" + ("|" + " " * 60 + "|\n") * 20 + "+" + "-" * 60 + "+\n```\n",
    "bytes": "```c\nuint8_t map[] = {\n" + "    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,\n" * 32 + "};\n```\n",
    "chess": "```\n" + "\n".join("r n b q k b n r" if y in (0, 7) else ". . . . . . . ." for y in range(8)) + "\n```\n",
    "truth": "".join(f"| {' | '.join(bits)} |\n" for bits in product("01", repeat=8)),
    "checklist": "- [ ] ____________\n" * 30,
    "days": "".join(f"Day {n}: Rest and drink plenty of water.\n" for n in range(1, 200)),
    "binary": "".join(f"{n:016b}\n" for n in range(600)),
    "haha": "ha" * 150,
}


@pytest.mark.parametrize("name", LONG_ANSWERS)
def test_what_only_looks_alike_goes_on(name: str) -> None:
    assert kept(LONG_ANSWERS[name]) is None
    assert kept("Here it is:\n\n" + LONG_ANSWERS[name] + "\nThat is all.", cut=64) is None


def test_none_of_our_own_texts_runs_away() -> None:
    root = Path(__file__).parents[2]
    files = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("cortex/**/*.py"), *root.glob("tests/web/*.py")]
    assert len(files) > 100
    assert [str(file) for file in files if kept(file.read_text(), cut=500) is not None] == []


def test_memory_and_work_are_bounded() -> None:
    guard = Runaway("write 500 of them")
    for n in range(40_000):
        assert not guard.feed(f"The line with the number {n} says something new.\n")
    assert len(guard._tail) <= 12_000
    assert len(guard._seen) <= 4_096


def test_a_list_that_says_the_same_of_each_of_its_items_goes_on() -> None:
    names = ["".join(sign) for sign in product("bdfklmnprst", "aeiou", "lmnrst")][:120]
    same = "No problems were found in this file, it may stay as it is."
    assert kept("".join(f"**{name}.py**\n{same}\n\n" for name in names)) is None
    assert kept("".join(f"Attempt {at}.\n{same}\n\n" for at in range(120))) is not None, "a number alone is nothing new"
    assert kept(f"**a.py**\n{same}\n\n" * 120) is not None
