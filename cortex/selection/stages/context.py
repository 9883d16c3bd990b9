"""What the conversation adds: a yes, an answer to what was asked back, a follow-up. Fades over 4 turns.

Text from outside (results, pages) has weight 0: it is not read here at all. The assistant's words count only once
the user has said yes to them.
"""

from cortex.selection import evidence, talk, text
from cortex.selection.draft import PlanDraft, Vote, marked
from cortex.selection.index import Index
from cortex.selection.types import PastTurn, PlanInput

TURNS = 4
PROPOSAL_SHARE = 0.9
EARLIER_SHARE = 0.9
FOLLOW_UP_P = 0.8
RECENT_P = 0.12
SIBLING_SHARE = 0.12
CLEAR_WORDS, CLEAR_WISH, CLEAR_P = 4, 0.8, 0.5
LEAST_P = 0.03
FADING = 0.7
PROPOSAL_CHARACTERS = 600


def context(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the votes of the last turns; none on thanks and goodbye."""
    past = given.past[-TURNS:]
    if not past or talk.is_parting(given.message):
        return draft
    votes = dict(draft.votes)
    for name, vote in _votes(given.message, past, index, draft.rights.names).items():
        votes[name] = (*votes.get(name, ()), vote)
    return marked(draft, votes=votes)


def _votes(message: str, past: tuple[PastTurn, ...], index: Index, names: frozenset[str]) -> dict[str, Vote]:
    """Votes of an answer, a follow-up, or of what stands a few turns back."""
    found: dict[str, Vote] = {}
    last = past[-1]
    is_assent = talk.is_assent(message)
    is_answer = is_assent or talk.is_answer(message, last.assistant)
    is_leaning = is_answer or talk.is_follow_up(message)
    if is_assent:
        _add(found, index, last.assistant[-PROPOSAL_CHARACTERS:], names, PROPOSAL_SHARE, "you said yes to it")
    for back, turn in enumerate(reversed(past)):
        p = (FOLLOW_UP_P if is_leaning else RECENT_P) * FADING**back
        why = "you go on with what it just did" if is_leaning else "used a moment ago"
        for name in turn.called:
            _keep(found, names, name, p, why)
            if is_leaning and name in names:
                for entry in index.by_category[index.entries[name].category]:
                    _keep(found, names, entry.name, SIBLING_SHARE * p, "related to what was just used")
    if is_leaning and not _is_clear(index, message):
        _add_wishes(found, index, message, past, names)
    return found


def _is_clear(index: Index, message: str) -> bool:
    """Whether the message says by itself what is wanted, so that earlier wishes would only blur it."""
    if len(text.words(message)) < CLEAR_WORDS:
        return False
    learned = evidence.learned(index, message)
    return learned.wish >= CLEAR_WISH and max(learned.chances.values(), default=0.0) >= CLEAR_P


def _add_wishes(
    found: dict[str, Vote], index: Index, message: str, past: tuple[PastTurn, ...], names: frozenset[str]
) -> None:
    """Votes of what the user asked before, back to the last turn that was answered by a tool; then both together."""
    share = EARLIER_SHARE
    for turn in reversed(past):
        _add(found, index, turn.user, names, share, "for what you asked before")
        if turn.called:
            break
        share *= FADING
    _add(found, index, f"{past[-1].user} {message}", names, EARLIER_SHARE, "together with what you asked before")


def _add(found: dict[str, Vote], index: Index, said: str, names: frozenset[str], share: float, why: str) -> None:
    """Votes for what the text speaks of, at a share of their strength."""
    for name, vote in evidence.phrases(index, said, names).items():
        _keep(found, names, name, share * vote.p, why)
    learned = evidence.learned(index, said)
    for name, p in learned.chances.items():
        _keep(found, names, name, share * learned.wish * p, why)


def _keep(found: dict[str, Vote], names: frozenset[str], name: str, p: float, why: str) -> None:
    if p >= LEAST_P and name in names and (name not in found or found[name].p < p):
        found[name] = Vote(stage="context", p=round(p, 4), why=why)
