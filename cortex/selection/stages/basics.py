"""The stages of a few lines: what is permitted, the user's mode and pins, what the message says, and in which form.

A stage of the votes adds what it finds; what the model's gates leave of that is `fuse`'s matter.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from cortex.selection.index import sentence_models
from cortex.selection.index.index import Index
from cortex.selection.plan.draft import BY_YOU, PlanDraft, Vote, with_votes
from cortex.selection.registry.rights import rights_of
from cortex.selection.stage import stage
from cortex.selection.types import PlanInput
from cortex.selection.votes import evidence, semantic_votes
from cortex.selection.words import quoted, talk, text

SMALL_ROLE_TOKENS = 600
NAMED_P, SURE_P = 0.95, 0.5


@stage("which tools may be used here")
def gate(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the permitted tools in registry order; later stages only narrow them.

    What the person does not want in this conversation is out for every stage: not sent, hinted at, listed or found.
    Their word is an instruction, no likelihood, so nothing that a text says brings it back.
    """
    return replace(draft, rights=rights_of(given, given.never))


@stage("the tool mode of the chat")
def mode(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft, shut by Chat only, whole by All. The later stages still score, for the hints."""
    if given.mode == "auto":
        return draft
    return replace(draft, is_shut=given.mode == "chat", is_all=draft.is_all or given.mode == "all")


@stage("what goes along in any case: named, set to always, core")
def pins(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with its pins: wishes, which no figure measures. Names count in the user's own words only.

    A conversation begins bare: a greeting must cost nothing. So what stands by itself (core, ambient, the tools of a
    small role) rests on small talk; a name, a use and the person's own "always" pin at once. A pin's p is what the
    message itself says about it: a standing pin is sent, but is no hint that it be called.
    """
    standing = {name: Vote(stage="pins", p=0.0, why=why) for name, why in _standing(given, draft)}
    sure = dict.fromkeys(given.always, BY_YOU)
    sure |= dict.fromkeys(given.found, Vote(stage="context", p=0.0, why="found or used in this turn"))
    sure |= dict.fromkeys(_back(given, index), Vote(stage="pins", p=0.0, why="you allowed it in this chat again"))
    named = text.named(quoted.wish_of(given.message), draft.rights.names)
    sure |= dict.fromkeys(named, Vote(stage="pins", p=NAMED_P, why="you named it"))
    sure = {name: vote for name, vote in sure.items() if name in draft.rights.names}
    if talk.is_small_talk(given.message):
        return replace(draft, pins=sure, resting=standing)
    return replace(draft, pins={**standing, **sure})


def _back(given: PlanInput, index: Index) -> tuple[str, ...]:
    """Return what the person takes back into the chat while an open epoch has no search that could find it."""
    memory = given.memory
    if not memory.is_open or not index.metas.isdisjoint(item.name for item in memory.sent):
        return ()
    return tuple(name for name in memory.never if name not in given.never)


def _standing(given: PlanInput, draft: PlanDraft) -> Iterator[tuple[str, str]]:
    """The pins that do not depend on the message, with their reasons."""
    core = frozenset(given.role.core)
    if draft.rights.tokens < SMALL_ROLE_TOKENS:
        yield from ((name, "this role has few tools: nothing to choose") for name in draft.rights.listed)
        return
    for entry in draft.rights.standing:
        is_core = entry.is_core or not core.isdisjoint({entry.name, entry.category})
        yield entry.name, f"core of the role {given.role.name}" if is_core else "in every conversation"


@stage("phrases that were added on this server", is_guess=True)
def phrases(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with a vote for each tool that a phrase in the message speaks for, on word bounds."""
    return with_votes(draft, evidence.phrases(index, given.message, draft.rights.names))


@stage("tools that the model does not know, by what they mean", is_guess=True)
def vectors(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with a vote for each tool nobody taught that means what is asked: .70 of them are sent, else none.

    A sentence model that failed or was too slow leaves a label on the plan. Small talk is not scored.
    """
    names = semantic_votes.needs(index, given.message, draft.rights.names)
    if not names:
        return draft
    found, failed = semantic_votes.votes(index, given.message, names, given.encoder_skipped)
    if failed:
        draft = replace(draft, labels={**draft.labels, **sentence_models.skipped(failed)})
    return with_votes(draft, found)


@stage("what the model makes of the message, and examples that were added here", speaks_as=("lexical",), is_guess=True)
def learned(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the model's chances of the message, and how sure it is that anything is wished at all."""
    taught = evidence.taught(index, given.message, draft.rights.names)
    return replace(with_votes(draft, taught), learned=evidence.learned(index, given.message))


@stage("which of them go in full")
def form(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with each fresh tool's form: full for pins and the likely, a stub for the rest.

    That brings several requests in one message from .900 to .947, at 130 tokens less. Behind a cache the form is fixed
    at first sight; a strong model without one gets short forms in later rounds.
    """
    if draft.is_all:
        return draft
    likely = {name for name, chance in draft.chances.items() if chance.p >= SURE_P}
    full = index.metas.union(draft.pins, likely)
    is_short = not given.profile.caches and given.profile.strength == "strong" and given.round > 1
    fresh = tuple(item if item.name in full else replace(item, form="stub") for item in draft.fresh)
    kept = tuple(
        replace(item, form="stub") if is_short and item.name not in index.metas else item for item in draft.kept
    )
    return replace(draft, fresh=fresh, kept=kept)


@stage("all that is permitted", speaks_as=("all",))
def everything(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with every permitted tool in, in full: the control that every recipe is measured against."""
    return replace(draft, is_all=True)


@stage("short forms of what was sent before")
def compact(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with repi's forms: full in round 1 and at a tool's first sight, else compact; the user's All is left.

    What the arguments mean stands in round 1 of the same turn; an error of a call brings the expected ones back.
    """
    if given.round == 1 or given.memory.turn != given.turn or given.mode == "all":
        return draft
    seen = {item.name for item in given.memory.sent} & draft.rights.names
    return replace(draft, forms={**draft.forms, **dict.fromkeys(seen, "compact")})
