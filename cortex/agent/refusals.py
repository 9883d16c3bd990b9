"""Why a call does not run: in words for the model, which reads what to do next, and in words for the person.

Pure. What is for the one never reaches the other. Called by `agent/execute.py`.
"""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from cortex.agent.arguments import CheckedCall, destination, unknown_tool
from cortex.base.hidden import show_hidden
from cortex.base.turn import Answer, Decision
from cortex.ports.loop import CallFacts, CallRecord, Readers

DISCOVERIES_MAX = 2
SAME_CALLS_MAX = 3
OWN = ("me", "myself")  # the user's own address
UNKNOWN = "Interrupted: it may or may not have happened. Tell the user and ask before trying again."
EXPIRED = (
    "Nobody answered in time: not run. The person can have it asked again on its card. Go on without it, and do not "
    "call it again by yourself."
)
USED_UP = "The approval was not valid for this call any more: not run."


class Refusal(Struct, frozen=True, kw_only=True):
    """`text` goes to the model, `words` to the person."""

    text: str
    words: str


INTERRUPTED = Refusal(text=UNKNOWN, words="Cortex was interrupted: this may or may not have happened.")
NOT_VALID = Refusal(text=USED_UP, words="The approval was used or ran out, so nothing was done.")
ELSEWHERE = Refusal(
    text="Not run: by now this name means another place than the user allowed. Call it again: the user will be asked.",
    words="Not done: by now this name means another place than the one you allowed.",
)
_UNREADABLE = "The model asked for something that does not exist here, or asked in a wrong form. Nothing was done."


def as_changed(arguments: str, text: str) -> str:
    """The result of a call that the person changed, for the model, whose own call stays as it was in its history."""
    return f"The person changed the arguments to {arguments} and allowed that. Its result:\n{text}"


def unreadable(text: str) -> Refusal:
    """The refusal of a call that names no tool here or has wrong arguments."""
    return Refusal(text=text, words=_UNREADABLE)


def halted(text: str) -> Refusal:
    """The refusal of every call while work is stopped."""
    return Refusal(text=text, words=text)


def refusal(facts: CallFacts, checked: CheckedCall) -> Refusal | None:
    """Why this call is refused outright: admin only, not wanted here, searches, repeats, calls used up, taint."""
    tool = checked.tool
    if tool.admin and not facts.user.is_admin:
        return unreadable(unknown_tool(checked.asked_name))
    if tool.name in facts.never:
        return Refusal(
            text=f"The user set {tool.name} to “never” for this chat: not run. Go on without it, or say so.",
            words="You set this tool to “never” for this chat.",
        )
    if tool.free and tool.name == "tools_discover" and facts.discoveries >= DISCOVERIES_MAX:
        return Refusal(
            text=f"{DISCOVERIES_MAX} searches for tools are enough for one message; work with what was found.",
            words="It had searched for tools often enough.",
        )
    if facts.same_calls.get(f"{tool.name} {checked.canonical}", 0) >= SAME_CALLS_MAX - 1 and not tool.free:
        return Refusal(
            text="This exact call was made before in this turn; its result is above. Do something else or answer.",
            words="It had done exactly this before.",
        )
    if facts.calls_left == 0 and not tool.free:
        return Refusal(
            text="This way of choosing tools allows no further call in this message. Answer with what is known.",
            words="No further call was allowed for this message.",
        )
    return taint_refusal(facts, checked)


def still_no(
    facts: CallFacts, checked: CheckedCall, record: CallRecord, decision: Decision, answer: Answer | None
) -> Refusal | None:
    """Why the call may not run after all: other bytes, no yes, or the taint rule by what was read meanwhile."""
    if record.hash != decision.arguments_hash:
        return Refusal(text="The arguments changed after the decision: not run.", words=NOT_VALID.words)
    if decision.verdict == "ask" and answer == "denied":
        return Refusal(
            text="The user denied this call. Do not try it again; go on without it.", words="You did not allow it."
        )
    if decision.verdict == "ask" and answer != "allowed":
        return Refusal(
            text=EXPIRED,
            words="Nobody answered in time, so nothing was done.",
        )
    return taint_refusal(facts, checked)


def taint_refusal(facts: CallFacts, checked: CheckedCall) -> Refusal | None:
    """The rule that no person can wave through: private data may not leave on a stranger's word."""
    if not (checked.sends_out and facts.is_tainted and facts.has_read_private):
        return None
    host = destination(checked)
    places = {place.strip() for place in host.split(",")} - {"", *OWN}
    if host and places <= facts.typed_hosts:
        return None
    where = host or "this destination"
    return Refusal(
        text=f"Refused: this turn has read {facts.taint_source or 'text from outside'} and private data, and the user "
        f"did not name {where}. Tell the user; they can ask for it in their own words, with the full address, or its "
        "name in quotes.",
        words=f"Blocked: private data and external content are in this conversation, and you did not name {where}. "
        "To allow it, write the full address, or its name in quotes, in a message of your own.",
    )


def read_by_others(readers: Sequence[Readers]) -> Refusal:
    """The refusal of a call that others will read, of whom the person was not asked."""
    where = "; ".join(show_hidden(one.words) for one in readers)
    return Refusal(
        text=f"Not run: since it was decided, others can read what it writes, or this turn has read more ({where}). "
        "Call it again: the user will be asked.",
        words=f"Not done: by now others can read it ({where}), and you were not asked about that.",
    )


_VERB = re.compile(r"([A-Z][a-z]{2,14}): ")
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_TO_MODEL = re.compile(
    r"^(?:Use|Look|Call|Ask|Tell|Try|Narrow|Correct|Expected|Say|Go on|Do not|Answer|Do something else|Work with)\b"
    r"|\b(?:tell the user|go on without it|work with what|ask before trying|asked again on its card|do not call it)\b",
    re.IGNORECASE,
)
_THE_USER = tuple(
    (re.compile(rf"\b([Tt])he user{of}\b"), you)
    for of, you in (("'s", "our"), (" has", "ou have"), (" is", "ou are"), ("", "ou"))
)


def verb_of(text: str) -> str:
    """The first word of a result that says what was done: "Added: milk" gives "added"; "" for any other text."""
    found = _VERB.match(text)
    return found[1].lower() if found else ""


def for_person(text: str, tools: AbstractSet[str]) -> str:
    """Return what a tool said of its failure, without the sentences that tell the model what to do next.

    tools: their names; a sentence that has one is for the model.
    """
    kept = [
        sentence
        for sentence in _SENTENCE.split(text)
        if not _TO_MODEL.search(sentence) and tools.isdisjoint(_WORD.findall(sentence))
    ]
    said = " ".join(kept)
    for pattern, you in _THE_USER:
        said = pattern.sub(lambda found, you=you: ("Y" if found[1] == "T" else "y") + you, said)  # type: ignore[misc]
    return said or "It did not work."
