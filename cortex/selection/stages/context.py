"""What the conversation adds: a yes to the assistant's proposal, a follow-up to tools just used. Fades over 4 turns.

Text from outside (results, pages) has weight 0: it is not read here at all. The assistant's words count only once
the user has said yes to them.
"""

from dataclasses import replace

from cortex.selection import evidence, talk
from cortex.selection.draft import Draft, Vote
from cortex.selection.index import Index
from cortex.selection.types import PastTurn, PlanInput

TURNS = 4
PROPOSAL_SHARE = 0.9
EARLIER_REQUEST_SHARE = 0.6
FOLLOW_UP_P = 0.8
RECENT_P = 0.12
FADING = 0.6
PROPOSAL_CHARACTERS = 600


def context(given: PlanInput, index: Index, draft: Draft) -> Draft:
    """The draft with the votes of the last turns; none on thanks and goodbye."""
    past = given.past[-TURNS:]
    if not past or talk.is_parting(given.message):
        return draft
    votes = dict(draft.votes)
    for name, vote in _votes(given.message, past, index, draft.rights.names).items():
        votes[name] = (*votes.get(name, ()), vote)
    return replace(draft, votes=votes)


def _votes(message: str, past: tuple[PastTurn, ...], index: Index, names: frozenset[str]) -> dict[str, Vote]:
    found: dict[str, Vote] = {}
    if talk.is_assent(message):
        last = past[-1]
        _add(found, index, last.assistant[-PROPOSAL_CHARACTERS:], names, PROPOSAL_SHARE, "you said yes to it")
        _add(found, index, last.user, names, EARLIER_REQUEST_SHARE, "for what you asked before")
        for name in last.called:
            _keep(found, names, name, FOLLOW_UP_P, "you go on with what it just did")
        return found
    is_leaning = talk.is_follow_up(message)
    for back, turn in enumerate(reversed(past)):
        p = (FOLLOW_UP_P if is_leaning else RECENT_P) * FADING**back
        why = "you lean on what it just did" if is_leaning else "used a moment ago"
        for name in turn.called:
            _keep(found, names, name, p, why)
    if is_leaning and not past[-1].called:
        _add(found, index, past[-1].user, names, EARLIER_REQUEST_SHARE, "you lean on what you asked before")
    return found


def _add(found: dict[str, Vote], index: Index, said: str, names: frozenset[str], share: float, why: str) -> None:
    """Votes for what the text speaks of, at a share of their strength."""
    unlearned = index.unlearned(names)
    for votes in (evidence.phrases(index, said, names), evidence.lexical(index, said, unlearned)):
        for name, vote in votes.items():
            _keep(found, names, name, share * vote.p, why)
    for name, p in evidence.learned(index, said).chances.items():
        _keep(found, names, name, share * p, why)


def _keep(found: dict[str, Vote], names: frozenset[str], name: str, p: float, why: str) -> None:
    if name in names and (name not in found or found[name].p < p):
        found[name] = Vote(stage="context", p=round(p, 4), why=why)
