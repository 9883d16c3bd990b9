"""Another shape of a request that a model's server did not take: shorter, without tools, without a parameter. Pure.

Used by `asking.py`, which asks the same model once more in it, says so in a line, and keeps what it teaches. The past
of a request is what stands ahead of `turn_from`; a call is never parted from its result.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.agent.history import FULL_AT, fitted
from cortex.agent.toolless import as_text
from cortex.base.errors import Rejection
from cortex.base.messages import Message, Opaque, Thinking, ToolCall, ToolSchema, assistant, user
from cortex.base.model import ModelEntry
from cortex.base.tokens import count, count_message, message_bytes, minified, wire_schema
from cortex.ports.loop import Request
from cortex.services.models.learned import ANSWER_SHARE, SMALLEST_ANSWER, ModelFact

SHAPES_MOST = 3
META = ("tools_discover", "tool_call")  # with these a model reaches what is not sent
LEAST_GUESS = 1_000  # tokens: a guess below it would leave the model of no use, whatever refused one short request
SPARE = 0.95  # of a window that is filled: counts of others differ a little from ours
GUESSES = {"shorter": 0.6, "few tools": 0.35, "barest": 0.2}  # of what was sent, where no window was named


class Shape(Struct, frozen=True, kw_only=True):
    """The request as it is asked next. `text`: for the person, one line; `facts`: what it shows if it is answered."""

    name: str
    request: Request
    text: str
    facts: tuple[ModelFact, ...] = ()


class Shapes(Struct, kw_only=True):
    """The shapes of one call to one model: each at most once, three in all. `turn_from` None: nothing is dropped."""

    entry: ModelEntry
    turn_from: int | None
    tried: set[str] = field(default_factory=set)
    pending: list[ModelFact] = field(default_factory=list)

    def next(self, request: Request, found: Rejection | None) -> Shape | None:
        """The next one for what was refused; None where no other shape would be taken. Counts tokens."""
        if found is None or len(self.tried) >= SHAPES_MOST:
            return None
        shape = _BY_KIND[found.what](self, request, found) if found.what in _BY_KIND else None
        if shape is None or shape.request == request:
            return None
        self.tried.add(shape.name)
        self.pending += shape.facts
        return shape

    def is_new(self, name: str) -> bool:
        """Tell whether this shape was not asked in yet."""
        return name not in self.tried


def _window(self: Shapes, request: Request, found: Rejection) -> Shape | None:
    """Less of the past, then fewer tools, then this message alone."""
    if self.turn_from is None:
        return None
    now = min(request.max_output_tokens or self.entry.max_output_tokens, self.entry.max_output_tokens)
    request, sent = replace(request, max_output_tokens=now), request_tokens(request)
    scale = max(1.0, found.sent_tokens / sent) if found.sent_tokens and sent else 1.0
    for name in filter(self.is_new, GUESSES):
        window = found.window_tokens or round(sent * GUESSES[name])
        shorter = shortened(request, self.turn_from, self.entry, window, scale, name)
        if shorter is not None and shorter != request:
            facts = (ModelFact(what="context_tokens", value=str(window)),)
            is_news = not found.window_tokens and window >= LEAST_GUESS
            text = f"{_takes(self.entry, found)}: asking again with {_less(request, shorter)}."
            return Shape(name=name, request=shorter, text=text, facts=facts if is_news else ())
    return None


def _takes(entry: ModelEntry, found: Rejection) -> str:
    """Return how much the model takes, against what was thought or set."""
    if not found.window_tokens:
        return f"{entry.name} takes less at once than was thought"
    is_set = "context_tokens" in entry.typed and entry.context_tokens > found.window_tokens
    other = f"not the {entry.context_tokens:,} set for it" if is_set else "fewer than was thought"
    return f"{entry.name} takes {found.window_tokens:,} tokens at once, {other}"


def _less(request: Request, shorter: Request) -> str:
    less = ["less of the chat"] if len(shorter.messages) < len(request.messages) else []
    less += ["fewer tools"] if len(shorter.tools) < len(request.tools) else []
    return " and ".join(less) or "room for a shorter answer"


def _output(self: Shapes, request: Request, found: Rejection) -> Shape | None:
    now = min(request.max_output_tokens or self.entry.max_output_tokens, self.entry.max_output_tokens)
    most = found.output_tokens or max(SMALLEST_ANSWER, now // 4)
    if most >= now:
        return None
    is_of_account = found.what == "credit"
    if is_of_account and most < SMALLEST_ANSWER:
        return None
    why = "its account affords no longer one" if is_of_account else f"it gives at most {most:,} tokens"
    text = f"{self.entry.name} refused an answer of up to {now:,} tokens: asking again for a shorter one, {why}."
    facts = () if found.output_tokens else (ModelFact(what="max_output_tokens", value=str(most)),)
    return Shape(name="output", request=replace(request, max_output_tokens=most), text=text, facts=facts)


def _credit(self: Shapes, request: Request, found: Rejection) -> Shape | None:
    return _output(self, request, found) if found.output_tokens else None


def _no_tools(self: Shapes, request: Request, found: Rejection) -> Shape | None:
    if not request.tools or self.turn_from is None:
        return None
    text = f"{self.entry.name} takes no tools: asking again without them."
    return Shape(name="tools", request=without_tools(request), text=text, facts=(ModelFact(what="tools"),))


def _no_pictures(self: Shapes, request: Request, found: Rejection) -> Shape | None:
    has_some = any(message.pictures for message in request.messages)
    if not has_some or self.turn_from is None or "pictures" in request.without:
        return None
    blind = replace(request, without=request.without | {"pictures"})
    what = "these pictures" if found.name else "pictures"
    text = f"{self.entry.name} does not take {what}: asking again without them."
    return Shape(name="pictures", request=blind, text=text, facts=() if found.name else (ModelFact(what="sees"),))


def _schema(self: Shapes, request: Request, found: Rejection) -> Shape | None:
    if not request.tools or self.turn_from is None:
        return None
    names = tool_names(found.name, request.tools)
    if not names:  # it did not say which
        text = f"{self.entry.name} does not take one of the tools: asking again without any."
        return Shape(name="tools", request=without_tools(request), text=text)
    left = replace(request, tools=tuple(tool for tool in request.tools if tool.name not in names), late_from=None)
    told = "the tool " + names[0] if len(names) == 1 else f"the tools {', '.join(names)}"
    text = f"{self.entry.name} does not take {told}: asking again without {'it' if len(names) == 1 else 'them'}."
    facts = tuple(ModelFact(what="tool", value=name) for name in names)
    request = left if left.tools else without_tools(left)
    return Shape(name=f"schema {' '.join(names)}", request=request, text=text, facts=facts)


def _parameter(self: Shapes, request: Request, found: Rejection) -> Shape | None:
    if found.name == "tools":
        return _no_tools(self, request, found)
    if not found.name or found.name in request.without:
        return None
    is_stream = found.name == "stream"
    what = "does not stream its answer" if is_stream else f"does not take the parameter {found.name}"
    how = "asking again for it in one piece" if is_stream else "asking again without it"
    fact = ModelFact(what="streams") if is_stream else ModelFact(what="parameter", value=found.name[:80])
    changed = replace(request, without=request.without | {found.name})
    text = f"{self.entry.name} {what}: {how}."
    return Shape(name=f"parameter {found.name}", request=changed, text=text, facts=(fact,))


def _no_thinking(self: Shapes, request: Request, found: Rejection) -> Shape | None:
    if "thinking" in request.without:
        return _plain(self, request, found)
    text = f"{self.entry.name} does not take its earlier reasoning back: asking again without it."
    changed = replace(request, without=request.without | {"thinking"})
    return Shape(name="thinking", request=changed, text=text, facts=(ModelFact(what="parameter", value="thinking"),))


def _plain(self: Shapes, request: Request, found: Rejection) -> Shape | None:
    """The whole past in plain words, speakers taking turns: what any server takes."""
    if not self.is_new("plain"):
        return None
    told = replace(request, messages=_turns(as_text(request.messages)), without=request.without | {"thinking"})
    if told.messages == request.messages:
        return None
    text = f"{self.entry.name} does not take the calls of this chat as they are: asking again with them in words."
    return Shape(name="plain", request=replace(told, late_from=None), text=text)


def _other(self: Shapes, request: Request, found: Rejection) -> Shape | None:
    """Where nobody knows what was refused: what was a try, then the past in words, no tools, this message alone."""
    if self.turn_from is None:
        return None
    if self.entry.sees is None and (blind := _no_pictures(self, request, replace(found, name=""))) is not None:
        return blind  # they were a try
    past = request.messages[: self.turn_from]
    is_odd = any(isinstance(part, Opaque | Thinking | ToolCall) for message in past for part in message.parts)
    told = f"{self.entry.name} refused the request: asking again"
    if is_odd and (shape := _plain(self, request, found)) is not None:
        return replace(shape, text=f"{told} with its past in words.")
    if request.tools and self.is_new("tools"):
        return Shape(name="tools", request=without_tools(request), text=f"{told} without tools.")
    bare = without_tools(replace(request, messages=request.messages[self.turn_from :]))
    return Shape(name="bare", request=bare, text=f"{told} with this message alone.") if self.is_new("bare") else None


_BY_KIND: dict[str, Callable[[Shapes, Request, Rejection], Shape | None]] = {
    "window": _window,
    "output": _output,
    "credit": _credit,
    "tools": _no_tools,
    "pictures": _no_pictures,
    "schema": _schema,
    "parameter": _parameter,
    "thinking": _no_thinking,
    "ids": _plain,
    "order": _plain,
    "other": _other,
}


def named(found: Rejection) -> tuple[ModelFact, ...]:
    """The limits that the server itself named: they count whatever comes of the next request."""
    if found.what == "window" and found.window_tokens:
        return (ModelFact(what="context_tokens", value=str(found.window_tokens)),)
    if found.what == "output" and found.output_tokens:
        return (ModelFact(what="max_output_tokens", value=str(found.output_tokens)),)
    return ()


def prepared(entry: ModelEntry, request: Request, turn_from: int | None) -> Request:
    """The request as this model is known to take it, where it was planned for another. Counts tokens where need be."""
    if turn_from is None:
        return request
    request = without_refused(entry, request)
    if request.tools and not entry.tools:
        request = without_tools(request)
    most = entry.request_tokens * FULL_AT
    if _bytes(request) <= most or request_tokens(request) <= most:
        return request
    for name in GUESSES:
        shorter = shortened(request, turn_from, entry, entry.context_tokens, 1.0, name)
        if shorter is not None:
            return replace(shorter, max_output_tokens=request.max_output_tokens)
    return request


def without_refused(entry: ModelEntry, request: Request) -> Request:
    """The request without the tools whose form this model's server refused: an open epoch may hold one still."""
    tools = tuple(tool for tool in request.tools if tool.name not in entry.left_out)
    if len(tools) == len(request.tools):
        return request
    return replace(request, tools=tools, late_from=None) if tools else without_tools(request)


def shortened(
    request: Request, turn_from: int, entry: ModelEntry, window: int, scale: float, name: str
) -> Request | None:
    """The request within this window, in the shape of this name; None where it does not go in.

    scale: how many tokens its server counts for one of ours.
    """
    now = min(request.max_output_tokens or entry.max_output_tokens, entry.max_output_tokens)
    answer = min(now, max(SMALLEST_ANSWER, window // ANSWER_SHARE if name != "barest" else 0))
    room = round((window - answer) * SPARE / scale)
    past, turn = request.messages[:turn_from], request.messages[turn_from:]
    left = room - count(request.system) - sum(map(count_message, turn))
    tools = request.tools if name == "shorter" else _likely(request, turn, left if name == "barest" else left // 2)
    left -= count(minified([wire_schema(tool) for tool in tools])) if tools else 0
    if left < 0:
        return None
    kept = () if name == "barest" else fitted(past, left, count_message)
    shorter = replace(request, messages=(*kept, *turn), max_output_tokens=answer)
    if tools == request.tools:
        return shorter
    return replace(shorter, tools=tools, late_from=None) if tools else without_tools(shorter)


def _likely(request: Request, turn: Sequence[Message], room: int) -> tuple[ToolSchema, ...]:
    """The tools that this turn used, those that lead to others, and the likeliest, as far as they go in."""
    used = {call.name for message in turn for call in message.calls}
    chances = dict(request.hints)

    def rank(tool: ToolSchema) -> tuple[bool, bool, float]:
        return tool.name not in used, tool.name not in META, -chances.get(tool.name, 0.0)

    kept: set[str] = set()
    for tool in sorted(request.tools, key=rank):
        room -= count(minified(wire_schema(tool)))
        if room < 0:
            break
        kept.add(tool.name)
    return tuple(tool for tool in request.tools if tool.name in kept)


def without_tools(request: Request) -> Request:
    """The request with no tool declared, its past calls in words."""
    return replace(request, tools=(), tool_choice="auto", late_from=None, messages=as_text(request.messages))


def tool_names(told: str, tools: Sequence[ToolSchema]) -> tuple[str, ...]:
    """The tools of a request that a refusal named, by name or by place."""
    sent = [tool.name for tool in tools]
    found = []
    for one in told.split(","):
        place = one.removeprefix("tools[").removesuffix("]")
        if one.startswith("tools[") and place.isdecimal() and int(place) < len(sent):
            found.append(sent[int(place)])
        elif one in sent:
            found.append(one)
    return tuple(dict.fromkeys(found))


def request_tokens(request: Request) -> int:
    """Return what the request takes, by our count."""
    return sum(map(count, _texts(request))) + sum(map(count_message, request.messages))


def cannot_fit(entry: ModelEntry, request: Request, turn_from: int | None, found: Rejection) -> str:
    """Return what to say where not even this message goes in."""
    least = replace(request, messages=request.messages[turn_from or 0 :], tools=())
    most = f"{found.window_tokens:,} tokens" if found.window_tokens else "less"
    told = f"{entry.name}: it takes {most} at once, and this message alone, with what goes with it, is about"
    return f"{told} {request_tokens(least):,}. Send less at once, or choose a model that takes more."


def _bytes(request: Request) -> int:
    return sum(len(text.encode()) for text in _texts(request)) + sum(map(message_bytes, request.messages))


def _texts(request: Request) -> Iterable[str]:
    return request.system, minified([wire_schema(tool) for tool in request.tools]) if request.tools else ""


def _turns(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The same words with neighbours of one speaker as one message, a user's first; no reasoning of earlier models."""
    told: list[Message] = []
    for message in messages:
        parts = tuple(part for part in message.parts if not isinstance(part, Thinking))
        plain = user(message.text, pictures=message.pictures) if message.speaker == "user" else assistant(message.text)
        if not parts or not (plain.text or plain.pictures):
            continue
        if not told and plain.speaker == "assistant":
            told.append(user("(The chat began earlier.)"))
        if told and told[-1].speaker == plain.speaker:
            told[-1] = replace(told[-1], parts=(*told[-1].parts, *plain.parts))
        else:
            told.append(plain)
    return tuple(told)
