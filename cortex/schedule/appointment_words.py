"""Reads times beside appointments, as "an hour before each appointment named dentist". When those are others know."""

import re
from typing import Literal

from msgspec import Struct

from cortex.base.errors import ToolFailed
from cortex.ports.schedule import Timing
from cortex.schedule.phrase import UnreadPhrase
from cortex.schedule.rhythm_words import take_delay
from cortex.schedule.spoken import plain

Edge = Literal["start", "end"]
SUCH_APPOINTMENTS = "Write such as 'an hour before each appointment named dentist', or 'when an appointment ends'."
LONGEST_S = 60 * 86_400
_EACH = r"(?:(?:each|every|any|all|an?|my|the)(?: of)?(?: my| the)?) (?:calendar )?(?:appointment|meeting|event)s?"
_NAMED = r"(?: (?:named|called|titled|about|with) (?P<title>.+?))?"
_EDGE = r"(?:the )?(?P<edge>start|beginning|end)(?:s)? of "
_BESIDE = re.compile(
    rf"(?P<amount>.+?) (?P<side>before|after) (?:{_EDGE})?{_EACH}{_NAMED}(?: (?P<then>starts?|begins?|ends?))?",
    re.IGNORECASE,
)
_AT = re.compile(rf"(?:at|on) {_EDGE}{_EACH}{_NAMED}", re.IGNORECASE)
_WHEN = re.compile(rf"when(?:ever)? {_EACH}{_NAMED} (?P<then>starts?|begins?|ends?|(?:is|are) over)", re.IGNORECASE)
_QUOTES = "\"'`\u201c\u201d\u2018\u2019 "
_SIZES = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


class Beside(Struct, frozen=True, kw_only=True):
    """A time beside appointments: so many seconds after that edge, or before it where negative.

    `title`: words that each begin a word of the appointment's title; "" for every appointment.
    """

    seconds: int
    edge: Edge
    title: str

    def fits(self, title: str) -> bool:
        """Tell whether an appointment of this title is meant."""
        return all(re.search(rf"(?<!\w){re.escape(word)}", title.casefold()) for word in self.title.casefold().split())


def by_appointments(words: str, time_zone: str) -> Timing | None:
    """The timing that stands beside appointments; None where the words speak of none. ToolFailed for what cannot be."""
    said = " ".join(words.split()).strip(_QUOTES).rstrip(".")
    found = _BESIDE.fullmatch(said) or _AT.fullmatch(said) or _WHEN.fullmatch(said)
    if found is None:
        return None
    parts = found.groupdict()
    side, then = (parts.get("side") or "").casefold(), (parts.get("edge") or parts.get("then") or "").casefold()
    is_end = then.startswith(("end", "is", "are")) or (side == "after" and not then)
    seconds = _seconds(said, parts["amount"]) if side else 0
    beside = Beside(
        seconds=-seconds if side == "before" else seconds,
        edge="end" if is_end else "start",
        title=" ".join((parts["title"] or "").strip(_QUOTES).split()),
    )
    expression = f"{beside.seconds} {beside.edge} {beside.title}".rstrip()
    return Timing(kind="appointment", expression=expression, time_zone=time_zone, words=_said(beside), typed=said)


def beside_of(expression: str) -> Beside:
    """Return what an expression of this kind says."""
    seconds, edge, *title = expression.split(" ", 2)
    return Beside(seconds=int(seconds), edge="end" if edge == "end" else "start", title="".join(title))


def _seconds(said: str, amount: str) -> int:
    phrase = UnreadPhrase(said, plain(f"in {amount}"))
    delay = take_delay(phrase)
    if delay is None:
        raise ToolFailed(f"I can't read {amount!r} in {said!r} as a length of time. {SUCH_APPOINTMENTS}")
    phrase.done()
    seconds = (delay.months * 31 + delay.days) * 86_400 + delay.seconds
    if delay.months or seconds > LONGEST_S:
        raise ToolFailed(f"I can't take {said!r}: at most {LONGEST_S // 86_400} days before or after an appointment.")
    return seconds - seconds % 60


def _said(beside: Beside) -> str:
    """The same for a person, in words that are read again as the same."""
    named = f" named {beside.title}" if beside.title else ""
    side = "before" if beside.seconds < 0 else "after"
    amount = _length(abs(beside.seconds))
    if not amount:
        return f"at the {beside.edge} of each appointment{named}"
    return f"{amount} {side} the {beside.edge} of each appointment{named}"


def _length(seconds: int) -> str:
    """`1 hour 30 minutes`; "" for none."""
    parts = []
    for size, name in _SIZES:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " ".join(parts)
