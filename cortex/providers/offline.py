"""The offline demo model: a small deterministic planner that calls tools by rules, for a first look and for tests.

It is no AI and says so. It never stands in for a real model that fails. Loaded by `connect`; needs no network.
"""

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from cortex.base.attachments import HEAD
from cortex.base.lacking import noted_in
from cortex.base.messages import DONE_ALREADY, Message, Text, ToolCall, ToolResult, ToolSchema, Usage, assistant
from cortex.base.model import ModelEntry
from cortex.base.tokens import minified, wire_schema
from cortex.ports.loop import Delta, Request, StreamEnd
from cortex.providers import ProviderContext
from cortex.providers.offline_arguments import fill, things, words_of
from cortex.providers.offline_intent import aim_of, asks_for, does, least_chance, says_nothing
from cortex.providers.offline_talk import is_about_now, reply
from cortex.providers.offline_words import in_words

_RESULT_CHARACTERS = 4_000
_CLAUSES = re.compile(
    r"\s*;\s+|,?\s+(?:and|but)\s+(?:then|also|afterwards)\s+|,\s*then\s+|[.!]\s+(?:then|also|and)\s+", re.IGNORECASE
)
_LONG_BLANK = re.compile(r"(\s{20})\s+")  # patterns that begin anew at each blank take seconds for thousands of them
_MOMENT = re.compile(r"\b(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[+-]\d\d:?\d\d|Z)?)?)")
_ATTACHED = re.compile(re.escape(HEAD) + r" (.+?) · ")
_ID = re.compile(r"\s*\(id [0-9a-z]{4,}(?:, ([^()]*(?:\([^()]*\)[^()]*)*))?\)")
_DENIED = re.compile(r"The user denied this call\b")  # both as agent/refusals.py says it to models
_CHANGED = re.compile(r"^The person changed the arguments to .*? and allowed that\. Its result:\n", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z])")
_NAME = re.compile(r"\b[a-z]\w*_\w+")
_NOTE = re.compile(r"\s*\[[^\[\]]*\]\s*$")  # behind a result, for a model: how to read on
_LISTED = re.compile(r"[-*] ")
_ALIGNED = re.compile(r"\S {2,}\S|\t")


def connect(entry: ModelEntry, secret: str | None, surroundings: ProviderContext) -> "OfflineProvider":
    """The offline model; it takes no secret."""
    del entry, secret
    return OfflineProvider(surroundings)


class OfflineProvider:
    """The `Provider` of kind "offline"."""

    def __init__(self, surroundings: ProviderContext) -> None:
        self._surroundings = surroundings

    async def stream(self, request: Request) -> AsyncIterator[Delta | StreamEnd]:
        """The answer in small pieces, then the whole."""
        message = self._answer(request)
        for piece in re.findall(r"\S+\s*", message.text):
            await asyncio.sleep(self._surroundings.chunk_delay_s)
            yield Delta(kind="text", text=piece)
        yield StreamEnd(
            message=message, usage=self._usage(request, message), finish="calls" if message.calls else "stop"
        )

    async def close(self) -> None:
        """Nothing to let go of."""

    def _usage(self, request: Request, message: Message) -> Usage:
        count = self._surroundings.count
        sent = [minified([wire_schema(tool) for tool in request.tools])] if request.tools else []
        sent += [request.system, *(_words(each) for each in request.messages)]
        return Usage(input_tokens=sum(map(count, sent)), output_tokens=count(_words(message)))

    def _answer(self, request: Request) -> Message:
        start = _last_user(request.messages)
        first = _first_sent(request.messages, start)
        said = "; ".join(_asked(request.messages, at) for at in range(first, start + 1))
        words = _LONG_BLANK.sub(r"\1", said)
        results = _results(request.messages[start + 1 :])
        told = _results(request.messages[max(0, first - 1) : start]) + results
        if request.purpose == "summary":
            return assistant(_extract(words))
        calls = self._next_calls(request, words, results) if request.tool_choice != "none" else []
        fresh = [call for call in calls if not _is_done(request.messages[start], call)]
        if calls and not fresh:
            return assistant("An earlier version of this answer did that already, so nothing was done again.")
        if fresh:
            return assistant("", *fresh)
        if told:
            today = self._moment(request).date()
            return assistant("\n\n".join(in_words(_worded(each, request.tools), today) for each in told))
        received = _received(request.messages[start]) if start >= 0 else ""
        return assistant(
            received + reply(words, self._moment(request), noted_in("\n".join(_notes(request.messages, start))))
        )

    def _next_calls(self, request: Request, words: str, results: list[ToolResult]) -> list[ToolCall]:
        """The calls for the next clause that nothing was done for yet: one, or one for each thing put on a list."""
        if is_about_now(words) or any(each.is_error for each in results):
            return []
        done = 0
        for clause in filter(str.strip, _CLAUSES.split(words)):
            each_thing = things(clause)
            if done >= len(results):
                calls = [self._call(request, one, is_first=not done) for one in each_thing]
                return [call for call in calls if call is not None] if all(calls) else []
            done += len(each_thing)
        return []

    def _call(self, request: Request, clause: str, *, is_first: bool) -> ToolCall | None:
        """The call that the clause asks for; None where none of the sent tools does it."""
        for tool in _candidates(request, clause, is_first=is_first):
            arguments = fill(tool, clause, self._moment(request), self._surroundings.timings)
            if arguments is not None and _is_empty(tool, arguments):
                return None
            if arguments is not None:
                return ToolCall(id=f"call_{uuid.uuid4().hex[:24]}", name=tool.name, arguments=minified(arguments))
        return None

    def _moment(self, request: Request) -> datetime:
        """The moment that the request itself names in its notes after the user's words, else the clock's."""
        clock = self._surroundings.clock()
        notes = _notes(request.messages, _last_user(request.messages))
        match = next(filter(None, map(_MOMENT.search, reversed(notes))), None)  # the tail of the round comes last
        if match is None:
            return clock
        moment = datetime.fromisoformat(match[1])
        return moment if moment.tzinfo else moment.replace(tzinfo=clock.tzinfo)


def _last_user(messages: tuple[Message, ...]) -> int:
    """Where the person last spoke; a note of Cortex in brackets, put behind results, is not the person."""
    spoken = [
        index
        for index, each in enumerate(messages)
        if each.speaker == "user"
        and not (index and messages[index - 1].speaker == "tool" and each.text.startswith("("))
    ]
    return spoken[-1] if spoken else -1


def _first_sent(messages: tuple[Message, ...], last: int) -> int:
    """Where what was sent while a turn ran begins: several messages in a row, right behind results; else `last`."""
    first = last
    while first > 0 and messages[first - 1].speaker == "user":
        first -= 1
    return first if first > 0 and messages[first - 1].speaker == "tool" else last


def _results(messages: tuple[Message, ...]) -> list[ToolResult]:
    return [part for each in messages for part in each.parts if isinstance(part, ToolResult)]


def _asked(messages: tuple[Message, ...], start: int) -> str:
    """The person's own words: the first text of the message; what Cortex adds to it stands in later ones."""
    if start < 0:
        return ""
    return next((part.text for part in messages[start].parts if isinstance(part, Text)), "")


def _notes(messages: tuple[Message, ...], start: int) -> list[str]:
    """Return what Cortex added to the message."""
    return [part.text for part in messages[start].parts if isinstance(part, Text)][1:] if start >= 0 else []


def _is_done(message: Message, call: ToolCall) -> bool:
    """Tell whether an earlier try of this message made the same call, as the note behind its words says."""
    done = next((note for note in _notes((message,), 0) if DONE_ALREADY in note), "")
    lines = (line.removeprefix(f"- {call.name} ") for line in done.splitlines() if line.startswith(f"- {call.name} {{"))
    asked = json.loads(call.arguments)
    return any(asked.items() <= _arguments(line).items() for line in lines)


def _arguments(line: str) -> dict[str, Any]:
    """The arguments that a line begins with; {} where it was cut off."""
    try:
        found: dict[str, Any] = json.JSONDecoder().raw_decode(line)[0]
    except ValueError:
        return {}
    return found


def _words(message: Message) -> str:
    shown: list[str] = []
    for part in message.parts:
        match part:
            case ToolCall():
                shown.append(f"{part.name} {part.arguments}")
            case Text() | ToolResult():
                shown.append(part.text)
            case _:
                continue
    return "\n".join(shown)


def _is_empty(tool: ToolSchema, arguments: dict[str, Any]) -> bool:
    """Tell whether the call would write words that name nothing: "remember things", "delete everything"."""
    required = tool.parameters.get("required", [])
    return does(tool) != "read" and any(
        isinstance(arguments[name], str) and says_nothing(arguments[name]) for name in required
    )


def _candidates(request: Request, clause: str, *, is_first: bool) -> list[ToolSchema]:
    """The sent tools that the clause asks for and hints speak for, best first; a later clause must share a word.

    Of tools hinted at alike the one with more words in common. Where a call is required, every sent tool will do.
    """
    hints = dict(request.hints)
    said = words_of(clause)
    is_required = request.tool_choice == "required"
    is_told = aim_of(clause) == "send"  # what waits for its time fits only where one is named, and is then meant
    scored: list[tuple[float, int, ToolSchema]] = []
    for tool in request.tools:
        if not is_required and not asks_for(clause, tool):
            continue
        probability = hints.get(tool.name, 0.0)
        least = 0.0 if is_required else least_chance(clause, tool)
        shared = len(said & words_of(f"{tool.name} {tool.description}"))
        if probability >= least and (is_first or shared):
            waits = 1.0 if is_told and does(tool) == "make" else 0.0
            scored.append((waits + probability + (0.0 if is_first else 0.5 * shared), shared, tool))
    return [tool for _, _, tool in sorted(scored, key=lambda each: (-each[0], -each[1]))]


def _worded(result: ToolResult, tools: tuple[ToolSchema, ...]) -> str:
    """A result for a person, without the ids and the tool names that models need; a long one under a line of words."""
    if _DENIED.match(result.text):
        return "You did not allow it, so nothing was done."
    names = frozenset(tool.name for tool in tools)
    note = _NOTE.search(result.text)
    said = result.text[: note.start()] if note and names & set(_NAME.findall(note[0])) else result.text
    kept = [part for part in _SENTENCE.split(said.strip()) if not names & set(_NAME.findall(part))]
    text = _ID.sub(_without_id, _CHANGED.sub("", " ".join(kept)).strip())
    if len(text) > _RESULT_CHARACTERS:
        text = text[:_RESULT_CHARACTERS].rstrip() + "\n…"
    if result.is_error:
        return f"That did not work: {text or 'no reason was given'}"
    if not text:
        return "Done."
    if "\n" not in text and len(text) <= 300 and not _LISTED.match(text):
        return text
    fence = "~~~~" if _ALIGNED.search(text) else ""
    body = f"{fence}\n{text}\n{fence}" if fence else text
    return f"Here is what I found:\n\n{body}"


def _received(message: Message) -> str:
    """Return what came with the message, by name; "" for nothing."""
    names = [picture.name for picture in message.pictures]
    texts = [part.text for part in message.parts if isinstance(part, Text)][1:]
    names += [match[1] for text in texts if (match := _ATTACHED.match(text))]
    if not names:
        return ""
    return f"I got {', '.join(names)}, and can neither see pictures nor read files. "


def _without_id(match: re.Match[str]) -> str:
    """Return what else stands in the brackets of an id."""
    return f" ({match[1]})" if match[1] else ""


def _extract(text: str) -> str:
    """A summary by taking the first sentence of each paragraph, in order."""
    firsts = [
        re.split(r"(?<=[.!?])\s", line.strip(), maxsplit=1)[0][:240] for line in text.splitlines() if line.strip()
    ]
    kept = list(dict.fromkeys(firsts))
    return "\n".join(kept[:40]) or json.dumps("")
