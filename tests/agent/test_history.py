import pytest

from cortex.agent.history import SUMMARY_HEAD, cut, fitted, newest, view
from cortex.base.messages import Message, ToolCall, ToolResult, assistant, results, user
from cortex.base.tokens import count_message

CALL = ToolCall(id="c", name="task_list", arguments="{}")
GIVEN = ToolResult(call_id="c", name="task_list", text="milk")
EXCHANGES = (
    (user("one"), assistant("first")),
    (user("two"), assistant("", CALL), results(GIVEN), assistant("second")),
    (user("three"), assistant("third")),
)
PAST = tuple(message for exchange in EXCHANGES for message in exchange)


TURNS = tuple(enumerate(EXCHANGES, start=4))
SPOKEN = "they spoke of milk"
SUMMARY = user(f"{SUMMARY_HEAD}\n{SPOKEN}")


def ten(message: Message) -> int:
    return 10


def sized(*tokens: int, first: int = 1) -> list[tuple[int, tuple[Message, ...]]]:
    """Turns of one message each, worth so many tokens."""
    return [(ordinal, (user("x" * size),)) for ordinal, size in enumerate(tokens, start=first)]


def letters(message: Message) -> int:
    return len(message.text)


def test_without_a_summary_every_turn_is_seen_as_it_was_said() -> None:
    assert view(TURNS, summary="", upto=0) == PAST
    assert view(TURNS, summary="", upto=5) == PAST


def test_a_summary_stands_for_its_turns_and_the_next_one_follows_it_once() -> None:
    assert view(TURNS, summary=SPOKEN, upto=4) == (SUMMARY, *PAST[2:])
    assert view(TURNS, summary=SPOKEN, upto=5) == (SUMMARY, *PAST[6:])
    assert view(TURNS, summary=SPOKEN, upto=6) == (SUMMARY,)
    assert view(TURNS, summary=SPOKEN, upto=3) == (SUMMARY, *PAST)


@pytest.mark.parametrize(
    ("sizes", "upto"),
    [
        pytest.param([70], None, id="seven tenths of the window fit"),
        pytest.param([30, 40], None, id="seven tenths in two turns fit too"),
        pytest.param([900], None, id="one turn alone is never summarised"),
        pytest.param([30, 41], 1, id="the newest stays, however long"),
        pytest.param([41, 30], 1, id="of two turns the first goes"),
        pytest.param([20, 30, 40], 1, id="three tenths to the token are kept"),
        pytest.param([20, 31, 40], 2, id="one token more is not"),
        pytest.param([40, 10, 10, 10, 40], 1, id="as many as fit are kept"),
        pytest.param([40, 10, 11, 10, 40], 2, id="and no more"),
        pytest.param([1, 1, 1, 1, 90], 1, id="where all of the rest would fit, the first goes"),
    ],
)
def test_a_summary_is_cut_so_that_the_newest_turns_stay(sizes: list[int], upto: int | None) -> None:
    assert cut(sized(*sizes), 100, letters) == upto
    shifted = cut(sized(*sizes, first=8), 100, letters)
    assert shifted == (None if upto is None else upto + 7), "ordinals count on from turns that are summarised already"


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        pytest.param(60, [1, 2, 3], id="all of them"),
        pytest.param(59, [2, 3], id="the oldest goes first"),
        pytest.param(50, [2, 3], id="to the token"),
        pytest.param(49, [3], id="whole turns alone"),
        pytest.param(30, [3], id="the newest to the token"),
        pytest.param(1, [3], id="the newest in any case"),
    ],
)
def test_without_a_summary_the_newest_turns_that_fit_are_kept_in_order(limit: int, kept: list[int]) -> None:
    assert [ordinal for ordinal, _ in newest(sized(10, 20, 30), limit, letters)] == kept


def test_a_short_old_turn_does_not_come_back_behind_a_long_one() -> None:
    assert [ordinal for ordinal, _ in newest(sized(1, 50, 10), 20, letters)] == [3]
    assert newest([], 20, letters) == []


def test_a_past_that_fits_is_whole() -> None:
    assert fitted(PAST, 80, ten) == PAST


def test_the_oldest_exchanges_go_first_and_no_call_loses_its_result() -> None:
    assert fitted(PAST, 79, ten) == PAST[2:]
    assert fitted(PAST, 59, ten) == PAST[6:]
    assert fitted(PAST, 19, ten) == ()
    assert fitted(PAST, -5, ten) == ()


def test_a_summary_at_the_head_stays() -> None:
    assert fitted((SUMMARY, *PAST), 35, ten) == (SUMMARY, *PAST[6:])
    assert fitted((SUMMARY, *PAST), 10, ten) == (SUMMARY,)
    assert fitted((), 100, ten) == ()


def test_a_summary_that_is_longer_than_the_room_is_cut_and_leaves_room_for_the_newest() -> None:
    head = user(SUMMARY_HEAD + "\n" + "The boiler is old. " * 200)
    past = (head, user("one"), assistant("1"), user("two"), assistant("2"))
    kept = fitted(past, 300, count_message)
    assert kept[0].text.startswith(f"{SUMMARY_HEAD}\nThe boiler")
    assert sum(map(count_message, kept)) <= 300
    assert kept[1:] == past[1:]
    assert fitted(past, 290, count_message)[0] == kept[0], "the same while the room changes a little"
    assert fitted(past, 40, count_message)[-2:] == past[-2:]
