"""What may be used at all, worked out once for each combination of registry, role, rank and channel, and kept.

The key holds everything that the answer depends on: registry version, what is ready, the granted words, rank, channel.
"""

from dataclasses import dataclass
from functools import lru_cache

from cortex.base.role import Channel
from cortex.selection.grants import ToolGrant, digest, granted, permits
from cortex.selection.types import Domain, PlanInput, ToolEntry
from cortex.selection.version_cache import NamesKey, SnapshotKey


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadyTools:
    """Every tool that is ready, whoever asks: what saving is counted against. `entries`: meta tools among them."""

    entries: tuple[ToolEntry, ...]
    count: int
    tokens: int


NOT_READY = ReadyTools(entries=(), count=0, tokens=0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rights:
    """The permitted tools in registry order, meta tools last and only where there is something to find.

    `ready`: what they were chosen from. `business`: without the meta tools; `listed`, `names`: theirs; `tokens`: all of
    them in full; `standing`: those that stand in every request or rest beside it. `domains`: those with a permitted
    tool, in the snapshot's order; `line_tokens`, `name_tokens`: of a category's catalog.
    """

    ready: ReadyTools

    permitted: tuple[ToolEntry, ...]
    business: tuple[ToolEntry, ...]
    metas: tuple[ToolEntry, ...]
    listed: tuple[str, ...]
    names: frozenset[str]
    tokens: int
    digest: str
    standing: tuple[ToolEntry, ...]
    by_category: dict[str, tuple[ToolEntry, ...]]
    domains: tuple[Domain, ...]
    line_tokens: dict[str, int]
    name_tokens: dict[str, int]


NO_RIGHTS = Rights(
    ready=NOT_READY,
    permitted=(),
    business=(),
    metas=(),
    listed=(),
    names=frozenset(),
    tokens=0,
    digest=digest(()),
    standing=(),
    by_category={},
    domains=(),
    line_tokens={},
    name_tokens={},
)


def rights_of(given: PlanInput, never: tuple[str, ...] = (), ready: ReadyTools | None = None) -> Rights:
    """What this user may use in this role on this channel, less what they chose to `never` have in the conversation.

    The digest is that of all they may use: such a choice rewrites no prefix. `ready`: as `ready_of` has it, where it
    is at hand: to look up ten thousand names takes its time.
    """
    grant = granted(given.role, is_admin=given.is_admin)
    key = SnapshotKey(given.snapshot)
    there = ready or ready_of(given)
    return _rights(key, there, grant, given.role.core, given.is_admin, given.channel, frozenset(never))


def ready_of(given: PlanInput) -> ReadyTools:
    """What is ready on this server."""
    return _ready(SnapshotKey(given.snapshot), NamesKey(given.ready))


@lru_cache(maxsize=64)
def _rights(
    key: SnapshotKey,
    ready: ReadyTools,
    grant: ToolGrant,
    core: tuple[str, ...],
    is_admin: bool,
    channel: Channel,
    never: frozenset[str],
) -> Rights:
    own, found = frozenset(core), ready.entries
    allowed = tuple(
        entry
        for entry in found
        if not entry.is_meta
        and permits(
            grant,
            name=entry.name,
            category=entry.category,
            is_admin_tool=entry.is_admin,
            is_admin=is_admin,
            channel=channel,
        )
    )
    business = tuple(entry for entry in allowed if entry.name not in never)
    metas = tuple(entry for entry in found if entry.is_meta and business)
    members: dict[str, list[ToolEntry]] = {}
    for entry in business:
        members.setdefault(entry.category, []).append(entry)
    return Rights(
        ready=ready,
        permitted=(*business, *metas),
        business=business,
        metas=metas,
        listed=tuple(entry.name for entry in business),
        names=frozenset(entry.name for entry in business),
        tokens=sum(entry.tokens_full for entry in business),
        digest=digest((*allowed, *(entry for entry in found if entry.is_meta and allowed))),
        standing=tuple(
            entry
            for entry in business
            if entry.is_core or entry.is_ambient or not own.isdisjoint({entry.name, entry.category})
        ),
        by_category={name: tuple(entries) for name, entries in members.items()},
        domains=tuple(domain for domain in key.snapshot.domains if domain.name in members),
        line_tokens={name: sum(entry.tokens_line for entry in entries) for name, entries in members.items()},
        name_tokens={name: sum(entry.tokens_name for entry in entries) for name, entries in members.items()},
    )


@lru_cache(maxsize=16)
def _ready(key: SnapshotKey, ready: NamesKey) -> ReadyTools:
    there = frozenset(ready.names)
    found = tuple(entry for entry in key.snapshot.entries if entry.name in there)
    business = [entry for entry in found if not entry.is_meta]
    return ReadyTools(entries=found, count=len(business), tokens=sum(entry.tokens_full for entry in business))
