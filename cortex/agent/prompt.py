"""Composes the words that stand around a conversation: the system prompt of an epoch, and the tail of a request.

The prefix (`system_prompt`) holds nothing that moves; the date and usage notes go to the tail.
"""

from datetime import datetime
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from cortex.base.messages import Message, Reveal, Text, user

LAST_ROUND = "This is the last round: answer now without tools; say what was done and what remains."


def system_prompt(persona: str, role_prompt: str, catalog: str) -> str:
    """The frozen prefix of an epoch: who speaks, what the role asks, which further tools can be had."""
    return "\n\n".join(text.strip() for text in (persona, role_prompt, catalog) if text.strip())


def tail(now: datetime, time_zone: str, *, round_number: int, notes: str = "", is_last: bool = False) -> str:
    """The moving text of a round: local time in the first, the last-round instruction in a later last one, notes."""
    local = now.astimezone(ZoneInfo(time_zone))
    first = f"[{local:%a %Y-%m-%d %H:%M} {time_zone}]" if round_number == 1 else ""
    lines = [first, notes.strip(), LAST_ROUND if is_last and round_number > 1 else ""]
    return "\n".join(line for line in lines if line)


def with_tail(messages: list[Message], text: str) -> list[Message]:
    """The turn's messages with `text` behind them: in the user's message if that is the last, else as one more.

    It stays there in every later request (a request only ever extends the one before).
    """
    if not text:
        return messages
    last = messages[-1]
    if last.speaker == "user":
        return [*messages[:-1], replace(last, parts=(*last.parts, Text(text=text)))]
    return [*messages, user(f"({text})")]


def is_note(said: str) -> bool:
    """Tell whether the words of the person's side have the form of a note of Cortex that stands by itself."""
    return said.startswith("(") and said.endswith(")")


def with_reveal(messages: list[Message], names: tuple[str, ...]) -> list[Message]:
    """The turn's messages, the last of them saying that these tools are there from now on."""
    if not names:
        return messages
    last = messages[-1]
    return [*messages[:-1], replace(last, parts=(*last.parts, Reveal(names=names)))]
