import json

import pytest
from msgspec.structs import replace

from cortex.base.errors import ConfigError, NotFound, ProviderError, Throttled
from cortex.base.messages import Message, Opaque, Text, Thinking, ToolCall, ToolResult, ToolSchema, Usage
from cortex.base.turn import Decision, Outcome, Past, Performed, Reply, RoundPlan
from cortex.engine.durable import decode, decode_error, encode, encode_error
from cortex.ports.stored_names import ERRORS, VALUES, StepName
from tests import plain_world

TURN = replace(plain_world.TURN, text="héllo", models=("a", "b"))
MESSAGE = Message(
    speaker="assistant",
    parts=(
        Text(text="words"),
        Thinking(text="hm", opaque={"signature": "x", "$": ["odd key"]}),
        ToolCall(id="1", name="task_create", arguments='{"title": "milk"}'),
        ToolResult(call_id="1", name="task_create", text="done", tainted=True),
        Opaque(provider="anthropic", data={"list": [1, 2.5, None, True, {"deep": []}]}),
    ),
)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        1.5,
        "text",
        (),
        ("a", ("b", [1, ()])),
        {"plain": (1,)},
        {"$": "tuple", "v": [1]},
        TURN,
        MESSAGE,
        Past(messages=(MESSAGE, MESSAGE), summary="s", is_tainted=True),
        RoundPlan(round=1, system="s", tools=(ToolSchema(name="t", description="d", parameters={"type": "object"}),)),
        RoundPlan(round=2, system="", hints=(("task_create", 0.75),)),
        Reply(message=MESSAGE, usage=Usage(input_tokens=3), model="m", finish="calls"),
        Reply(failure="no", failure_kind="auth"),
        Decision(
            call_id="c", verdict="refuse", result=ToolResult(call_id="1", name="n", text="t", is_error=True), tool="n"
        ),
        Performed(result=ToolResult(call_id="1", name="n", text="t"), found=("x", "y")),
        Outcome(state="done", rounds=2, messages=(MESSAGE,), text="words"),
    ],
    ids=repr,
)
def test_a_value_comes_back_exactly(value: object) -> None:
    back = decode(json.loads(json.dumps(encode(value))))
    assert back == value
    assert type(back) is type(value)


def test_half_a_surrogate_can_be_kept() -> None:
    kept = encode(Message(speaker="assistant", parts=(Text(text="half \ud800 a pair, a whole 🎈"),)))
    assert decode(json.loads(json.dumps(kept, ensure_ascii=False).encode())).text == "half \ufffd a pair, a whole 🎈"


def test_a_class_that_is_not_listed_is_refused() -> None:
    with pytest.raises(TypeError, match="stored_names"):
        encode({"inner": object()})


def test_a_look_alike_of_a_listed_class_is_refused() -> None:
    with pytest.raises(TypeError):
        encode(type("Turn", (), {})())


def test_an_older_record_takes_defaults_and_loses_what_is_gone() -> None:
    record = encode(Usage(input_tokens=3))
    del record["v"]["written_tokens"]
    record["v"]["dropped_since"] = 1
    assert decode(record) == Usage(input_tokens=3)


@pytest.mark.parametrize(
    "error",
    [
        NotFound("gone"),
        ConfigError("wrong"),
        Throttled("slowly", wait_s=2.5),
        ProviderError("busy", kind="rate_limit", is_retryable=True, retry_after_s=3.0),
    ],
    ids=repr,
)
def test_an_error_comes_back_with_its_facts(error: NotFound) -> None:
    back = decode_error(json.loads(json.dumps(encode_error(error))))
    assert type(back) is type(error)
    assert vars(back) == vars(error)
    assert str(back) == str(error)


def test_what_runs_were_kept_as_is_read_for_ever() -> None:
    values = "Text Thinking ToolCall ToolResult Opaque Reveal Message ToolSchema Usage Turn RoundPlan Reply Decision"
    assert {*values.split(), "Performed", "Outcome", "PlainCommand"} <= set(VALUES)
    assert {"UserError", "NotFound", "NotAllowed", "Conflict", "ProviderError", "ToolFailed"} <= set(ERRORS)
    assert [str(name) for name in StepName] == [
        "Openings.open",
        "Telling.steer",
        "Telling.say",
        "PlainCommands.command",
        "Planning.plan",
        "Thinking.answer",
        "Executor.decide",
        "ApprovalsService.settle",
        "Executor.perform",
        "Endings.close",
        "Endings.refuse",
    ]
