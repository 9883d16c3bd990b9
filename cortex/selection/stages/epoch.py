"""When the prefix may change: bare until a need or a likely wish, then only growing, rebuilt only where that is free.

The free boundaries are those of `boundary_of`. A chat-only round leaves an open epoch standing: the provider
still holds its prefix, so the next round in Auto goes on with it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from cortex.selection.index.index import Index
from cortex.selection.plan.cache_economics import has_bridge, late_way, opens_at, price, takes_early_stubs
from cortex.selection.plan.draft import PlanDraft, Vote, everything
from cortex.selection.registry.rights import Rights
from cortex.selection.stage import stage
from cortex.selection.types import Form, PlanInput, SentTool
from cortex.selection.words import talk

BRIDGE = "tool_call"
EARLY_MOST = 12
# Of the price, what a late tool has to be worth. A weak model is told fewer: at .75 it has no more of what it needs
# (.911 of the rounds, .977 of the talks), but 14.2 tools in place of 10.4, and local talks cost 47.3 of 100, not 45.1.
LATE_FACTOR, WEAK_LATE_FACTOR, REWRITE_LEAST = 0.75, 1.25, 0.3
# From this wish on the way to the tools is declared though none of them is likely enough: about 160 tokens, against
# a person who is told that it cannot be done.
DOOR_WISH = 0.5
LEANING_P = 0.15  # of an earlier message's tool that a yes or a follow-up speaks for: more than "used a moment ago"
NEIGHBOUR = "related to these tools: sent in short form"
FIRST_NEED = "the first need of a tool"
WAY_BACK = "the way to tools that were not sent"
QUIET = frozenset({"nothing is cached here", "the cache had run out", "too short to be cached yet"})


@stage("what the cached prompt leaves room for", speaks_as=("form",))
def epoch(given: PlanInput, index: Index, draft: PlanDraft, *, strictness: float = 1.0) -> PlanDraft:
    """The draft with what stays of the epoch, what this round adds, and the boundary if there is one.

    `strictness` multiplies what a late tool is held against.
    """
    memory = given.memory
    if draft.is_shut:  # nothing goes out; an open epoch waits, this round counts as one of its own
        boundary = "chat only" if memory.is_open else "" if memory.number else "a new conversation"
        return replace(
            draft, number=memory.highest + 1 if memory.is_open else max(1, memory.highest), boundary=boundary
        )
    if given.is_last and not memory.is_open:
        draft = replace(draft, wanted=(), pins={}, resting={})
    boundary = boundary_of(given, draft.rights, is_all=draft.is_all) or _first_need(given, index, draft)
    if memory.is_open and not boundary:
        return _grow(given, index, draft, strictness)
    why = _opening(given, index, draft, is_free=bool(boundary))
    if not why:
        is_quiet = boundary in QUIET and not memory.is_open
        number = memory.highest if not boundary or is_quiet else memory.highest + 1
        return replace(draft, number=number, boundary="" if is_quiet else boundary)
    fresh = _opened(given, index, draft)
    return replace(draft, is_open=True, number=memory.highest + 1, boundary=boundary or why, fresh=fresh)


def boundary_of(given: PlanInput, rights: Rights, *, is_all: bool) -> str:
    """Why the prefix may be rebuilt now at no cost, in words; "" = it must stand."""
    memory, profile = given.memory, given.profile
    changes = (
        (memory.number == 0, "a new conversation"),
        (memory.version != given.snapshot.version, "the set of tools changed"),
        (memory.permitted != rights.digest, "what is permitted changed"),
        (memory.role != given.role.name, "another role"),
        (memory.mode != ("all" if is_all else "auto"), "you changed the tool mode"),
        (memory.model != given.model, "another model"),
        (memory.summary != given.summary, "the history was compacted"),
    )
    changed = next((why for holds, why in changes if holds), "")
    if changed or (given.round > 1 and memory.turn == given.turn):  # within a turn the set only grows, cached or not
        return changed
    if not profile.caches:
        return "nothing is cached here"
    was, now = memory.last_at, given.now
    idle = datetime.fromisoformat(now) - datetime.fromisoformat(was) if was and now else timedelta()
    if idle.total_seconds() > profile.life_s:
        return "the cache had run out"
    # What the turn since called and read went out with its later requests: it is history now.
    sent_tokens = memory.request_tokens + max(0, given.history_tokens - memory.history_tokens)
    return "too short to be cached yet" if memory.request_tokens > 0 and sent_tokens < profile.minimum_tokens else ""


def _first_need(given: PlanInput, index: Index, draft: PlanDraft) -> str:
    """Why an epoch that holds only the way to tools is opened anew for a weak model, "" where it is not.

    It calls best what is declared to it, and a bare chat's first need has the prompt read again just so.
    """
    sent = given.memory.sent
    if given.is_last or not (sent and draft.wanted and takes_early_stubs(given.profile)):
        return ""
    return FIRST_NEED if all(item.name in index.metas for item in sent) else ""


def _opening(given: PlanInput, index: Index, draft: PlanDraft, *, is_free: bool) -> str:
    """Why the epoch opens with this round, "" where it stays shut. `is_free`: nothing of the prefix is held any more.

    A later first need would have a long prompt written anew. A weak model's small talk stays bare all the same, and so
    does what its slot holds: only a need has that read again.
    """
    if draft.is_all:
        return "you asked for all tools" if draft.rights.business else ""
    if draft.wanted:
        return FIRST_NEED
    if given.is_last or not draft.rights.business:
        return ""
    is_talk, profile = talk.is_small_talk(given.message), given.profile
    is_strange = not is_talk and index.model is not None and index.model.known.is_strange(given.message)
    # What cannot be read brings nothing later either: not by the rescue, nor when it is said again.
    if is_strange or (is_free and _may_need(draft, is_talk=is_talk)):
        return "something seems to be wanted"
    crosses = profile.caches and given.fixed_tokens >= opens_at(profile)
    may_open = profile.strength == "strong" or (is_free and not is_talk)
    return "before the request that begins to be cached" if crosses and may_open else ""


def _may_need(draft: PlanDraft, *, is_talk: bool) -> bool:
    """Tell whether a tool may be needed that no stage is sure of: no wish is clearly absent, here or where it leans."""
    if draft.learned.chances and draft.learned.wish >= DOOR_WISH and not is_talk:
        return True
    return any(vote.stage == "context" and vote.p >= LEANING_P for votes in draft.votes.values() for vote in votes)


def _opened(given: PlanInput, index: Index, draft: PlanDraft) -> tuple[SentTool, ...]:
    """The tools of a new epoch: the way back first, then the wanted in registry order."""
    if draft.is_all:
        return everything(draft)
    # By the registry's order, not by rank: an equal set is the same bytes, and so the same prefix.
    chosen = [_joining(draft, name) for name in sorted({*draft.wanted, *draft.resting}, key=index.place.__getitem__)]
    if chosen and takes_early_stubs(given.profile):
        chosen += _beside(index, draft, chosen)
    ways = [entry for entry in draft.rights.metas if entry.name != BRIDGE or has_bridge(given.profile)]
    short: Form = "stub" if given.profile.strength == "strong" else "full"
    return (*(SentTool(name=entry.name, form=short, stage="epoch", reason=WAY_BACK) for entry in ways), *chosen)


def _beside(index: Index, draft: PlanDraft, chosen: Sequence[SentTool]) -> list[SentTool]:
    """Stubs declared early: what is likely but not wanted, then the rest of the wanted ones' categories.

    With the chosen no more than twelve; the budget, which counts them after the wanted, keeps the tokens small.
    """
    known = {item.name for item in chosen}
    homes = {index.entries[name].category for name in draft.wanted}
    chances = {name: vote.p for name, vote in draft.chances.items() if vote.p > 0}
    near = [
        entry.name
        for entry in draft.rights.business
        if entry.name not in known and not entry.is_shy and (entry.name in chances or entry.category in homes)
    ]
    near.sort(key=lambda name: -chances.get(name, 0.0))
    room = max(0, EARLY_MOST - sum(not index.entries[name].is_meta for name in known))
    return [SentTool(name=name, form="stub", stage="form", reason=NEIGHBOUR) for name in near[:room]]


def _grow(given: PlanInput, index: Index, draft: PlanDraft, strictness: float) -> PlanDraft:
    """An open epoch: what was sent stays as it is; what is new goes to the end, or behind the message."""
    memory = given.memory
    known = {item.name for item in memory.sent}
    noted = memory.noted
    # All that was sent stays, wanted or not: to leave one out would rewrite the prefix that the provider holds.
    draft = replace(draft, is_open=True, number=memory.number, kept=memory.sent, noted=noted)
    # The last round forbids calls: its tools are there for the prefix alone, and none joins.
    late = [] if given.is_last else _late(given, index, draft, known, strictness)
    if not late:
        return draft
    way = late_way(
        given.profile,
        schema_tokens=sum(index.entries[name].tokens_stub for name in late),
        signature_tokens=sum(index.entries[name].tokens_noted for name in late),
        following_tokens=given.fixed_tokens,
        is_bridged=BRIDGE in known,
    )
    if way == "bridge":
        # The signature of what was found stands in the search's result, of what was noted behind an earlier message.
        told = tuple(name for name in late if name not in given.found and name not in noted)
        return replace(draft, late=way if told else "", noted=(*noted, *told))
    fresh = tuple(_joining(draft, name) for name in late)
    if way == "rewrite" and takes_early_stubs(given.profile):
        fresh += tuple(_beside(index, draft, (*memory.sent, *fresh)))
    return replace(draft, late=way, fresh=fresh)


def _late(given: PlanInput, index: Index, draft: PlanDraft, known: set[str], strictness: float) -> list[str]:
    """Wanted tools that were not sent: what was named or found, and what a new message speaks for more than weakly.

    What was noted for the bridge, or called through it lately, stands in the history already.
    Later rounds of a message hear nothing new from the person: only what was found or used joins then. One that was
    sent meanwhile is heard by the round that reads it first; where nothing is cached, it is weighed like any other.
    """
    if draft.is_all:  # what the person took back into the chat
        return [entry.name for entry in draft.rights.business if entry.name not in known]
    if BRIDGE in known:
        known = {*known, *given.memory.noted, *(name for turn in given.past for name in turn.called)}
    missing = [name for name in draft.wanted if name not in known]
    if given.round > 1 and given.memory.turn == given.turn and not given.is_heard:
        return [name for name in missing if name in draft.pins]
    if not given.profile.caches:
        return missing
    least = 0.0 if has_bridge(given.profile) or given.profile.late_tools == "native" else REWRITE_LEAST
    factor = strictness * (WEAK_LATE_FACTOR if given.profile.strength == "weak" else LATE_FACTOR)
    bars = {name: max(least, factor * price(given.profile, index.entries[name], is_full=True)) for name in missing}
    return [name for name in missing if name in draft.pins or draft.chances[name].p >= bars[name]]


def _joining(draft: PlanDraft, name: str) -> SentTool:
    """The tool with the strongest reason for it."""
    vote = draft.pins.get(name) or draft.chances.get(name) or draft.resting.get(name) or _NO_VOTE
    return SentTool(name=name, form="full", stage=vote.stage, reason=vote.why)


_NO_VOTE = Vote(stage="epoch", p=0.0, why="joins the epoch")
