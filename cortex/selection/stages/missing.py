"""After an answer that says a tool is missing: the request and the answer's words, held against the unsent tools."""

from cortex.selection import evidence
from cortex.selection.draft import PlanDraft, Vote, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput

LEAST_P = 0.08
MOST = 4
HINT_P = 0.4


def missing(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the best matches pinned; unchanged while no answer said so."""
    if not given.missing:
        return draft
    sent = frozenset(item.name for item in given.memory.sent)
    names = draft.rights.names - sent
    best: dict[str, float] = {}
    for said, share in ((given.message, 1.0), (given.missing[:400], 0.5)):
        for votes in (evidence.phrases(index, said, names), evidence.lexical(index, said, index.unlearned(names))):
            for name, vote in votes.items():
                best[name] = max(best.get(name, 0.0), share * vote.p)
        for name, p in evidence.learned(index, said).chances.items():
            if name in names:
                best[name] = max(best.get(name, 0.0), share * p)
    ranked = sorted((name for name in best if best[name] >= LEAST_P), key=lambda name: (-best[name], name))[:MOST]
    pins = {
        name: Vote(stage="missing", p=max(best[name], HINT_P), why="the answer said that it lacks this")
        for name in ranked
    }
    return marked(draft, pins={**pins, **draft.pins})
