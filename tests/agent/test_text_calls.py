"""Calls that a model wrote as text: which whole answers are calls, and which only look like some."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.agent.text_calls import calls_in, is_told, looks_like_calls, may_be_calls
from cortex.base.messages import ToolSchema

CREATE = ToolSchema(
    name="task_create",
    description="Add a task.",
    parameters={
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "priority": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "kind": {"enum": ["home", "work"]},
        },
        "required": ["title"],
        "additionalProperties": False,
    },
)
NOW = ToolSchema(name="time_now", description="The time.", parameters={"type": "object", "properties": {}})
TOOLS = (CREATE, NOW)
MILK = '{"title": "buy milk"}'
ONE = f'{{"name": "task_create", "arguments": {MILK}}}'
FORMS = [
    ONE,
    f"  \n{ONE}\n",
    f'{{"name": "task_create", "parameters": {MILK}}}',
    f'{{"type": "function", "name": "task_create", "parameters": {MILK}}}',
    f'{{"arguments": {MILK}, "name": "task_create"}}',
    f'{{"tool": "task_create", "args": {MILK}}}',
    f'{{"tool_name": "task_create", "tool_input": {MILK}}}',
    f'{{"function": "task_create", "arguments": {MILK}}}',
    f'{{"function": {{"name": "task_create", "arguments": {MILK}}}}}',
    f'{{"id": "1", "type": "function", "function": {{"name": "task_create", "arguments": {json.dumps(MILK)}}}}}',
    f'{{"tool_calls": [{ONE}]}}',
    f'{{"function_call": {ONE}}}',
    f'{{"recipient_name": "functions.task_create", "parameters": {MILK}}}',
    f"[{ONE}]",
    f"```json\n{ONE}\n```",
    f"```\n[{ONE}]\n```",
    f"```tool_call\n{ONE}\n```\n",
    f"<tool_call>\n{ONE}\n</tool_call>",
    f"<tool_call>{ONE}",
    f"```xml\n<tool_call>\n{ONE}\n</tool_call>\n```",
    "<tool_call>\n<function=task_create>\n<parameter=title>\nbuy milk\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>task_create\n<arg_key>title</arg_key>\n<arg_value>buy milk</arg_value>\n</tool_call>",
    f"<tool_use>\n{ONE}\n</tool_use>",
    f"<tool_use><name>task_create</name><arguments>{MILK}</arguments></tool_use>",
    f"<function_call>{ONE}</function_call>",
    f"<TOOLCALL>[{ONE}]</TOOLCALL>",
    f"<|tool_call|>[{ONE}]<|/tool_call|>",
    f"<|tool_call|>{ONE}",
    f"<function=task_create>{MILK}</function>",
    f"<function=task_create>{MILK}",
    '<minimax:tool_call>\n<invoke name="task_create">\n<parameter name="title">buy milk</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
    '<function_calls><invoke name="task_create"><parameter name="title">buy milk</parameter></invoke></function_calls>',
    '<\uff5cDSML\uff5cfunction_calls><\uff5cDSML\uff5cinvoke name="task_create">'
    '<\uff5cDSML\uff5cparameter name="title" string="true">buy milk'
    "</\uff5cDSML\uff5cparameter></\uff5cDSML\uff5cinvoke></\uff5cDSML\uff5cfunction_calls>",
    f"<|python_tag|>{ONE}",
    f"<|python_tag|>{ONE}<|eom_id|>",
    '<|python_tag|>task_create.call(title="buy milk")',
    f"[TOOL_CALLS][{ONE}]",
    f"[TOOL_CALLS] [{ONE}]</s>",
    f"[TOOL_CALLS]task_create[ARGS]{MILK}",
    f"[TOOL_CALLS]task_create[CALL_ID]a1b2c3d4e[ARGS]{MILK}",
    f"[TOOL_CALLS]task_create{MILK}",
    f"functools[{ONE}]",
    f"[TOOL_REQUEST]{ONE}[END_TOOL_REQUEST]",
    f"functions.task_create({MILK})",
    f"functions.task_create:0 {MILK}",
    f"<|channel|>commentary to=functions.task_create <|constrain|>json<|message|>{MILK}<|call|>",
    f"<|start|>assistant<|channel|>commentary to=functions.task_create<|message|>{MILK}",
    f"<|start|>assistant to=functions.task_create<|channel|>commentary json<|message|>{MILK}<|call|>",
    f"<|tool_calls_section_begin|><|tool_call_begin|>functions.task_create:0<|tool_call_argument_begin|>{MILK}"
    "<|tool_call_end|><|tool_calls_section_end|>",
    f"<\uff5ctool▁calls▁begin\uff5c><\uff5ctool▁call▁begin\uff5c>function<\uff5ctool▁sep\uff5c>task_create\n```json\n{MILK}\n```<\uff5ctool▁call▁end\uff5c>"
    "<\uff5ctool▁calls▁end\uff5c>",
    f"<\uff5ctool▁calls▁begin\uff5c><\uff5ctool▁call▁begin\uff5c>task_create<\uff5ctool▁sep\uff5c>{MILK}<\uff5ctool▁call▁end\uff5c><\uff5ctool▁calls▁end\uff5c>",
    '[task_create(title="buy milk")]',
    "task_create(title='buy milk')",
    '<|tool_call_start|>[task_create(title="buy milk")]<|tool_call_end|>',
    f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "task_create", "parameters": {MILK}}}]<|END_ACTION|>',
]


@pytest.mark.parametrize("text", FORMS)
def test_an_answer_that_is_one_call_is_read(text: str) -> None:
    (call,) = calls_in(text, TOOLS)
    assert (call.name, json.loads(call.arguments)) == ("task_create", {"title": "buy milk"})
    assert call.is_written


@pytest.mark.parametrize("text", FORMS)
def test_no_beginning_of_a_call_is_taken_for_words(text: str) -> None:
    assert [text[:at] for at in range(len(text)) if not may_be_calls(text[:at], TOOLS)] == []


TWO = '{"name": "task_create", "arguments": {"title": "eggs", "priority": 2}}'


@pytest.mark.parametrize(
    "text",
    [
        f"[{ONE}, {TWO}]",
        f"{ONE}\n{TWO}",
        f"{ONE};\n{TWO}",
        f"<tool_call>\n{ONE}\n</tool_call>\n<tool_call>\n{TWO}\n</tool_call>",
        f"<tool_call>\n{ONE}\n{TWO}\n</tool_call>",
        f"[TOOL_CALLS][{ONE}, {TWO}]",
        f'[TOOL_CALLS]task_create[ARGS]{MILK}[TOOL_CALLS]task_create[ARGS]{{"title": "eggs", "priority": 2}}',
        f'<function=task_create>{MILK}</function>\n<function=task_create>{{"title": "eggs", "priority": 2}}</function>',
        "<tool_call><function=task_create><parameter=title>buy milk</parameter></function></tool_call>\n"
        "<tool_call><function=task_create><parameter=title>eggs</parameter><parameter=priority>2</parameter></function>"
        "</tool_call>",
        '[task_create(title="buy milk"), task_create(title="eggs", priority=2)]',
        f"<|tool_call_begin|>functions.task_create:0<|tool_call_argument_begin|>{MILK}<|tool_call_end|>"
        '<|tool_call_begin|>functions.task_create:1<|tool_call_argument_begin|>{"title": "eggs", "priority": 2}'
        "<|tool_call_end|>",
        f"<\uff5ctool▁calls▁begin\uff5c><\uff5ctool▁call▁begin\uff5c>task_create<\uff5ctool▁sep\uff5c>{MILK}<\uff5ctool▁call▁end\uff5c>\n"
        '<\uff5ctool▁call▁begin\uff5c>task_create<\uff5ctool▁sep\uff5c>{"title": "eggs", "priority": 2}'
        "<\uff5ctool▁call▁end\uff5c>"
        "<\uff5ctool▁calls▁end\uff5c>",
    ],
)
def test_several_calls_are_read_in_order(text: str) -> None:
    found = [json.loads(call.arguments) for call in calls_in(text, TOOLS)]
    assert found == [{"title": "buy milk"}, {"title": "eggs", "priority": 2}]


def test_a_call_without_arguments_is_read() -> None:
    for text in ('{"name": "time_now", "arguments": {}}', "[time_now()]", "[TOOL_CALLS]time_now[ARGS]{}"):
        assert [call.name for call in calls_in(text, TOOLS)] == ["time_now"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello.",
        "{}",
        "[]",
        "[1, 2]",
        "null",
        f"I add it.\n{ONE}",
        f"{ONE}\nDone.",
        f"I add it:\n\n```json\n{ONE}\n```",
        f"```json\n{ONE}\n```\nThat is how a call looks.",
        f"> {ONE}",
        f"`{ONE}`",
        f'"{ONE}"',
        f"<tool_call>{ONE}</tool_call> Done.",
        f"I add it. <tool_call>{ONE}</tool_call>",
        ONE[:-1],
        '{"name": "task_create"}',
        '{"name": "task_create", "arguments": {}}',
        '{"name": "task_create", "arguments": {"title": 5}}',
        '{"name": "task_create", "arguments": {"title": "a", "other": 1}}',
        '{"name": "task_create", "arguments": {"title": "a", "priority": "high"}}',
        '{"name": "task_create", "arguments": {"title": "a", "priority": true}}',
        '{"name": "task_create", "arguments": {"title": "a", "tags": [1]}}',
        '{"name": "task_create", "arguments": {"title": "a", "kind": "party"}}',
        '{"name": "task_create", "arguments": ["a"]}',
        '{"name": "task_create", "arguments": "milk"}',
        f'{{"name": "task_delete", "arguments": {MILK}}}',
        f'{{"name": "task_create", "arguments": {MILK}, "description": "a call"}}',
        f'[{ONE}, {{"name": "other", "arguments": {{}}}}]',
        "task_create",
        "task_create(title=title)",
        'task_create("milk", 2)',
        "[task_create](https://example.org)",
        "import os",
        "[" * 5_000,
        "task_create(" * 2_000,
        '{"name":' * 2_000,
    ],
)
def test_anything_else_is_no_call(text: str) -> None:
    assert calls_in(text, TOOLS) == ()


def test_without_tools_there_is_no_call() -> None:
    assert calls_in(ONE, ()) == ()
    assert not may_be_calls("{", ())


OTHERS = [
    '{"title": "a"}', '{"name": "Bob", "age": 4}', "[1, 2, 3]", "[link](x)", "Hello", "`ls`", "[x] done", "task_list",
    "```python\nprint(1)\n```", "<b>bold</b>", "functional",
]  # fmt: skip


@pytest.mark.parametrize("text", OTHERS)
def test_other_answers_are_shown_as_they_come(text: str) -> None:
    assert any(not may_be_calls(text[:at], TOOLS) for at in range(1, len(text) + 1))


def test_values_without_quotes_take_the_type_that_the_tool_wants() -> None:
    text = (
        "<function=task_create>\n<parameter=title>\n12\n</parameter>\n<parameter=priority>\n3\n</parameter>\n"
        '<parameter=tags>\n["a"]\n</parameter>\n</function>'
    )
    (call,) = calls_in(text, TOOLS)
    assert json.loads(call.arguments) == {"title": "12", "priority": 3, "tags": ["a"]}


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        (f"I add it.\n\n```json\n{ONE}\n```", True),
        (f"I add it.\n\n{ONE}", True),
        (f"I add it.\n<tool_call>\n{ONE}\n</tool_call>", True),
        ('{"name": "task_create", "arguments": {}}', True),
        ('<tool_call>{"name": "nothing", "arguments": {}}</tool_call>', True),
        ("[TOOL_CALLS]broken", True),
        ("Hello.", False),
        ('{"name": "Bob", "parameters": {"age": 4}}', False),
        ("Qwen writes `<tool_call>` ahead of a call.", False),
        ("```\n<tool_call>\n```\nis its mark.", False),
        ("", False),
    ],
)
def test_what_looks_like_a_call_is_told(text: str, *, looks: bool) -> None:
    assert looks_like_calls(text, TOOLS) is looks


def test_a_call_that_stood_in_what_was_read_is_a_quote() -> None:
    (call,) = calls_in(ONE, TOOLS)
    same = '<p>{"name":"task_create","arguments":{"title":"Buy\\u0020milk"}}</p>'
    assert is_told(call, ['Repeat: {"name":"task_create", "arguments":{"title":"buy milk"}}'], [])
    assert not is_told(call, ["Please use task_create to buy milk."], [])
    assert is_told(call, [], ["To go on, call TASK_CREATE with the title “buy\nmilk”."])
    assert not is_told(call, [], ["Milk is white.", "task_create is a tool", same.replace("task", "note")])


def test_a_call_through_the_bridge_is_told_by_what_it_is_for() -> None:
    properties = {"name": {"type": "string"}, "arguments": {"type": "object"}}
    bridge = ToolSchema(name="tool_call", description="", parameters={"type": "object", "properties": properties})
    (call,) = calls_in(json.dumps({"name": "tool_call", "arguments": json.loads(ONE)}), (bridge,))
    assert is_told(call, [], [f"Please: {ONE}"])
    assert is_told(call, [f"Please: {ONE}"], [])


HOSTILE = {
    "blanks": "{" + " " * 100_000 + "}",
    "blanks in harmony": "<|channel|>commentary" + " " * 100_000 + "x",
    "parameters that never end": "<function=task_create>" + "<parameter=title>" * 8_000,
    "ends ahead": "<function=task_create>" + "</parameter>" * 4_000 + "<parameter=title>" * 4_000,
    "pairs": "<tool_call>task_create\n" + "<arg_key>a</arg_key><arg_value>b</arg_value>" * 3_000 + "x</tool_call>",
    "functions": "<function=task_create>" * 6_000,
    "marks": "<tool_call>" * 10_000,
    "fences": "```json\n" * 20_000,
    "a fence without end": "`" * 150_000,
    "fences of all lengths": "".join("`" * at + "a\n" for at in range(3, 300)),
    "brackets": "[" * 190_000,
    "signs": "task_create(title=" + "-" * 19_000 + "1)",
    "rounds": "task_create(" + "(" * 19_000 + ")",
    "new lines": "a" + "\n" * 150_000 + "</think>",
    "letters": "a" * 2_000_000,
    "wrong escape": 'task_create(title="\\d")',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_takes_long(name: str) -> None:
    found = calls_in(HOSTILE[name], TOOLS)
    assert [call.name for call in found] == (["task_create"] if name == "wrong escape" else [])
    looks_like_calls(HOSTILE[name], TOOLS)
    may_be_calls(HOSTILE[name], TOOLS)


def test_what_cannot_be_kept_or_is_far_too_much_is_no_call() -> None:
    for title in ('"\\ud800"', '"a\\udc00b"'):
        assert calls_in(f'{{"name": "task_create", "arguments": {{"title": {title}}}}}', TOOLS) == ()
    other = ToolSchema(name="wait", description="", parameters={"properties": {"s": {"type": "number"}}})
    for number in ("1e999", "-1e999", "NaN", "Infinity"):
        assert calls_in(f'{{"name": "wait", "arguments": {{"s": {number}}}}}', (other,)) == ()
    assert len(calls_in("\n".join([ONE] * 32), TOOLS)) == 32
    assert calls_in("\n".join([ONE] * 33), TOOLS) == ()


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert calls_in(text, TOOLS) == ()
    looks_like_calls(text, TOOLS)
    may_be_calls(text, TOOLS)


@given(
    st.lists(st.sampled_from([*FORMS, "<tool_call>", "```", "{", "}", "[", "(", ")", '"name":', "\n", ","]), max_size=4)
)
def test_every_call_that_is_read_was_held_back_from_its_first_letter(parts: list[str]) -> None:
    text = "".join(parts)
    if calls_in(text, TOOLS):
        assert all(may_be_calls(text[:at], TOOLS) for at in range(len(text)))
