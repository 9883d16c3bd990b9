"""The forms in which models write tool calls into their answer: from a whole text to names and arguments. Pure.

Called by `text_calls.py`, which looks whether they fit a tool that was sent. Forms by the tool parsers of vLLM, SGLang
and llama.cpp and by the models' own templates (read 2026-11-27): Llama, Qwen and Hermes, Mistral, gpt-oss, DeepSeek,
Kimi, GLM, MiniMax, Granite, Phi, Nemotron, LFM2, Cohere, Apertus, and LM Studio's own.
"""

import ast
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from cortex.base.json_text import parsed

PYTHON_MOST = 20_000  # characters that are read as Python
TEXT_MOST = 200_000
_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "recipient_name", "action")
_ARGUMENT_KEYS = (
    "arguments", "parameters", "args", "input", "params", "tool_input", "action_input", "tool_parameters",
)  # fmt: skip
_LIST_KEYS = ("tool_calls", "tool_uses", "tool_call", "function_call", "calls")
_OTHER_KEYS = frozenset({"id", "type", "tool_call_id", "call_id", "index"})
KEYS = (*_NAME_KEYS, *_ARGUMENT_KEYS, *_LIST_KEYS, *_OTHER_KEYS)

# What stands around calls: where it begins, where it ends. The end may be missing: servers cut it off as a stop word.
_AROUND: tuple[tuple[str, str], ...] = (
    ("<tool_call>", "</tool_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<tool_use>", "</tool_use>"),
    ("<function_call>", "</function_call>"),
    ("<function_calls>", "</function_calls>"),
    ("<functioncall>", "</functioncall>"),
    ("<TOOLCALL>", "</TOOLCALL>"),
    ("<minimax:tool_call>", "</minimax:tool_call>"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("<|tool_call>", "<tool_call|>"),
    ("<|tool_call_start|>", "<|tool_call_end|>"),
    ("<|tools_prefix|>", "<|tools_suffix|>"),
    ("<|START_ACTION|>", "<|END_ACTION|>"),
    ("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    ("<|python_tag|>", "<|eom_id|>"),
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ("<\uff5ctool▁calls▁begin\uff5c>", "<\uff5ctool▁calls▁end\uff5c>"),
    ("<\uff5ctool▁call▁begin\uff5c>", "<\uff5ctool▁call▁end\uff5c>"),
    ("[TOOL_CALLS]", ""),
    ("functools", ""),
)
# With which text a call begins where no name or bracket does.
BEGINNINGS = (
    *(begin for begin, _ in _AROUND),
    "<function=", "<function name=", "<invoke name=", "<\uff5cDSML\uff5c", "<|channel|>commentary",
    "<|start|>assistant", "<|tool_call_begin|>", "functions.",
)  # fmt: skip
_STOPS = ("<|eom_id|>", "<|eot_id|>", "<|im_end|>", "<|call|>", "</s>", "<end_of_turn>")
_MAY_BEGIN = re.compile(r"[\[{<]|functools|functions\.|[\w.]{1,100}\(")
_FENCE = re.compile(r"(?<!`)(?P<mark>`{3,10})[\w+-]*[ \t]*\n(?P<inside>.*?)\n?[ \t]*(?P=mark)", re.DOTALL)
# Every repetition has an end: these are tried at each place of a text that anybody may have written.
_HARMONY = re.compile(
    r"(?:<\|start\|>assistant)?(?: to=(?P<early>[\w.-]{1,100}))?(?:<\|channel\|>)?(?:commentary|analysis)?"
    r"(?: to=(?P<late>[\w.-]{1,100}))?(?: ?<\|constrain\|>)? ?(?:json|code)?<\|message\|>"
)
_MISTRAL = re.compile(
    r"(?:\[TOOL_CALLS\])?\s{0,9}(?P<name>[\w.-]{1,100})(?:\[CALL_ID\]\w{1,40})?(?:\[ARGS\])?\s{0,9}(?=\{)"
)
_NAMED = re.compile(r"functions\.(?P<name>[\w-]{1,100})(?::\d{1,9})?\s{0,9}(?P<round>\()?\s{0,9}(?=\{)")
_KIMI = re.compile(
    r"<\|tool_call_begin\|>\s{0,9}(?:functions\.)?(?P<name>[\w.-]{1,100}?)(?::\d{1,9})?\s{0,9}"
    r"<\|tool_call_argument_begin\|>"
)
_DEEPSEEK = re.compile(
    r"(?:<\uff5ctool▁call▁begin\uff5c>)?\s{0,9}(?:function)?<\uff5ctool▁sep\uff5c>(?P<name>[\w.-]{1,100})\s{0,9}```(?:json)?\s{0,9}"
)
_DEEPSEEK_31 = re.compile(
    r"(?:<\uff5ctool▁call▁begin\uff5c>)?\s{0,9}(?P<name>[\w.-]{1,100})<\uff5ctool▁sep\uff5c>\s{0,9}"
)
_FUNCTION = re.compile(
    r"<(?:function=(?P<a>[\w.-]{1,100})|(?:function|invoke) name=\"(?P<b>[\w.-]{1,100})\")>"
    r"(?P<body>(?:(?!<function=|<invoke |<function ).)*?)(?:</(?:function|invoke)>|$)",
    re.DOTALL,
)
_PARAMETER = re.compile(
    r"<(?:parameter=(?P<a>[\w.-]{1,100})|parameter name=\"(?P<b>[\w.-]{1,100})\"[^<>]{0,60})>"
    r"\n?(?P<value>(?:(?!<parameter[ =]).)*?)\n?</parameter>",
    re.DOTALL,
)
_GLM = re.compile(r"(?P<name>[\w.-]{1,100})\s{0,9}(?P<body><arg_key>.*)", re.DOTALL)
_GLM_PAIR = re.compile(
    r"<arg_key>((?:(?!<arg_).)*?)</arg_key>\s{0,9}<arg_value>((?:(?!<arg_).)*?)</arg_value>", re.DOTALL
)
_USE = re.compile(r"<name>([\w.-]{1,100})</name>\s{0,9}<(arguments|input|parameters)>(.*)</\2>", re.DOTALL)
_BETWEEN = re.compile(r"[\s;,]*")
_DECODER = json.JSONDecoder()


class WrittenCall(Struct, frozen=True, kw_only=True):
    """A call as it stands in a text. `is_plain`: its values are text that no form gives a type."""

    name: str
    arguments: dict[str, Any]
    is_plain: bool = False


class _NotACallError(ValueError):
    """This form does not hold."""


def written(text: str) -> tuple[WrittenCall, ...]:
    """The calls of which the whole text consists, in a fence or not; () where it is anything else."""
    whole = _without_stops(text)
    if len(whole) > TEXT_MOST:
        return ()
    fenced = _FENCE.fullmatch(whole)
    if fenced is not None and fenced["mark"] not in fenced["inside"]:
        whole = fenced["inside"].strip()
    if not _MAY_BEGIN.match(whole):
        return ()
    try:
        return tuple(_calls(whole.replace("\uff5cDSML\uff5c", ""), 3))
    except (_NotACallError, RecursionError):
        return ()


def _without_stops(text: str) -> str:
    """The text without blanks around it and without marks of its end, which some servers leave in."""
    text = text.strip()
    while mark := next((mark for mark in _STOPS if text.endswith(mark)), ""):
        text = text.removesuffix(mark).rstrip()
    return text


def fenced(text: str) -> Iterator[str]:
    """Yield what stands in the fences of a text."""
    return (found["inside"] for found in _FENCE.finditer(text))


def _calls(text: str, depth: int) -> list[WrittenCall]:
    """The calls in a text that is nothing else; `depth`: how many marks may still stand around them."""
    text = _without_stops(text)
    if not text:
        raise _NotACallError
    if depth and (inner := _insides(text)):
        return [call for each in inner for call in _calls(each, depth - 1)]
    for form in _FORMS:
        if found := form(text):
            return found
    raise _NotACallError


def _insides(text: str) -> list[str]:
    """Return what stands between marks, one after the other; [] where the text does not begin with one."""
    found: list[str] = []
    rest = text
    while rest:
        pair = next((pair for pair in _AROUND if rest.startswith(pair[0])), None)
        if pair is None:
            if not found:
                return []
            raise _NotACallError
        begin, end = pair
        inside, _, behind = rest[len(begin) :].partition(end) if end else _one_mark(rest[len(begin) :], begin)
        found.append(inside)
        rest = behind.strip(" \t\r\n,")
    return found


def _one_mark(text: str, begin: str) -> tuple[str, str, str]:
    """Up to the next mark of the same kind."""
    inside, mark, behind = text.partition(begin)
    return inside, "", mark + behind


# --- forms ----------------------------------------------------------------------------------------------------------


def _json(text: str) -> list[WrittenCall]:
    """An object, a list of them, or several one after the other."""
    if text[0] not in "{[":
        return []
    values: list[Any] = []
    at = 0
    while at < len(text):
        try:
            value, upto = _DECODER.raw_decode(text, at)
        except ValueError:
            return []
        values.append(value)
        at = _BETWEEN.match(text, upto).end()  # type: ignore[union-attr]  # it matches nothing, too
    return [call for value in values for call in _of_value(value)]


def _of_value(value: Any) -> list[WrittenCall]:  # Any: whatever the model wrote
    if isinstance(value, list):
        if not value:
            raise _NotACallError
        return [call for each in value for call in _of_value(each)]
    if not isinstance(value, dict):
        raise _NotACallError
    if len(value) == 1 and (key := next(iter(value))) in _LIST_KEYS:
        return _of_value(value[key])
    inner = value.get("function")
    if isinstance(inner, dict):
        if not value.keys() <= {"function"} | _OTHER_KEYS:
            raise _NotACallError
        return _of_value(inner)
    names = [key for key in _NAME_KEYS if isinstance(value.get(key), str)]
    arguments = [key for key in _ARGUMENT_KEYS if key in value]
    if len(names) != 1 or len(arguments) != 1 or not value.keys() <= {*names, *arguments} | _OTHER_KEYS:
        raise _NotACallError
    return [WrittenCall(name=_name(value[names[0]]), arguments=_object(value[arguments[0]]))]


def _object(value: Any) -> dict[str, Any]:
    """Arguments as an object; some write it as a text once more."""
    if isinstance(value, str):
        try:
            value = parsed(value or "{}")
        except ValueError:
            raise _NotACallError from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _NotACallError
    return value


def _name(text: str) -> str:
    return text.strip().removeprefix("functions.")


def _headed(head: re.Pattern[str], text: str) -> list[WrittenCall]:
    """A head with a name ahead of each object: `head {…} head {…}`."""
    found: list[WrittenCall] = []
    heads = list(head.finditer(text)) if head.match(text) else []
    for at, each in enumerate(heads):
        upto = heads[at + 1].start() if at + 1 < len(heads) else len(text)
        body = text[each.end() : upto].strip(" \t\r\n,;")
        groups = each.groupdict()
        if groups.get("round"):
            body = body.removesuffix(")")
        for mark in ("<|tool_call_end|>", "<\uff5ctool▁call▁end\uff5c>", "<|call|>", "```"):
            body = body.strip().removesuffix(mark)
        name = next((groups[key] for key in ("name", "early", "late") if groups.get(key)), "")
        if not name:
            return []
        found.append(WrittenCall(name=_name(name), arguments=_object(body.strip() or "{}")))
    return found


def _tried(head: re.Pattern[str]) -> Callable[[str], list[WrittenCall]]:
    def form(text: str) -> list[WrittenCall]:
        try:
            return _headed(head, text)
        except _NotACallError:
            return []

    return form


def _functions(text: str) -> list[WrittenCall]:
    """`<function=name>{…}</function>`, `<function=name><parameter=key>value</parameter></function>`, `<invoke …>`."""
    found: list[WrittenCall] = []
    at = 0
    for each in _FUNCTION.finditer(text):
        if text[at : each.start()].strip():
            return []
        at = each.end()
        name, body = _name(each["a"] or each["b"]), each["body"].strip()
        if body.startswith("{"):
            found.append(WrittenCall(name=name, arguments=_object(body)))
            continue
        if _PARAMETER.sub("", body).strip():
            return []
        values = {one["a"] or one["b"]: one["value"] for one in _PARAMETER.finditer(body)}
        found.append(WrittenCall(name=name, arguments=values, is_plain=True))
    return [] if text[at:].strip() else found


def _pairs(text: str) -> list[WrittenCall]:
    """GLM's `name <arg_key>…</arg_key> <arg_value>…</arg_value>`."""
    found = _GLM.fullmatch(text) if "<arg_key>" in text else None
    if found is None or _GLM_PAIR.sub("", found["body"]).strip():
        return []
    return [WrittenCall(name=found["name"], arguments=dict(_GLM_PAIR.findall(found["body"])), is_plain=True)]


def _use(text: str) -> list[WrittenCall]:
    """`<name>…</name><arguments>{…}</arguments>`."""
    found = _USE.fullmatch(text)
    return [WrittenCall(name=_name(found[1]), arguments=_object(found[3].strip() or "{}"))] if found else []


def _python(text: str) -> list[WrittenCall]:
    """`[name(key="value"), …]`, or one call alone."""
    if len(text) > PYTHON_MOST or "(" not in text or not text.endswith((")", "]")):
        return []
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text, mode="eval").body
        nodes: Sequence[ast.expr] = tree.elts if isinstance(tree, ast.List) else [tree]
        return [_of_node(node) for node in nodes]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return []


def _of_node(node: ast.expr) -> WrittenCall:
    if not isinstance(node, ast.Call):
        raise _NotACallError
    name = ast.unparse(node.func).removesuffix(".call")
    if node.args:
        if len(node.args) > 1 or node.keywords:
            raise _NotACallError
        return WrittenCall(name=_name(name), arguments=_object(ast.literal_eval(node.args[0])))
    values = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg}
    if len(values) != len(node.keywords):
        raise _NotACallError
    return WrittenCall(name=_name(name), arguments=values)


_FORMS: tuple[Callable[[str], list[WrittenCall]], ...] = (
    _json,
    _functions,
    _use,
    _pairs,
    _tried(_KIMI),
    _tried(_DEEPSEEK),
    _tried(_DEEPSEEK_31),
    _tried(_HARMONY),
    _tried(_NAMED),
    _tried(_MISTRAL),
    _python,
)
