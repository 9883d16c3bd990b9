"""What may be used at all, worked out once for each combination of registry, role, rank and channel, and kept.

The key holds everything that the answer depends on: registry version, what is ready, the granted words, rank, channel.
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from msgspec import Struct, field

from cortex.base.role import Channel
from cortex.selection.types import Domain, NamesKey, PlanInput, Snapshot, ToolEntry
from cortex.toolkit.grants import ToolGrant, granted, permits


class Rights(Struct, frozen=True, kw_only=True, eq=False):
    """The permitted tools in registry order, meta tools last and only where there is something to find.

    `ready_count`, `ready_tokens`: of all that is ready, whoever asks: what saving is counted against. `business`:
    without the meta tools; `listed`, `names`: theirs; `tokens`: all of them in full; `standing`: those that stand in
    every request or rest beside it. `domains`: those with a permitted tool, in the snapshot's order; `line_tokens`,
    `name_tokens`: of a category's catalog.
    """

    ready_count: int = 0
    ready_tokens: int = 0
    permitted: tuple[ToolEntry, ...] = ()
    business: tuple[ToolEntry, ...] = ()
    metas: tuple[ToolEntry, ...] = ()
    listed: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    tokens: int = 0
    digest: str = ""
    standing: tuple[ToolEntry, ...] = ()
    by_category: dict[str, tuple[ToolEntry, ...]] = field(default_factory=dict)
    domains: tuple[Domain, ...] = ()
    line_tokens: dict[str, int] = field(default_factory=dict)
    name_tokens: dict[str, int] = field(default_factory=dict)


NO_RIGHTS = Rights()


class _Asking(Struct, frozen=True, kw_only=True):
    """The one who asks. `core`: the role's; `never`: what the person does not want in the conversation."""

    grant: ToolGrant
    core: frozenset[str]
    is_admin: bool
    channel: Channel
    never: frozenset[str]


def rights_of(given: PlanInput, never: tuple[str, ...] = ()) -> Rights:
    """Return what this user may use in this role on this channel, less what they `never` want in the conversation.

    The digest is that of all they may use: such a choice rewrites no prefix.
    """
    asking = _Asking(
        grant=granted(given.role, is_admin=given.is_admin),
        core=frozenset(given.role.core),
        is_admin=given.is_admin,
        channel=given.channel,
        never=frozenset(never),
    )
    return _rights(given.snapshot, NamesKey(given.ready), asking)


@lru_cache(maxsize=64)
def _rights(snapshot: Snapshot, ready: NamesKey, who: _Asking) -> Rights:
    there = frozenset(ready.names)
    metas = tuple(entry for entry in snapshot.entries if entry.name in there and entry.is_meta)
    others = [entry for entry in snapshot.entries if entry.name in there and not entry.is_meta]
    allowed = tuple(
        entry
        for entry in others
        if permits(who.grant, entry.name, entry.category, who.channel, is_withheld=entry.is_admin and not who.is_admin)
    )
    business = tuple(entry for entry in allowed if entry.name not in who.never)
    members: dict[str, list[ToolEntry]] = {}
    for entry in business:
        members.setdefault(entry.category, []).append(entry)
    standing = (
        each
        for each in business
        if each.is_core or each.is_ambient or not who.core.isdisjoint({each.name, each.category})
    )
    return Rights(
        ready_count=len(others),
        ready_tokens=sum(entry.tokens_full for entry in others),
        permitted=(*business, *(metas if business else ())),
        business=business,
        metas=metas if business else (),
        listed=tuple(entry.name for entry in business),
        names=frozenset(entry.name for entry in business),
        tokens=sum(entry.tokens_full for entry in business),
        digest=_digest((*allowed, *(metas if allowed else ()))),
        standing=tuple(standing),
        by_category={name: tuple(entries) for name, entries in members.items()},
        domains=tuple(domain for domain in snapshot.domains if domain.name in members),
        line_tokens={name: sum(entry.tokens_line for entry in entries) for name, entries in members.items()},
        name_tokens={name: sum(entry.tokens_name for entry in entries) for name, entries in members.items()},
    )


def _digest(entries: Iterable[ToolEntry]) -> str:
    """Return what is permitted, as a short key."""
    return blake2b(",".join(entry.name for entry in entries).encode(), digest_size=8).hexdigest()
