"""What versions up to 2026-11 stored of a provider's own parts goes back to it, unread, in the form that it wants."""

import json
from itertools import pairwise
from typing import Any

from cortex.base.messages import Message, assistant, from_json, results, user
from cortex.base.messages import ToolResult as Result
from cortex.base.model import ModelEntry, Profile
from cortex.ports.loop import Request
from cortex.providers import chat, messages, responses
from cortex.providers.servers import OTHER, by_id
from cortex.providers.terms import Terms

SEALED = "c2VhbGVk"


def stored(thinking: dict[str, Any], *details: dict[str, Any], provider: str) -> Message:
    """An answer as it lay in the database of that version: reasoning, words, a call, each with its details."""
    opaque = {"part_kind": "thinking", "provider_name": provider, **thinking}
    parts: list[dict[str, Any]] = [
        {"kind": "thinking", "text": thinking.get("content", ""), "opaque": opaque},
        {"kind": "text", "text": "On it."},
        {"kind": "call", "id": "call_1", "name": "task_create", "arguments": '{"title": "milk"}'},
    ]
    for at, each in enumerate(details):
        parts.insert(2 + 2 * at, {"kind": "opaque", "provider": provider, "data": {"details": each}})
    return from_json(json.loads(json.dumps({"speaker": "assistant", "parts": parts})))


def asked(answer: Message) -> Request:
    done = results(Result(call_id="call_1", name="task_create", text="Done."))
    return Request(system="", messages=(user("buy milk"), answer, done))


def terms(name: str, row: str = "other") -> Terms:
    entry = ModelEntry(name="m", provider="openai", model="m", profile=Profile())
    return Terms(entry=entry, row=OTHER if row == "other" else by_id(row), name=name)


def test_reasoning_of_chat_completions_goes_back_in_the_field_that_held_it() -> None:
    answer = stored({"id": "reasoning_content", "content": "Hm, milk."}, provider="box")
    said = chat.body(asked(answer), terms("box"), 100)["messages"][1]
    assert (said["reasoning_content"], said["content"]) == ("Hm, milk.", "On it.")
    assert "Hm, milk." not in json.dumps(chat.body(asked(answer), terms("elsewhere"), 100))


def test_signed_and_redacted_thinking_goes_back_to_anthropic_as_its_blocks() -> None:
    signed = stored({"content": "Hm, milk.", "signature": "c2ln"}, provider="anthropic")
    blocks = messages.body(asked(signed), terms("anthropic", "anthropic"), 100)["messages"][1]["content"]
    assert blocks[0] == {"type": "thinking", "thinking": "Hm, milk.", "signature": "c2ln"}
    hidden = stored({"id": "redacted_thinking", "content": "", "signature": "cmVk"}, provider="anthropic")
    blocks = messages.body(asked(hidden), terms("anthropic", "anthropic"), 100)["messages"][1]["content"]
    assert blocks[0] == {"type": "redacted_thinking", "data": "cmVk"}
    assert [block["type"] for block in blocks] == ["redacted_thinking", "text", "tool_use"]


def test_sealed_reasoning_goes_back_to_responses_as_an_item_with_the_ids_behind_it() -> None:
    thinking = {"id": "rs_1", "content": "Hm, milk.", "signature": SEALED}
    answer = stored(
        thinking, {"id": "msg_1"}, {"id": "fc_1", "provider_details": {"namespace": "gone"}}, provider="openai"
    )
    items = responses.body(asked(answer), terms("openai", "openai"), 100)["input"]
    summary = [{"type": "summary_text", "text": "Hm, milk."}]
    assert items[1] == {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": SEALED}
    assert [item.get("id") for item in items] == [None, "rs_1", "msg_1", "fc_1", None]
    assert "namespace" not in items[3], "its tool is declared plainly in this request"


def test_a_reasoning_item_of_several_parts_is_one_again() -> None:
    first = {"id": "rs_1", "content": "One.", "signature": SEALED}
    answer = stored(first, {"id": "msg_1"}, {"id": "fc_1"}, provider="openai")
    second = stored({"id": "rs_1", "content": "Two."}, provider="openai").parts[0]
    whole = Message(speaker="assistant", parts=(answer.parts[0], second, *answer.parts[1:]))
    items = responses.body(asked(whole), terms("openai", "openai"), 100)["input"]
    assert [part["text"] for part in items[1]["summary"]] == ["One.", "Two."]
    assert [item.get("type") for item in items].count("reasoning") == 1


def test_another_servers_parts_are_left_out_and_the_words_stay() -> None:
    answer = stored(
        {"id": "rs_1", "content": "Hm.", "signature": SEALED}, {"id": "msg_1"}, {"id": "fc_1"}, provider="openai"
    )
    for built in (
        chat.body(asked(answer), terms("box"), 100),
        messages.body(asked(answer), terms("anthropic", "anthropic"), 100),
        responses.body(asked(answer), terms("box"), 100),
    ):
        sent = json.dumps(built)
        assert "On it." in sent
        assert "task_create" in sent
        assert not [word for word in (SEALED, "rs_1", "msg_1", "fc_1") if word in sent]


def test_a_history_is_whole_whatever_was_lost_of_it() -> None:
    """A call without a result, a result without its call, an answer of nothing, two messages in a row."""
    call = stored({"content": ""}, provider="box").calls[0]
    lost = results(Result(call_id="gone", name="note_add", text="Noted."))
    history = (user("a"), assistant("", call), user("b"), assistant(" "), user("c"), lost, user("d"))
    for row in ("other", "mistral"):
        sent = chat.body(Request(system="S", messages=history), terms("box", row), 100)["messages"]
        roles = [message["role"] for message in sent]
        assert roles[:4] == ["system", "user", "assistant", "tool"]
        assert "not run" in sent[3]["content"]
        assert all(one != two for one, two in pairwise(roles))
        assert ("assistant" in roles[4:]) is (row == "mistral")
        assert all(word in sent[-1]["content"] for word in ("b", "c", "note_add gave: Noted.", "d"))
