from itertools import pairwise

import pytest
from msgspec.structs import replace

from cortex.agent.react import LoopPorts, run_turn
from cortex.agent.toolless import as_text
from cortex.base.errors import DatabaseUnavailable
from cortex.base.messages import Message, ToolResult, assistant, results, user
from cortex.base.turn import Outcome, Performed, PlainCommand, Reply, Turn
from tests.plain_world import TURN, PlainPlanner, PlainStory, ScriptedThinker, TableHands, call, schema


class Scene:
    """One turn over plain ports."""

    def __init__(self, *script: Message | Reply) -> None:
        self.history, self.tool_runner = PlainStory(), TableHands()
        self.planner = PlainPlanner(tools=(schema("task_create"),), tail="[Sat 2026-11-21]")
        self.model_caller = ScriptedThinker(script=list(script))

    async def run(self, turn: Turn = TURN) -> Outcome:
        world = LoopPorts(
            history=self.history, planner=self.planner, model_caller=self.model_caller, tool_runner=self.tool_runner
        )
        return await run_turn(turn, world)


async def test_an_answer_without_calls_ends_the_turn_after_one_round() -> None:
    scene = Scene(assistant("Good morning."))
    outcome = await scene.run()
    assert (outcome.state, outcome.text, outcome.rounds) == ("done", "Good morning.", 1)


async def test_every_request_extends_the_one_before() -> None:
    scene = Scene(
        assistant("", call("task_create")), assistant("", call("task_list", wire_id="w2")), assistant("Done.")
    )
    await scene.run()
    requests = [messages for _, messages in scene.model_caller.asked]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(requests))
    assert requests[0][0].text == "add milk\n\n[Sat 2026-11-21]"


async def test_neighbouring_reads_run_side_by_side_and_writes_alone_in_order() -> None:
    scene = Scene(assistant("", *(call(n, wire_id=n) for n in ("read_a", "read_b", "write_a", "write_b"))))
    scene.tool_runner.reads = frozenset({"read_a", "read_b"})
    outcome = await scene.run()
    assert scene.tool_runner.most_at_once == 2
    assert scene.tool_runner.trail[4:] == ["perform read_a", "perform read_b", "perform write_a", "perform write_b"]
    names = [part.name for part in outcome.messages[2].parts if isinstance(part, ToolResult)]
    assert names == ["read_a", "read_b", "write_a", "write_b"]


async def test_what_a_call_raises_ends_the_turn_in_its_own_words() -> None:
    class Away(TableHands):
        async def perform(self, *_: object) -> Performed:
            raise DatabaseUnavailable("The database does not answer.")

    scene = Scene(assistant("", call("task_create")))
    scene.tool_runner = Away()
    with pytest.raises(DatabaseUnavailable):
        await scene.run()


async def test_all_cards_of_a_round_are_up_before_the_first_wait() -> None:
    scene = Scene(assistant("", call("shell_exec", wire_id="a"), call("http_post", wire_id="b")))
    scene.tool_runner.asks = {"shell_exec": "denied", "http_post": "allowed"}
    await scene.run()
    assert scene.tool_runner.trail == [
        "decide shell_exec",
        "decide http_post",
        "wait shell_exec",
        "wait http_post",
        "perform shell_exec denied",
        "perform http_post allowed",
    ]


async def test_the_last_of_n_rounds_goes_out_without_tools_and_answers_in_words() -> None:
    scene = Scene(
        assistant("", call("a", '{"n":1}')), assistant("", call("a", '{"n":2}')), assistant("So far so good.")
    )
    outcome = await scene.run(replace(TURN, max_rounds=3))
    assert [need.is_last for need in scene.planner.needs] == [False, False, True]
    assert scene.model_caller.asked[-1][0].tools == ()
    assert (outcome.state, outcome.text) == ("done", "So far so good.")


async def test_calls_in_the_last_round_are_refused_and_the_turn_ends_with_words() -> None:
    scene = Scene(assistant("", call("a", '{"n":1}')), assistant("", call("a", '{"n":2}')))
    outcome = await scene.run(replace(TURN, max_rounds=2))
    assert outcome.state == "out_of_rounds"
    assert "stopped after 2 rounds" in outcome.text
    assert scene.tool_runner.trail.count("perform a") == 1
    assert scene.history.said[-1][0] == "answer"


async def test_the_third_identical_call_ends_the_turn_with_a_text() -> None:
    scene = Scene(*(assistant("", call("a")) for _ in range(9)))
    outcome = await scene.run(replace(TURN, max_rounds=9))
    assert outcome.rounds == 3
    assert ("the same thing" in outcome.text, "3 times" in outcome.text) == (True, True)


async def test_the_third_equal_error_ends_the_turn_whatever_the_arguments() -> None:
    scene = Scene(*(assistant("", call("a", f'{{"n":{n}}}')) for n in range(9)))
    scene.tool_runner.failing = frozenset({"a"})
    scene.tool_runner.answers = {"a": "no such list"}
    outcome = await scene.run(replace(TURN, max_rounds=9))
    assert outcome.rounds == 3
    assert "failed 3 times" in outcome.text
    assert "no such list" in outcome.text


async def test_two_discovery_rounds_are_not_counted_and_what_they_found_reaches_the_planner() -> None:
    found = assistant("", call("tools_discover", '{"query":"x"}'))
    again = assistant("", call("tools_discover", '{"query":"y"}'))
    scene = Scene(found, again, assistant("", call("git_log")), assistant("Here."))
    scene.tool_runner.free = frozenset({"tools_discover"})
    scene.tool_runner.found = {"tools_discover": ("git_log",)}
    outcome = await scene.run(replace(TURN, max_rounds=2))
    assert [need.is_last for need in scene.planner.needs] == [False, False, False, True]
    assert scene.planner.needs[1].found == ("git_log",)
    assert (outcome.state, outcome.rounds) == ("done", 4)


async def test_an_answer_that_lacks_a_tool_gets_one_extra_round_with_it() -> None:
    scene = Scene(assistant("I don't have a tool to read the log."), assistant("", call("git_log")), assistant("Here."))
    scene.planner.revealed_by_missing = ("git_log",)
    outcome = await scene.run(replace(TURN, max_rounds=2))
    assert scene.model_caller.asked[1][0].added == ("git_log",)
    assert outcome.text == "Here."
    ((kind, notice),) = scene.history.said
    assert (kind, notice.endswith(" git_log.")) == ("notice", True)


LACKS_FLYING = "I don't have a tool to fly."
AWAY = "The model could not be reached."
SPENT = "I stopped: the budget is used up."
LACKING = "Sorry, I don't have access to your repository."


@pytest.mark.parametrize(
    ("turn", "script"),
    [
        (TURN, [assistant("It rained on Monday. You cannot walk there without boots.")]),
        (TURN, [assistant("", call("git_status")), assistant(LACKING)]),
        (TURN, [assistant("")]),
        (replace(TURN, mode="chat"), [assistant(LACKING)]),
        (replace(TURN, mode="all"), [assistant(LACKING)]),
        (replace(TURN, max_rounds=1), [assistant(LACKING)]),
        (TURN, [Reply(message=assistant(LACKING), model="offline")]),
    ],
    ids=["an answer", "after a call", "no words", "chat only", "all tools", "the last round", "the offline model"],
)
async def test_no_answer_is_asked_for_again(turn: Turn, script: list[Message | Reply]) -> None:
    scene = Scene(*script)
    scene.planner.revealed_by_missing = ("git_log",)
    await scene.run(turn)
    assert [need.missing for need in scene.planner.needs] == [""] * len(script)


async def test_a_search_in_vain_or_a_name_that_nobody_knows_is_no_use_of_a_tool() -> None:
    scene = Scene(assistant("", call("tools_discover")), assistant("", call("ghost")), assistant(LACKING))
    scene.tool_runner.free, scene.tool_runner.unknown = frozenset({"tools_discover"}), frozenset({"ghost"})
    scene.planner.revealed_by_missing = ("git_log",)
    await scene.run()
    assert [bool(need.missing) for need in scene.planner.needs] == [False, False, False, True]


async def test_an_answer_is_asked_for_again_once_a_message() -> None:
    scene = Scene(assistant(LACKING), assistant("", call("git_log")), assistant(LACKING), assistant(LACKING))
    scene.planner.revealed_by_missing = ("git_log",)
    scene.history.steering = ["and the branches?"]
    outcome = await scene.run()
    assert [bool(need.missing) for need in scene.planner.needs] == [False, True, False, True]
    assert scene.planner.needs[-1].heard == ("and the branches?",)
    assert outcome.text == LACKING


async def test_an_answer_stands_when_no_model_answers_the_second_time() -> None:
    scene = Scene(assistant(LACKING), Reply(failure="m: it is away. You can try again."))
    scene.planner.revealed_by_missing = ("git_log",)
    outcome = await scene.run()
    assert (outcome.state, outcome.text) == ("done", LACKING)
    assert [message.speaker for message in outcome.messages] == ["user", "assistant", "user", "assistant"]
    ((kind, notice),) = scene.history.said[1:]
    assert (kind, "is away" in notice) == ("notice", True)


async def test_an_answer_that_lacks_a_tool_stands_when_the_planner_finds_none() -> None:
    scene = Scene(assistant(LACKS_FLYING))
    outcome = await scene.run()
    assert (outcome.rounds, outcome.text) == (1, LACKS_FLYING)


async def test_a_message_sent_meanwhile_steers_at_the_next_tool_boundary() -> None:
    scene = Scene(assistant("", call("a")), assistant("Milk and eggs."))
    scene.history.steering = ["and eggs"]
    await scene.run()
    assert scene.model_caller.asked[1][1][-1] == user("and eggs")
    assert [(need.heard, need.heard_at) for need in scene.planner.needs] == [((), 0), (("and eggs",), 2)]


async def test_a_message_sent_meanwhile_waits_when_the_last_round_comes() -> None:
    scene = Scene(assistant("", call("a")), assistant("Milk."))
    scene.history.steering = ["and eggs"]
    outcome = await scene.run(replace(TURN, max_rounds=2))
    assert outcome.text == "Milk."
    assert scene.history.steering == ["and eggs"]


async def test_a_failed_model_ends_the_turn_as_failed_with_its_words() -> None:
    scene = Scene(Reply(failure=AWAY, failure_kind="connection"))
    outcome = await scene.run()
    assert (outcome.state, outcome.text) == ("failed", AWAY)
    assert outcome.messages[0].speaker == "user"


async def test_a_spent_budget_ends_the_turn_in_words_not_in_an_error() -> None:
    scene = Scene(assistant("", call("a")), Reply(failure=SPENT, failure_kind="budget"))
    outcome = await scene.run()
    assert (outcome.state, outcome.text) == ("done", SPENT)
    assert scene.history.said == [("answer", SPENT)]
    assert outcome.messages[-1] == assistant(SPENT)


async def test_past_calls_are_told_in_words_when_no_tool_is_declared() -> None:
    told = as_text(
        (
            user("add milk"),
            assistant("", call("task_create", '{"title":"milk"}')),
            results(ToolResult(call_id="w1", name="task_create", text="Created.")),
        )
    )
    assert [message.speaker for message in told] == ["user", "assistant", "user"]
    assert all(not message.calls for message in told)
    assert "Created." in told[2].text


async def test_a_request_in_words_never_ends_with_the_models_own() -> None:
    scene = Scene(assistant(LACKING), assistant("Here."))
    scene.planner.revealed_by_missing = ("git_log",)
    await scene.run()
    told = as_text(scene.model_caller.asked[1][1])
    assert [message.speaker for message in told] == ["user", "assistant", "user"]
    assert "git_log" not in told[2].text


class PlainReader:
    """Reads one order in every message."""

    async def command(self, turn: Turn) -> PlainCommand:
        return PlainCommand(
            calls=(call("one"), call("two", wire_id="w2"), call("three", wire_id="w3")), done="Done so."
        )


async def test_a_plain_command_asks_no_model_and_stops_at_the_first_call_that_fails() -> None:
    hands = TableHands(failing=frozenset({"two"}))
    history, planner, thinker = PlainStory(), PlainPlanner(), ScriptedThinker(script=[])
    ports = LoopPorts(history=history, planner=planner, model_caller=thinker, tool_runner=hands, commands=PlainReader())
    outcome = await run_turn(replace(TURN, is_order=True), ports)
    assert (thinker.asked, planner.needs, outcome.state, outcome.rounds) == ([], [], "done", 0)
    assert [kind for kind, _ in history.said] == ["answer", "notice"]
    assert "Not done: " in outcome.text
    results_of = [part for part in outcome.messages[2].parts if isinstance(part, ToolResult)]
    assert [(part.call_id, part.is_error) for part in results_of] == [("w1", False), ("w2", True), ("w3", True)]
    assert "perform three" not in hands.trail
