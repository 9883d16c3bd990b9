"""What a program asks for: the body of OpenAI's chat completions as Cortex reads it. Pure, no table, no network.

Contract: https://platform.openai.com/docs/api-reference/chat (fields, roles, tool calls; read 2026-11-24). A field that
is null is one that is not there; one that is not known does no harm. What would make the answer another one, and cannot
be done, is refused. What of it a model gets, and how: `passing.py`.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cortex.base.errors import UserError
from cortex.base.json_text import must_be_small
from cortex.services.models.files import placed_slips

MODEL = "cortex"  # whichever model the token's role asks
MOST_MESSAGES = 2_000
MOST_TOOLS = 512
MOST_STOPS, MOST_STOP_CHARACTERS = 32, 200
MOST_ITEMS = 100_000  # values, names and lists: 512 tools of two hundred each
MOST_SLIPS = 3
TEXT_PARTS = ("text", "refusal", "input_text", "output_text")
REASONING_PARTS = ("thinking", "redacted_thinking", "reasoning")  # what some clients send back of an answer
PICTURE_PARTS = ("image_url", "input_image")
FIRST = Field(fail_fast=True)  # the first slip of a list is enough: fifty thousand would hold 100 MB
ToolName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


class BadRequest(UserError):
    """Raised for what cannot be read or done. `code`: OpenAI's word for it, which clients look at."""

    def __init__(self, message: str, *, field: str = "", code: str = "invalid_value") -> None:
        super().__init__(message, field=field)
        self.code = code


class WireModel(BaseModel):
    """An object of the body. Clients write null for what they leave out."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {key: value for key, value in given.items() if value is not None} if isinstance(given, dict) else given


B = TypeVar("B", bound=WireModel)


class _Address(WireModel):
    url: str = ""


class _Part(WireModel):
    type: str = "text"
    text: str = ""
    refusal: str = ""
    image_url: _Address | str = ""

    @property
    def picture(self) -> str:
        """Where its picture is, "" for a part that is none."""
        if self.type not in PICTURE_PARTS:
            return ""
        return self.image_url if isinstance(self.image_url, str) else self.image_url.url


class _Function(WireModel):
    name: str
    arguments: str | dict[str, Any] = ""

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON text, as they came."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


class _Call(WireModel):
    id: str = ""
    function: _Function


class ChatMessage(WireModel):
    """One message of the request."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[_Part], FIRST] = ""
    tool_calls: Annotated[list[_Call], FIRST] = []
    tool_call_id: str = ""
    name: str = ""

    @property
    def is_instruction(self) -> bool:
        """Tell whether it tells the model how to answer, and is nobody's turn to speak."""
        return self.role in ("system", "developer")

    @property
    def texts(self) -> tuple[str, ...]:
        """Its words, part by part; BadRequest for what is neither words nor a picture of the user's."""
        if isinstance(self.content, str):
            return (self.content,) if self.content else ()
        for part in self.content:
            is_picture = part.type in PICTURE_PARTS
            if is_picture and self.role != "user":
                raise BadRequest("Pictures are taken in messages of the user.", field="messages")
            if not is_picture and part.type not in (*TEXT_PARTS, *REASONING_PARTS):
                raise BadRequest(f"Text and pictures are supported here, not {part.type[:40]}.", field="messages")
        return tuple(part.text or part.refusal for part in self.content if part.type in TEXT_PARTS)

    @property
    def text(self) -> str:
        """Its words."""
        return "\n\n".join(filter(None, self.texts))

    @property
    def pictures(self) -> tuple[str, ...]:
        """Where its pictures are."""
        if isinstance(self.content, str):
            return ()
        return tuple(part.picture for part in self.content if part.type in PICTURE_PARTS)


class _ToolFunction(WireModel):
    name: ToolName
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool = False


class _Tool(WireModel):
    type: Literal["function"] = "function"
    function: _ToolFunction


class _Named(WireModel):
    name: str = ""


class _Allowed(WireModel):
    mode: Literal["auto", "required"] = "auto"
    tools: Annotated[list[dict[str, Any]], Field(max_length=MOST_TOOLS)] = []


class ChosenTools(WireModel):
    """A choice of tools: the one that must be called, or those that may."""

    type: Literal["function", "allowed_tools"] = "function"
    function: _Named = _Named()
    allowed_tools: _Allowed = _Allowed()

    @property
    def names(self) -> tuple[str, ...]:
        """The tools it leaves."""
        if self.type == "function":
            return (self.function.name,)
        named = (tool.get("function") for tool in self.allowed_tools.tools)
        return tuple(str(one.get("name", "")) for one in named if isinstance(one, dict))

    @property
    def is_forced(self) -> bool:
        """Tell whether one of them must be called."""
        return self.type == "function" or self.allowed_tools.mode == "required"


class _StreamOptions(WireModel):
    include_usage: bool = False


class _FormatSchema(WireModel):
    name: str = "answer"
    description: str = ""
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool = False


class _Format(WireModel):
    type: Literal["text", "json_object", "json_schema"] = "text"
    json_schema: _FormatSchema | None = None


class ChatRequest(WireModel):
    """The body of `POST /v1/chat/completions`."""

    model: str = MODEL
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES, fail_fast=True)]
    stream: bool = False
    stream_options: _StreamOptions = _StreamOptions()
    tools: Annotated[list[_Tool], Field(max_length=MOST_TOOLS, fail_fast=True)] = []
    tool_choice: Literal["none", "auto", "required", "any"] | ChosenTools = "auto"
    parallel_tool_calls: bool = True
    max_tokens: Annotated[int, Field(ge=-1)] = -1
    max_completion_tokens: Annotated[int, Field(ge=-1)] = -1
    response_format: _Format = _Format()
    stop: str | Annotated[list[str], FIRST] = []
    n: int = 1
    logprobs: bool = False
    top_logprobs: int = 0
    functions: list[Any] = []
    function_call: Any = None
    modalities: list[str] = []
    web_search_options: dict[str, Any] | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    logit_bias: dict[str, float] | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    top_k: int | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    repetition_penalty: float | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    @property
    def wants_usage(self) -> bool:
        """Tell whether a stream ends with what was used."""
        return self.stream_options.include_usage

    @property
    def asked_model(self) -> str:
        """The model that it names; "" for whichever the role asks."""
        return "" if self.model in ("", MODEL) else self.model

    @property
    def most_tokens(self) -> int | None:
        """Return how long the answer may be; None where it does not say it. Some clients write -1 for that."""
        given = self.max_completion_tokens if self.max_completion_tokens > 0 else self.max_tokens
        return given if given > 0 else None

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts ahead of which the answer ends."""
        return tuple(filter(None, (self.stop,) if isinstance(self.stop, str) else self.stop))

    @property
    def has_tool_history(self) -> bool:
        """Tell whether the program ran tools of its own before, which stand in its messages."""
        return any(one.role == "tool" or one.tool_calls for one in self.messages)

    @property
    def wants_json(self) -> bool:
        """Tell whether the answer has to be JSON."""
        return self.response_format.type != "text"


def read_as(kind: type[B], body: bytes, *, items: int = MOST_ITEMS) -> B:
    """The body as one of these, whichever protocol it is of; BadRequest says what is wrong with it."""
    try:
        must_be_small(body, items=items)
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise _unread(error) from error
    except ValueError as error:
        raise BadRequest(str(error)) from error


def read_request(body: bytes) -> ChatRequest:
    """The request in this body; BadRequest says what is wrong with it."""
    request = read_as(ChatRequest, body)
    _must_be_doable(request)
    return request


def request_of(chat: Mapping[str, Any]) -> ChatRequest:
    """The request that one of another protocol was rewritten as; BadRequest says what is wrong with it."""
    try:
        request = ChatRequest.model_validate(chat)
    except ValidationError as error:
        raise _unread(error) from error
    _must_be_doable(request)
    return request


def _must_be_doable(request: ChatRequest) -> None:
    """BadRequest for what would make the answer another one and is not done here."""
    for field, is_asked, words in (
        ("n", request.n != 1, "Cortex gives one answer to a request. Leave n at 1, or ask again for another answer."),
        ("logprobs", request.logprobs or request.top_logprobs, "Log probabilities are not available. Leave them out."),
        ("functions", request.functions, "`functions` is the older form of this API. Send `tools` instead."),
        ("modalities", set(request.modalities) - {"text"}, "Cortex answers in text. Leave out the other modalities."),
        ("web_search_options", request.web_search_options, "Web search cannot be asked for by web_search_options."),
        ("stop", len(request.stops) > MOST_STOPS, f"At most {MOST_STOPS} stop sequences can be given."),
        ("stop", max(map(len, request.stops), default=0) > MOST_STOP_CHARACTERS, "A stop sequence is too long."),
    ):
        if is_asked:
            raise BadRequest(words, field=field, code="unsupported_value")
    if request.response_format.type == "json_schema" and request.response_format.json_schema is None:
        raise BadRequest(
            "response_format of type json_schema needs json_schema.",
            field="response_format.json_schema",
            code="missing_required_parameter",
        )


def _unread(error: ValidationError) -> BadRequest:
    """The first slips, by their place."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    slips = [f"{_place(each['loc'])}: {words}" for each, (_, words) in zip(found, placed_slips(error), strict=True)]
    first = found[0]["type"]
    code = "missing_required_parameter" if first == "missing" else "invalid_value"
    code = "invalid_type" if first.endswith("_type") or first == "json_invalid" else code
    text = "; ".join(dict.fromkeys(slips[:MOST_SLIPS])).removeprefix(": ")
    return BadRequest(f"{text}.", field=_place(found[0]["loc"]), code=code)


def _place(steps: Sequence[int | str]) -> str:
    """A field as OpenAI writes it, such as messages[0].content; without the names of the forms that were tried."""
    made = ""
    for step in steps:
        if isinstance(step, int):
            made += f"[{step}]"
        elif step.islower() and step.replace("_", "").isalpha() and step not in ("str", "literal"):
            made += f".{step}" if made else step
    return made


class Dialogue(Struct, frozen=True, kw_only=True):
    """The words said before, in pairs of words and answer, and what is asked now.

    `instructions`: what the program tells the model beside them, each time anew. `begun`: how the answer begins,
    where the program gives its beginning. `pictures`, `pictures_before`: where those of the words now and before are.
    """

    before: tuple[tuple[str, str], ...]
    text: str
    instructions: str = ""
    begun: str = ""
    pictures: tuple[str, ...] = ()
    pictures_before: tuple[str, ...] = ()


def dialogue_of(messages: Sequence[ChatMessage]) -> Dialogue:
    """The messages as a conversation whose last word is the user's, or the beginning of the answer to that.

    BadRequest where there is nothing to answer.
    """
    pairs: list[tuple[list[str], list[str]]] = []
    pictures: list[tuple[str, ...]] = []
    for message in messages:
        if message.is_instruction:
            continue
        if not pairs or (message.role == "user" and pairs[-1][1]):
            pairs.append(([], []))
            pictures.append(())
        pairs[-1][message.role == "assistant"].append(message.text)
        pictures[-1] += message.pictures
    if not pairs or not pairs[-1][0]:
        raise BadRequest("There is no message of the user to answer.", field="messages")
    instructions = "\n\n".join(filter(None, (one.text for one in messages if one.is_instruction)))
    said = [("\n\n".join(words), "\n\n".join(answers)) for words, answers in pairs]
    return Dialogue(
        before=tuple(said[:-1]),
        text=said[-1][0],
        instructions=instructions,
        begun=said[-1][1],
        pictures=pictures[-1],
        pictures_before=tuple(one for each in pictures[:-1] for one in each),
    )


def thread_of(said: Sequence[tuple[str, str]]) -> str:
    """Return what tells one course of a conversation from every other."""
    return hashlib.sha256(json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()
