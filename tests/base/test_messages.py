import json

import pytest

from cortex.base.messages import Message, Opaque, Part, Reveal, Text, Thinking, ToolCall, ToolResult, from_json, to_json

STORED: list[tuple[Part, str]] = [
    (Text(text="Grüße"), '{"kind": "text", "text": "Gr\\u00fc\\u00dfe"}'),
    (Thinking(text="hm"), '{"kind": "thinking", "text": "hm", "opaque": null}'),
    (
        Thinking(text="hm", opaque={"signature": "s", "n": [1, 2]}),
        '{"kind": "thinking", "text": "hm", "opaque": {"signature": "s", "n": [1, 2]}}',
    ),
    (
        ToolCall(id="c1", name="task_list", arguments='{"list": 1}'),
        '{"kind": "call", "id": "c1", "name": "task_list", "arguments": "{\\"list\\": 1}"}',
    ),
    (
        ToolResult(call_id="c1", name="task_list", text="milk", is_error=True, tainted=True),
        '{"kind": "result", "call_id": "c1", "name": "task_list", "text": "milk", "is_error": true, "tainted": true}',
    ),
    (
        Opaque(provider="anthropic", data={"deep": {"a": [None, 1.5, True]}}),
        '{"kind": "opaque", "provider": "anthropic", "data": {"deep": {"a": [null, 1.5, true]}}}',
    ),
    (Reveal(names=("a", "b")), '{"kind": "reveal", "names": ["a", "b"]}'),
]


@pytest.mark.parametrize(("part", "stored"), STORED)
def test_a_message_is_kept_as_it_always_was(part: Part, stored: str) -> None:
    whole = f'{{"speaker": "assistant", "parts": [{stored}]}}'
    message = Message(speaker="assistant", parts=(part,))
    assert json.dumps(to_json(message)) == whole
    assert from_json(json.loads(whole)) == message
