"""What a request says of its answer, on each protocol: over the model's own settings, under the names of the wire."""

import json
from typing import Any

import pytest

from cortex.base.messages import user
from cortex.base.model import ModelEntry
from cortex.ports.loop import Request
from cortex.providers import chat, messages, responses, servers
from cortex.providers.terms import Terms

FORM = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": True}}
GIVEN: dict[str, Any] = {
    "temperature": 1.5,
    "seed": 7,
    "logit_bias": {"5": 1.0},
    "reasoning_effort": "low",
    "verbosity": "high",
    "min_p": 0.1,
    "stop": ["END", "\n"],
    "response_format": FORM,
}


def sent(protocol: Any, row: str, *, refused: tuple[str, ...] = (), given: dict[str, Any] = GIVEN) -> dict[str, Any]:
    """The body that the protocol builds."""
    own = (("temperature", "0.1"), ("thinking", '"high"'), ("top_p", "0.5"))
    entry = ModelEntry(name="m", provider="openai", model="m", extra_params=own, refused=refused)
    parameters = tuple((name, json.dumps(value)) for name, value in given.items())
    request = Request(system="", messages=(user("hello"),), parameters=parameters)
    found: dict[str, Any] = protocol.body(request, Terms(entry=entry, row=servers.by_id(row), name=row), 100)
    return found


def test_chat_completions_take_them_as_they_are() -> None:
    body = sent(chat, "openai")
    assert {key: body[key] for key in GIVEN} == GIVEN
    assert body["top_p"] == 0.5, "what the request does not say stays the model's own"


def test_what_a_server_refuses_is_left_out() -> None:
    assert not {"temperature", "stop"} & set(sent(chat, "openai", refused=("temperature", "stop")))


def test_responses_have_names_of_their_own_and_know_fewer() -> None:
    body = sent(responses, "openai")
    assert body["text"] == {"format": {"type": "json_schema", **FORM["json_schema"]}, "verbosity": "high"}  # type: ignore[dict-item]
    assert body["reasoning"]["effort"] == "low"
    assert body["temperature"] == 1.5
    assert not {"seed", "logit_bias", "min_p", "stop", "response_format", "verbosity"} & set(body)


def test_messages_take_the_little_that_they_know() -> None:
    body = sent(messages, "anthropic")
    assert (body["temperature"], body["stop_sequences"]) == (1, ["END"])
    assert not {"seed", "logit_bias", "min_p", "stop", "response_format", "verbosity", "reasoning_effort"} & set(body)


@pytest.mark.parametrize(("protocol", "row", "name"), [
    (chat, "openai", "reasoning_effort"), (responses, "openai", "reasoning"), (messages, "anthropic", "thinking"),
])  # fmt: skip
def test_a_refusal_of_thinking_counts_whatever_the_protocol_calls_it(protocol: Any, row: str, name: str) -> None:
    assert name in sent(protocol, row, given={})
    assert not {name, "thinking"} & set(sent(protocol, row, given={}, refused=("reasoning_effort",)))
