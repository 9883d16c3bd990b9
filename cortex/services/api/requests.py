"""What a program asks for: the body of OpenAI's chat completions as Cortex reads it. Pure, no table, no network.

Contract: https://platform.openai.com/docs/api-reference/chat (fields, roles, tool calls; read 2026-11-24). Fields that
only tune an answer (temperature and the like) are the model's own settings here and passed over; those that would
change what the answer is are refused rather than ignored.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cortex.base.errors import UserError
from cortex.base.json_text import must_be_small
from cortex.base.messages import Message, Part, ToolCall, ToolResult, ToolSchema, assistant, user
from cortex.services.models.files import Slips

MODEL = "cortex"  # whichever model the token's role asks
MOST_MESSAGES = 2_000
MOST_TOOLS = 512
MOST_ITEMS = 100_000  # values, names and lists: 512 tools of two hundred each
TEXT_PARTS = ("text", "refusal", "input_text", "output_text")
FIRST = Field(fail_fast=True)  # the first slip of a list is enough: fifty thousand would hold 100 MB
ToolName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str
    text: str = ""
    refusal: str = ""


class _Function(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str
    arguments: str = "{}"


class _Call(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    function: _Function


class ChatMessage(BaseModel):
    """One message of the request."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[_Part], FIRST] | None = None
    tool_calls: Annotated[list[_Call], FIRST] | None = None
    tool_call_id: str = ""

    @property
    def text(self) -> str:
        """Its words; UserError for anything else."""
        if not isinstance(self.content, list):
            return self.content or ""
        strange = next((part.type for part in self.content if part.type not in TEXT_PARTS), "")
        if strange:
            raise UserError(f"Only text is supported here, not {strange}.", field="messages")
        return "\n\n".join(part.text or part.refusal for part in self.content)


class _ToolFunction(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: ToolName
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})


class _Tool(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: Literal["function"]
    function: _ToolFunction


class _Named(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str


class _Choice(BaseModel):
    model_config = ConfigDict(extra="ignore")

    function: _Named


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class _Format(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str


class ChatRequest(BaseModel):
    """The body of `POST /v1/chat/completions`."""

    model_config = ConfigDict(extra="ignore")

    model: str = MODEL
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES, fail_fast=True)]
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    tools: Annotated[list[_Tool], Field(max_length=MOST_TOOLS, fail_fast=True)] | None = None
    tool_choice: Literal["none", "auto", "required"] | _Choice | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    n: Literal[1] | None = None
    response_format: _Format | None = None
    stop: str | Annotated[list[str], FIRST] | None = None
    logprobs: Literal[False] | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with what was used."""
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def asked_model(self) -> str:
        """The model that it names; "" for whichever the role asks."""
        return "" if self.model == MODEL else self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """What was said before, in pairs of words and answer, and what is asked now."""

    before: tuple[tuple[str, str], ...]
    text: str


def read_request(body: bytes) -> ChatRequest:
    """The request in this body; UserError says what is wrong with it."""
    try:
        must_be_small(body, items=MOST_ITEMS)
        request = ChatRequest.model_validate_json(body)
    except ValidationError as error:
        raise Slips(error) from error
    except ValueError as error:
        raise UserError(str(error)) from error
    if request.response_format is not None and request.response_format.type != "text":
        raise UserError("Cortex answers in words: ask for JSON in the message.", field="response_format")
    if request.stop:
        raise UserError("Stop sequences are not supported.", field="stop")
    return request


def dialogue_of(messages: Sequence[ChatMessage]) -> Dialogue:
    """The messages as a conversation whose last word is the user's. What the program instructs goes ahead of the first.

    UserError where there is nothing to answer, or where tools were called that the request does not carry.
    """
    pairs: list[tuple[list[str], list[str]]] = []
    instructed: list[str] = []
    for message in messages:
        if message.role == "tool" or message.tool_calls:
            raise UserError("Tool messages need their tools: send `tools` too.", field="messages")
        if message.role in ("system", "developer"):
            instructed.append(message.text)
        elif message.role == "assistant":
            if not pairs:
                pairs.append(([], []))
            pairs[-1][1].append(message.text)
        elif not pairs or pairs[-1][1]:
            pairs.append(([message.text], []))
        else:
            pairs[-1][0].append(message.text)
    if not pairs or pairs[-1][1]:
        raise UserError("The last message must be the user's.", field="messages")
    said = [("\n\n".join(words), "\n\n".join(answers)) for words, answers in pairs]
    if instructed:
        said[0] = ("\n\n".join([*instructed, said[0][0]]), said[0][1])
    return Dialogue(before=tuple(said[:-1]), text=said[-1][0])


def thread_of(said: Sequence[tuple[str, str]]) -> str:
    """What tells one course of a conversation from every other."""
    return hashlib.sha256(json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()


def passed_on(request: ChatRequest) -> tuple[str, tuple[Message, ...]]:
    """The instructions, and the messages as a model gets them, for a request that brings its own tools."""
    system = "\n\n".join(one.text for one in request.messages if one.role in ("system", "developer"))
    messages: list[Message] = []
    names: dict[str, str] = {}
    for one in request.messages:
        if one.role == "user":
            messages.append(user(one.text))
        elif one.role == "assistant":
            calls = [
                ToolCall(id=c.id, name=c.function.name, arguments=c.function.arguments) for c in one.tool_calls or ()
            ]
            names |= {call.id: call.name for call in calls}
            messages.append(assistant(one.text, *calls))
        elif one.role == "tool":
            if one.tool_call_id not in names:
                raise UserError(f"There is no call {one.tool_call_id!r} before this result.", field="messages")
            result = ToolResult(call_id=one.tool_call_id, name=names[one.tool_call_id], text=one.text)
            messages.append(_with_result(messages, result))
    return system, tuple(messages)


def tools_of(request: ChatRequest) -> tuple[ToolSchema, ...]:
    """The tools that the model may call; of one that must be called, that alone."""
    given = [tool.function for tool in request.tools or ()]
    if isinstance(request.tool_choice, _Choice):
        wanted = request.tool_choice.function.name
        given = [tool for tool in given if tool.name == wanted]
        if not given:
            raise UserError(f"There is no tool {wanted!r} in the request.", field="tool_choice")
    return tuple(ToolSchema(name=one.name, description=one.description, parameters=one.parameters) for one in given)


def choice_of(request: ChatRequest) -> Literal["auto", "required", "none"]:
    """Whether the model has to call a tool."""
    if isinstance(request.tool_choice, _Choice):
        return "required"
    return request.tool_choice or "auto"


def _with_result(messages: list[Message], result: ToolResult) -> Message:
    """The message of results with one more: those of one round stand together."""
    parts: tuple[Part, ...] = (result,)
    if messages and messages[-1].speaker == "tool":
        parts = (*messages.pop().parts, result)
    return Message(speaker="tool", parts=parts)
