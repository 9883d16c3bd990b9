"""Drops the least probable of what a round would add while it costs more than the role's budget; of pins, a rescue's.

A role's own budget counts all that is declared; the shipped one counts what a round adds, so that a long
conversation can still grow. A message of several clauses has more room. A weak model gets 600 tokens or a tenth of its
window, the way back counted and the catalog too; only what is surely wanted goes before the catalog.
"""

from msgspec.structs import replace

from cortex.selection.index.index import Index
from cortex.selection.plan.cache_economics import takes_early_stubs
from cortex.selection.plan.draft import PlanDraft, Vote
from cortex.selection.registry.catalog import catalog
from cortex.selection.stage import stage
from cortex.selection.types import PlanInput, SentTool
from cortex.selection.votes import evidence

ADDED_TOKENS, SEVERAL_TOKENS = 560, 1_000
WEAK_TOKENS, WINDOW_PART = 600, 10
SURE = 0.5  # from here on a tool goes before the catalog
SEVERAL = 2  # texts to judge: the whole, and a clause


@stage("how many tokens of tools the message may add")
def budget(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with what fits, where a weak model's epoch opens beside the catalog of what is left out then.

    At least the most probable tool stays. Where an epoch opens with everything permitted, there is nothing to discover:
    the way back is left out.
    """
    if draft.is_all:
        return draft
    made, listed = _fitting(given, index, draft, 0), 0
    if not draft.kept and given.role.budget_tokens is None and takes_early_stubs(given.profile):
        while (needed := catalog(draft.rights, [index.entries[item.name] for item in made.fresh]).tokens) > listed:
            made, listed = _fitting(given, index, draft, needed), needed
    business = draft.rights.names
    if made.kept or not business <= {item.name for item in made.fresh}:
        return made
    return replace(made, fresh=tuple(item for item in made.fresh if item.name in business))


def _fitting(given: PlanInput, index: Index, draft: PlanDraft, listed: int) -> PlanDraft:
    """The draft with what fits beside a catalog of so many tokens."""
    allowed = max(0, _allowed(given, index, draft))
    # Everything at once is declared to keep the prefix as it is: leaving some out would save nothing.
    if given.role.budget_tokens is None and len(draft.kept) + len(draft.fresh) >= len(draft.rights.business):
        return draft
    spent, dropped, kept = 0, dict(draft.dropped), set[str]()
    for item in sorted(draft.fresh, key=lambda item: _rank(draft, item)):
        entry, p = index.entries[item.name], _p(draft, item.name)
        is_sure = entry.is_meta or (item.name in draft.pins and item.stage != "missing")
        is_first = all(index.entries[name].is_meta for name in kept)
        is_cut = item.stage == "form" and len(dropped) > len(draft.dropped)  # no neighbour in place of what is wanted
        cost, beside = entry.cost(item.form), 0 if p >= SURE else listed
        if is_sure or is_first or (spent + cost + beside <= allowed and not is_cut):
            kept.add(item.name)
            spent += 0 if entry.is_meta else cost
        else:
            why = f"would have been sent, but {allowed} tokens of tools are enough for one message"
            dropped[item.name] = Vote(stage="budget", p=p, why=why)
    if len(kept) == len(draft.fresh):
        return draft
    return replace(draft, fresh=tuple(item for item in draft.fresh if item.name in kept), dropped=dropped)


def _allowed(given: PlanInput, index: Index, draft: PlanDraft) -> int:
    """Tokens of schemas that this round may add, meta tools not counted; less than 0 where there is no room."""
    if given.role.budget_tokens is not None:
        return given.role.budget_tokens - sum(index.entries[item.name].cost(item.form) for item in draft.kept)
    if takes_early_stubs(given.profile):
        most = min(WEAK_TOKENS, given.window_tokens // WINDOW_PART) if given.window_tokens else WEAK_TOKENS
        ways = sum(index.entries[item.name].cost(item.form) for item in draft.fresh if index.entries[item.name].is_meta)
        return most - ways
    return SEVERAL_TOKENS if len(evidence.clauses(given.message)) > SEVERAL else ADDED_TOKENS


def _rank(draft: PlanDraft, item: SentTool) -> tuple[int, float, int]:
    """Pins first, then the wanted by probability, stubs of neighbours last."""
    kind = 2 if item.stage == "form" else 0 if item.name in draft.pins else 1
    return (kind, -_p(draft, item.name), 0 if item.form == "full" else 1)


def _p(draft: PlanDraft, name: str) -> float:
    return max((votes[name].p for votes in (draft.chances, draft.pins) if name in votes), default=0.0)
