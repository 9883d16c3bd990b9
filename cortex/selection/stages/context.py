"""What the conversation adds: a yes, an answer to what was asked back, a follow-up. Fades over 4 turns.

Text from outside (results, pages) has weight 0: it is not read here at all. The assistant's words count only once
the user has said yes to them.
"""

from collections.abc import Iterator

from cortex.selection.index.index import Index
from cortex.selection.plan.draft import PlanDraft, Vote, with_votes
from cortex.selection.stage import stage
from cortex.selection.types import PastTurn, PlanInput
from cortex.selection.votes import evidence
from cortex.selection.words import talk, text

TURNS = 4
PROPOSAL_SHARE = 0.9
EARLIER_SHARE = 0.9
FOLLOW_UP_P = 0.8
RECENT_P = 0.12
SIBLING_SHARE = 0.12
CLEAR_WORDS, CLEAR_WISH, CLEAR_P = 4, 0.8, 0.5
LEAST_P = 0.06  # twice a tool's price: the chances of two messages read as one are many and low
FADING = 0.7
PROPOSAL_CHARACTERS = 600
Belief = tuple[str, float, str]  # a tool, how likely it is needed, and why


@stage("what was said and used before")
def context(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the votes of the last turns; none on thanks and goodbye."""
    past, names = given.past[-TURNS:], draft.rights.names
    if not past or talk.is_parting(given.message):
        return draft
    found: dict[str, Vote] = {}
    for name, p, why in _believed(given.message, past, index, names):
        if p >= LEAST_P and name in names and (name not in found or found[name].p < p):
            found[name] = Vote(stage="context", p=round(p, 4), why=why)
    return with_votes(draft, found)


def _believed(message: str, past: tuple[PastTurn, ...], index: Index, names: frozenset[str]) -> Iterator[Belief]:
    """Return what an answer, a follow-up, or what stands a few turns back speaks for."""
    last = past[-1]
    is_assent = talk.is_assent(message)
    is_leaning = is_assent or talk.is_answer(message, last.assistant) or talk.is_follow_up(message)
    if is_assent:
        yield from _spoken(index, last.assistant[-PROPOSAL_CHARACTERS:], names, PROPOSAL_SHARE, "you said yes to it")
    for back, turn in enumerate(reversed(past)):
        p = (FOLLOW_UP_P if is_leaning else RECENT_P) * FADING**back
        for name in turn.called:
            yield name, p, "you go on with what it just did" if is_leaning else "used a moment ago"
            for entry in index.by_category[index.entries[name].category] if is_leaning and name in names else ():
                yield entry.name, SIBLING_SHARE * p, "related to what was just used"
    if is_leaning and not _is_clear(index, message):
        yield from _wished(index, message, past, names)


def _is_clear(index: Index, message: str) -> bool:
    """Tell whether the message says by itself what is wanted, so that earlier wishes would only blur it."""
    if len(text.words(message)) < CLEAR_WORDS:
        return False
    learned = evidence.learned(index, message)
    return learned.wish >= CLEAR_WISH and max(learned.chances.values(), default=0.0) >= CLEAR_P


def _wished(index: Index, message: str, past: tuple[PastTurn, ...], names: frozenset[str]) -> Iterator[Belief]:
    """Return what the user asked before, back to the last turn that was answered by a tool; then both together."""
    for back, turn in enumerate(reversed(past)):
        yield from _spoken(index, turn.user, names, EARLIER_SHARE * FADING**back, "for what you asked before")
        if turn.called:
            break
    together = f"{past[-1].user} {message}"
    yield from _spoken(index, together, names, EARLIER_SHARE, "together with what you asked before")


def _spoken(index: Index, said: str, names: frozenset[str], share: float, why: str) -> Iterator[Belief]:
    """Return what the text speaks of, at a share of its strength; not the hundreds that it hardly speaks of."""
    for name, vote in evidence.phrases(index, said, names).items():
        yield name, share * vote.p, why
    learned = evidence.learned(index, said)
    for name, p in learned.chances.items():
        if share * learned.wish * p >= LEAST_P:
            yield name, share * learned.wish * p, why
