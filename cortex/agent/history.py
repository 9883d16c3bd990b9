"""Fits the past into a model's window. A view: the stored transcript is never touched.

Past 70 % of the window the role `distill` writes a summary (`services/turns/history.py` asks for it); this module says
where to cut and how the summary stands in for what is before the cut.
"""

from collections.abc import Callable, Sequence

from cortex.base.messages import Message, user

SUMMARY_AT = 0.70
KEEP_SHARE = 0.30
FULL_AT = 0.85
SUMMARY_HEAD = "(Summary of our conversation so far, written by Cortex)"
Count = Callable[[Message], int]
TurnMessages = tuple[int, tuple[Message, ...]]


def total_tokens(turns: Sequence[TurnMessages], count: Count) -> int:
    """Tokens of all messages of all turns."""
    return sum(count(message) for _, messages in turns for message in messages)


def cut(turns: Sequence[TurnMessages], window_tokens: int, count: Count) -> int | None:
    """The ordinal of the last turn that a summary should stand for, or None while everything fits.

    Keeps the newest turns that fit into 30 % of the window, and always the newest one.
    """
    if total_tokens(turns, count) <= window_tokens * SUMMARY_AT or len(turns) < 2:
        return None
    kept = 0
    upto = turns[-2][0]
    for ordinal, messages in reversed(turns[:-1]):
        kept += sum(count(message) for message in messages)
        if kept > window_tokens * KEEP_SHARE:
            break
        upto = ordinal - 1
    return max(upto, turns[0][0])


def view(turns: Sequence[TurnMessages], *, summary: str, upto: int) -> tuple[Message, ...]:
    """The messages a model sees: the summary in place of turns up to `upto`, then the rest as they are."""
    rest = tuple(message for ordinal, messages in turns if ordinal > upto for message in messages)
    if not summary:
        return tuple(message for _, messages in turns for message in messages)
    return (user(f"{SUMMARY_HEAD}\n{summary}"), *rest)


def fitted(past: Sequence[Message], room_tokens: int, count: Count) -> tuple[Message, ...]:
    """The newest whole exchanges of a turn's past within this room; a summary at its head stays, or its beginning.

    For a request whose tools grew, or whose model takes less, after the past was fitted: a call is never parted from
    its result.
    """
    starts = [at for at, message in enumerate(past) if message.speaker == "user"]
    has_head = bool(past) and past[0].text.startswith(SUMMARY_HEAD)
    head = tuple(past[:1]) if has_head else ()
    if head and count(head[0]) > room_tokens:
        head = _begun(head[0], room_tokens // 2, count)
    left = room_tokens - sum(count(message) for message in head)
    begin = len(past)
    for start in reversed(starts[has_head:]):
        left -= sum(count(message) for message in past[start:begin])
        if left < 0:
            break
        begin = start
    return (*head, *past[begin:])


def _begun(summary: Message, room_tokens: int, count: Count) -> tuple[Message, ...]:
    """The beginning of a summary, cut by halves so that it stays the same over several requests; () where none fits."""
    text = summary.text
    while len(text) > 4 * len(SUMMARY_HEAD):
        text = text[: len(text) // 2]
        begun = user(f"{text}…")
        if count(begun) <= room_tokens:
            return (begun,)
    return ()


def newest(turns: Sequence[TurnMessages], limit_tokens: int, count: Count) -> list[TurnMessages]:
    """The newest whole turns within `limit_tokens`: the last resort when no summary could be written."""
    kept: list[TurnMessages] = []
    left = limit_tokens
    for ordinal, messages in reversed(turns):
        left -= sum(count(message) for message in messages)
        if left < 0 and kept:
            break
        kept.insert(0, (ordinal, messages))
    return kept
