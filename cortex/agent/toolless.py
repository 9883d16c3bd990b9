"""The messages of a request that declares no tool: past calls in words, and nothing that speaks of tools to be had.

A view, as `history.py` is: the transcript keeps all of it, and the next request with tools shows it again.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from cortex.agent.arguments import SPILLED, behind_bridge
from cortex.agent.prompt import is_note
from cortex.base.attachments import without_readers
from cortex.base.messages import Message, Part, Text, ToolCall, ToolResult, assistant, user
from cortex.base.tokens import minified
from cortex.selection.index.skill_search import HEAD as SKILLS_HEAD
from cortex.selection.pipeline import NOTES_HEAD

_NOW_HEAD, _NOW_END = "(Cortex: these tools are available now: ", ". Go on with the request.)"
_NOW = re.compile(rf"{re.escape(_NOW_HEAD)}[\w.-]+(?:, [\w.-]+)*{re.escape(_NOW_END)}")
GO_ON = "(Cortex: Go on with the request.)"
_SEARCH = "tools_discover"
_LISTS = (NOTES_HEAD, SKILLS_HEAD)


def now_there(names: Sequence[str]) -> str:
    """The note that says which tools came in between."""
    return f"{_NOW_HEAD}{', '.join(names)}{_NOW_END}"


def as_text(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The same messages with past calls and results in words, for a request that declares no tool.

    Providers refuse tool parts without tool definitions; the words stay with their speaker, and
    results become the user's side of the talk so that speakers still take turns. Searches for tools, the signatures of
    those that came late and how more of a text is read are left out: a model would only imitate them. Where the
    last message is left out, words to go on take its place: many a server refuses a request that ends with the model's.
    """
    names = {call.id: behind_bridge(call)[0] for message in messages for call in message.calls}
    texts = tuple(text for message in messages if (text := _text_of(message, names)) is not None)
    is_models = bool(texts) and texts[-1].speaker == "assistant"
    return (*texts, user(GO_ON)) if is_models and messages[-1].speaker != "assistant" else texts


def _text_of(message: Message, names: Mapping[str, str]) -> Message | None:
    """The message in words; None where nothing of it is left."""
    if message.speaker == "user":
        return _spoken(message)
    lines = [part.text for part in message.parts if isinstance(part, Text)]
    if message.speaker == "tool":
        given = (part for part in message.parts if isinstance(part, ToolResult) and part.name != _SEARCH)
        lines += [_given(part, names.get(part.call_id, part.name)) for part in given]
        return user("\n".join(lines)) if lines else None
    if not message.calls:
        return message
    lines += [_used(call) for call in message.calls if call.name != _SEARCH]
    return assistant("\n".join(lines)) if lines else None


def _spoken(message: Message) -> Message | None:
    """A message of the person's side: what they typed as it is, what Cortex put behind it without its tools."""
    if _NOW.fullmatch(message.said):  # a person's own words may begin so
        return None
    parts: list[Part] = []
    for at, part in enumerate(message.parts):
        if isinstance(part, Text) and (at or is_note(part.text)):
            words = _without_lists(without_readers(part.text))
            parts += [part if words == part.text else replace(part, text=words)] if words else []
        else:
            parts.append(part)
    return replace(message, parts=tuple(parts)) if parts else None


def _without_lists(text: str) -> str:
    """The text without the lists that Cortex puts behind a message: late tools and how-tos."""
    if not any(head in text for head in _LISTS):
        return text
    kept: list[str] = []
    is_listed = False
    for line in text.splitlines():
        is_listed = line.removeprefix("(") in _LISTS or (is_listed and line.startswith("- "))
        if not is_listed:
            kept.append(line)
    return "\n".join(kept)


def _used(call: ToolCall) -> str:
    name, arguments = behind_bridge(call)
    return f"[used {name} with {call.arguments if name == call.name else minified(arguments)}]"


def _given(result: ToolResult, name: str) -> str:
    shown, _, last = result.text.rpartition("\n")
    text = f"{shown}\n[...]" if last.startswith("[...") and SPILLED in last else result.text
    return f"[{name} gave: {text}]"
