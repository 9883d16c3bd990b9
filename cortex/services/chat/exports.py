"""A conversation as a file to keep: Markdown to read, JSON to process. Pure functions, called by `conversations.py`."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from typing import Any

from cortex.agent.refusals import for_person
from cortex.base.events import Event
from cortex.base.messages import Message, Text, ToolCall, ToolResult, to_json
from cortex.base.record import as_dict
from cortex.storage.conversations import ConversationRow
from cortex.storage.messages import MessageRow
from cortex.storage.turns import TurnRow

FORMAT = "cortex.conversation/1"
_OF_CONVERSATION = (
    *("id", "title", "role", "mode", "recipe", "model", "uses_memory", "tool_choices", "max_rounds"),
    *("created_at", "updated_at", "parent_id"),
)
_OF_TURN = (
    *("id", "ordinal", "models", "state", "role", "mode", "text", "created_at", "ended_at", "rounds", "error"),
    *("is_dropped", "taken_by"),
)


def as_markdown(
    conversation: ConversationRow, turns: Sequence[TurnRow], messages: Sequence[MessageRow], zone: tzinfo
) -> str:
    """The turns in order: what the user said, what was answered, each tool used with its result."""
    of_turn: dict[str, list[Message]] = {}
    for stored in messages:
        of_turn.setdefault(stored.turn_id, []).append(stored.message)
    blocks = [f"# {conversation.title or 'Conversation'}", f"{_time(conversation.created_at, zone)}, Cortex"]
    for turn in turns:
        if turn.taken_by is not None:  # stands in the turn that took it in
            continue
        said = of_turn.get(turn.id, [])
        if said and said[0].speaker == "user":
            said = said[1:]
        blocks += [f"## {_SPEAKERS.get(turn.channel, 'You')}, {_time(turn.created_at, zone)}", turn.text]
        blocks += [f"- Attached: {file.name} ({file.kind})" for file in turn.attachments]
        blocks += [block for message in said for block in _blocks(message)]
        if turn.state not in ("done", "running", "waiting", "queued"):
            blocks.append(f"*{turn.state.replace('_', ' ').capitalize()}.{' ' + turn.error if turn.error else ''}*")
    return "\n\n".join(blocks) + "\n"


def as_json(
    conversation: ConversationRow, turns: Sequence[TurnRow], messages: Sequence[MessageRow], events: Sequence[Event]
) -> str:
    """Turns (versions out of view are marked), the messages of those in view, and the whole log."""
    of_turn: dict[str, list[dict[str, Any]]] = {}
    for stored in messages:
        kept = {"id": stored.id, "round": stored.round, "is_tainted": stored.is_tainted, "at": stored.created_at}
        of_turn.setdefault(stored.turn_id, []).append({**kept, **to_json(stored.message)})
    whole = {
        "format": FORMAT,
        **{name: getattr(conversation, name) for name in _OF_CONVERSATION},
        "turns": [
            {
                **{name: getattr(turn, name) for name in _OF_TURN},
                "parent": turn.parent_id,
                "attachments": [as_dict(file) for file in turn.attachments],
                "messages": of_turn.get(turn.id, []),
            }
            for turn in turns
        ],
        "events": [
            {"seq": event.seq, "kind": event.kind, "turn": event.turn_id, "at": event.at, "payload": event.payload}
            for event in events
        ],
    }
    return json.dumps(whole, indent=1, default=_iso) + "\n"


def _blocks(message: Message) -> Iterator[str]:
    if message.speaker == "user":
        yield "## You"
    for part in message.parts:
        match part:
            case Text():
                yield f"### Cortex\n\n{part.text}" if message.speaker == "assistant" else part.text
            case ToolCall():
                yield f"Used `{part.name}` with:\n\n{_fenced(part.arguments, 'json')}"
            case ToolResult():
                text = for_person(part.text, frozenset()) if part.is_error else part.text
                yield f"{'It was not run, or did not work' if part.is_error else 'It gave'}:\n\n{_fenced(text, '')}"
            case _:
                continue


_SPEAKERS = {
    "agent": "Cortex, to a background agent",
    "result": "Cortex",
    "cron": "A job",
    "maker": "A job",
    "api": "A program",
}


def _fenced(text: str, language: str) -> str:
    """The text in a code block whose fence is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _time(at: datetime, zone: tzinfo) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M}"


def _iso(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no place in an export")
