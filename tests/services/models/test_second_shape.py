"""The shapes of a request that was refused: each once, three in all, and nothing that a server would refuse anew."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cortex.base.errors import ProviderError, Rejection, RejectionKind
from cortex.base.messages import Message, Thinking, ToolCall, ToolResult, ToolSchema, Usage, assistant, results, user
from cortex.base.model import ModelEntry
from cortex.base.turn import Reply
from cortex.ports.loop import Delta, Request, StreamEnd
from cortex.services.models.asking import Link, ask
from cortex.services.models.learned import ModelFact
from cortex.services.models.second_shape import request_tokens, shortened, tool_names

M = ModelEntry(name="m", provider="x", max_output_tokens=400)
CALL = ToolCall(id="c1", name="task_create", arguments='{"title":"Milk"}')
PAST = (
    user("boiler " * 200),
    assistant("Noted."),
    user("milk"),
    assistant("", CALL),
    results(ToolResult(call_id="c1", name="task_create", text="done")),
    assistant("It is down."),
)
TOOLS = tuple(
    ToolSchema(name=name, description="It does what it does. " * 10, parameters={"type": "object"})
    for name in ("task_create", "task_list", "note_add", "tools_discover", "lamp_set")
)
REQUEST = Request(
    system="You are Cortex.", messages=(*PAST, user("and bread?")), tools=TOOLS, hints=(("lamp_set", 0.9),)
)


@dataclass
class Refusing:
    """A model that refuses its first requests, each for its reason."""

    reasons: list[Rejection]
    kind: str = "request"
    asked: list[Request] = field(default_factory=list)

    async def stream(self, request: Request) -> AsyncIterator[Delta | StreamEnd]:
        self.asked.append(request)
        if self.reasons:
            raise ProviderError("m: refused.", kind=self.kind, rejection=self.reasons.pop(0))
        yield StreamEnd(message=assistant("Yes."), usage=Usage(input_tokens=1), finish="stop")

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class Told:
    notices: list[str] = field(default_factory=list)
    learned: list[ModelFact] = field(default_factory=list)

    async def delta(self, kind: str, text: str, attempt: int) -> None:
        """Nobody watches."""

    async def notice(self, text: str) -> None:
        self.notices.append(text)

    async def learn(self, name: str, facts: Sequence[ModelFact]) -> None:
        self.learned += tuple(facts)

    async def ask(self, model: Refusing, request: Request = REQUEST, turn_from: int | None = len(PAST)) -> Reply:
        return await ask(
            [Link(entry=M, provider=model)], request, on_delta=self.delta, on_notice=self.notice, turn_from=turn_from,
            on_learned=self.learn,
        )  # fmt: skip


async def test_reasons_that_follow_one_another_are_met_one_by_one() -> None:
    model = Refusing(
        [Rejection(what="parameter", name="top_p"), Rejection(what="tools"), Rejection(what="output", output_tokens=90)]
    )
    told = Told()
    assert (await told.ask(model)).message is not None
    last = model.asked[-1]
    assert (set(last.without), len(last.tools), last.max_output_tokens) == ({"top_p"}, 0, 90)
    assert "[used task_create" in last.messages[3].text
    assert len(told.notices) == 3
    assert {(fact.what, fact.value) for fact in told.learned} == {
        ("parameter", "top_p"),
        ("tools", ""),
        ("max_output_tokens", "90"),
    }


async def test_three_shapes_are_all_and_what_was_only_guessed_teaches_nothing() -> None:
    model = Refusing([Rejection(what="parameter", name=name) for name in ("a_a", "b_b", "c_c", "d_d")])
    told = Told()
    reply = await told.ask(model)
    assert (reply.failure.startswith("m: refused."), len(model.asked), told.learned) == (True, 4, [])


async def test_a_short_request_that_was_refused_once_does_not_make_the_model_small_for_ever() -> None:
    short = Request(system="", messages=(user("boiler " * 1_000), assistant("Noted."), user("and bread?")))
    told = Told()
    assert (await told.ask(Refusing([Rejection(what="window")]), short, turn_from=2)).message is not None
    assert (len(told.notices), told.learned) == (1, [])
    long = replace(short, messages=(user("boiler " * 9_000), *short.messages[1:]))
    await told.ask(Refusing([Rejection(what="window")]), long, turn_from=2)
    assert [fact.what for fact in told.learned] == ["context_tokens"]


@pytest.mark.parametrize("what", ["window", "tools", "pictures", "schema", "ids", "order", "other"])
async def test_nothing_of_a_request_is_dropped_where_nothing_may_be(what: RejectionKind) -> None:
    model = Refusing([Rejection(what=what, window_tokens=700)] * 4)
    reply = await Told().ask(model, turn_from=None)
    assert reply.message is None or what in ("ids", "order")
    assert all(len(one.messages) >= 5 and one.tools == TOOLS for one in model.asked)


async def test_reasoning_that_is_not_taken_back_is_left_out_and_then_all_of_it_is_words() -> None:
    thought = Message(speaker="assistant", parts=(Thinking(text="Hm.", opaque={"x": 1}), *PAST[3].parts))
    request = Request(system="", messages=(PAST[0], thought, PAST[4], user("go on")), tools=TOOLS)
    model, told = Refusing([Rejection(what="thinking")] * 2), Told()
    assert (await told.ask(model, request, 3)).message is not None
    assert model.asked[1].without == {"thinking"}
    speakers = [message.speaker for message in model.asked[2].messages]
    assert speakers == ["user", "assistant", "user"]
    assert not any(message.calls for message in model.asked[2].messages)
    assert told.learned == [ModelFact(what="parameter", value="thinking")]


@pytest.mark.parametrize("kind", ["overloaded", "credit", "filtered", "model", "route"])
async def test_what_no_shape_mends_is_not_asked_again(kind: RejectionKind) -> None:
    model = Refusing([Rejection(what=kind)] * 2)
    assert (await Told().ask(model)).message is None
    assert len(model.asked) == 1


async def test_an_account_that_affords_a_shorter_answer_is_asked_for_it() -> None:
    model, told = Refusing([Rejection(what="credit", output_tokens=300)]), Told()
    assert (await told.ask(model)).message is not None
    assert (model.asked[1].max_output_tokens, told.learned) == (300, [])


async def test_another_persons_model_says_none_of_its_servers_words() -> None:
    entry = ModelEntry(name="m (from ada)", provider="x", owner_id="a", owner="ada")
    said = Rejection(what="window", said="secret words", window_tokens=10)
    reply = await ask(
        [Link(entry=entry, provider=Refusing([said]))], REQUEST, on_delta=Told().delta, on_notice=Told().notice,
        turn_from=len(PAST),
    )  # fmt: skip
    assert ("secret" in reply.failure, "longer than" in reply.failure) == (False, True)


@given(
    window=st.integers(150, 3_000), scale=st.floats(1.0, 1.6), name=st.sampled_from(["shorter", "few tools", "barest"])
)
def test_a_shortened_request_goes_in_and_parts_no_call_from_its_result(window: int, scale: float, name: str) -> None:
    shorter = shortened(REQUEST, len(PAST), M, window, scale, name)
    if shorter is None:
        assert name != "barest" or window < 400
        return
    assert request_tokens(shorter) * scale + (shorter.max_output_tokens or 0) <= window + 1
    assert shorter.messages[-1] == REQUEST.messages[-1]
    asked = {call.id for message in shorter.messages for call in message.calls}
    told = {p.call_id for message in shorter.messages for p in message.parts if isinstance(p, ToolResult)}
    assert asked == told
    assert not asked or shorter.tools, "calls without a declared tool are words"


def test_of_the_tools_those_stay_that_lead_to_others_and_the_likeliest() -> None:
    kept = [
        [tool.name for tool in found.tools]
        for window in range(500, 900, 20)
        if (found := shortened(REQUEST, len(PAST), M, window, 1.0, "few tools")) is not None
    ]
    assert ["tools_discover"] in kept
    assert ["tools_discover", "lamp_set"] in kept
    assert all("tools_discover" in one for one in kept if one)


@pytest.mark.parametrize(
    ("told", "names"),
    [
        ("tools[1]", ("task_list",)),
        ("note_add", ("note_add",)),
        ("tools[1],tools[4],tools[99]", ("task_list", "lamp_set")),
        ("nobody", ()),
        ("", ()),
    ],
)
def test_a_tool_is_found_by_its_name_or_place(told: str, names: tuple[str, ...]) -> None:
    assert tool_names(told, TOOLS) == names
