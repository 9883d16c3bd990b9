from cortex.agent.history import SUMMARY_HEAD, fitted
from cortex.base.messages import Message, ToolCall, ToolResult, assistant, results, user

CALL = ToolCall(id="c", name="task_list", arguments="{}")
GIVEN = ToolResult(call_id="c", name="task_list", text="milk")
EXCHANGES = (
    (user("one"), assistant("first")),
    (user("two"), assistant("", CALL), results(GIVEN), assistant("second")),
    (user("three"), assistant("third")),
)
PAST = tuple(message for exchange in EXCHANGES for message in exchange)


def ten(message: Message) -> int:
    return 10


def test_a_past_that_fits_is_whole() -> None:
    assert fitted(PAST, 80, ten) == PAST


def test_the_oldest_exchanges_go_first_and_no_call_loses_its_result() -> None:
    assert fitted(PAST, 79, ten) == PAST[2:]
    assert fitted(PAST, 59, ten) == PAST[6:]
    assert fitted(PAST, 19, ten) == ()
    assert fitted(PAST, -5, ten) == ()


def test_a_summary_at_the_head_stays() -> None:
    summary = user(f"{SUMMARY_HEAD}\nthey spoke of milk")
    assert fitted((summary, *PAST), 35, ten) == (summary, *PAST[6:])
    assert fitted((summary, *PAST), 10, ten) == (summary,)
    assert fitted((), 100, ten) == ()
