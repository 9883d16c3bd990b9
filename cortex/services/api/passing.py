"""A program's request as a model gets it: its own prompt, messages and tools as they came, and nothing of Cortex's."""

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from cortex.base.messages import Message, Part, Picture, Text, ToolCall, ToolResult, ToolSchema, assistant
from cortex.services.api.requests import BadRequest, ChatMessage, ChatRequest, ChosenTools

# What tunes an answer, under the names of chat completions; a wire sends those that it has.
TUNING = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "logit_bias",
    "reasoning_effort",
    "verbosity",
    "top_k",
    "min_p",
    "repeat_penalty",
    "repetition_penalty",
    "chat_template_kwargs",
)
NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
Known = Callable[[tuple[ToolCall, ...]], Message | None]


def passed_on(
    request: ChatRequest, pictures: Mapping[str, Picture], known: Known = lambda _: None
) -> tuple[str, tuple[Message, ...]]:
    """The instructions ahead of all, and the messages as a model gets them. BadRequest.

    pictures: by where they are. known: an answer with these very calls as the model gave it, with the reasoning that it
    wants back and that no client keeps.
    """
    instructions: list[str] = []
    messages: list[Message] = []
    names: dict[str, str] = {}
    waiting: deque[str] = deque()
    for place, one in enumerate(request.messages):
        if one.is_instruction and not messages:
            instructions.append(one.text)
        elif one.is_instruction:
            messages.append(Message(speaker="system", parts=(Text(text=one.text),)))
        elif one.role == "user":
            messages.append(Message(speaker="user", parts=_parts(one, pictures)))
        elif one.role == "assistant":
            calls = _calls(one, place)
            names |= {call.id: call.name for call in calls}
            waiting = deque(call.id for call in calls)
            messages.append((known(calls) if calls else None) or assistant(one.text, *calls))
        else:
            messages.append(_with_result(messages, _result(one, place, names, waiting)))
    return "\n\n".join(filter(None, instructions)), tuple(messages)


def _parts(one: ChatMessage, pictures: Mapping[str, Picture]) -> tuple[Part, ...]:
    shown = [pictures[where] for where in one.pictures]
    words = [Text(text=text) for text in one.texts if text]
    return (*words, *shown) or (Text(text=""),)


def _calls(one: ChatMessage, place: int) -> tuple[ToolCall, ...]:
    """Its calls; one without an id gets one that is the same each time."""
    return tuple(
        ToolCall(
            id=call.id or f"call_{place}_{number}",
            name=call.function.name,
            arguments=call.function.arguments_text or "{}",
        )
        for number, call in enumerate(one.tool_calls)
    )


def _result(one: ChatMessage, place: int, names: Mapping[str, str], waiting: deque[str]) -> ToolResult:
    """The result of the call that it names, or of the first that still waits for one."""
    call_id = one.tool_call_id or (waiting[0] if waiting else "")
    if call_id not in names:
        said = f"There is no call {call_id[:80]!r} before this result." if call_id else "No call waits for this result."
        raise BadRequest(said, field=f"messages[{place}].tool_call_id")
    if call_id in waiting:
        waiting.remove(call_id)
    return ToolResult(call_id=call_id, name=names[call_id], text=one.text)


def _with_result(messages: list[Message], result: ToolResult) -> Message:
    """The message of results with one more: those of one round stand together."""
    parts: tuple[Part, ...] = (result,)
    if messages and messages[-1].speaker == "tool":
        parts = (*messages.pop().parts, result)
    return Message(speaker="tool", parts=parts)


def tools_of(request: ChatRequest) -> tuple[ToolSchema, ...]:
    """The tools that the model may call; where the request chooses among them, those. BadRequest."""
    given = [tool.function for tool in request.tools]
    if isinstance(request.tool_choice, ChosenTools):
        names = request.tool_choice.names
        strange = next((name for name in names if all(tool.name != name for tool in given)), None)
        if strange is not None:
            raise BadRequest(f"There is no tool {strange[:80]!r} in the request.", field="tool_choice")
        given = [tool for tool in given if tool.name in names]
    if len({one.name for one in given}) < len(given):
        raise BadRequest("Two tools have the same name.", field="tools")
    return tuple(
        ToolSchema(
            name=one.name, description=one.description, parameters=one.parameters or NO_PARAMETERS, strict=one.strict
        )
        for one in given
    )


def choice_of(request: ChatRequest) -> Literal["auto", "required", "none"]:
    """Tell whether the model has to call a tool."""
    choice = request.tool_choice
    if isinstance(choice, ChosenTools):
        return "required" if choice.is_forced else "auto"
    return "required" if choice == "any" else choice


def tuning_of(request: ChatRequest) -> tuple[tuple[str, str], ...]:
    """Return what tunes the answer, and where it ends: names of chat completions' parameters with their JSON."""
    given = [(name, value) for name in TUNING if (value := getattr(request, name)) is not None]
    if request.stops:
        given.append(("stop", list(request.stops)))
    return tuple((name, _text(value)) for name, value in given)


def format_of(request: ChatRequest) -> tuple[tuple[str, str], ...]:
    """The form of the answer, where it has to have one."""
    if not request.wants_json:
        return ()
    return (("response_format", _text(request.response_format.model_dump(by_alias=True, exclude_unset=True))),)


def pictures_in(messages: Sequence[ChatMessage]) -> tuple[str, ...]:
    """Where the pictures of the messages are, each once."""
    return tuple(dict.fromkeys(where for one in messages for where in one.pictures))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
