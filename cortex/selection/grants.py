"""Who may use what: the one rule that selection, executor and discovery share. A function of user, role and channel.

Fails closed: what is not written out is not permitted, an unknown name permits nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from cortex.base.role import Channel
from cortex.ports.mcp import FAMILY
from cortex.selection.types import ToolEntry

CHANNEL_LACKS: dict[Channel, frozenset[str]] = {
    "chat": frozenset(),
    "cron": frozenset({"cron_add", "cron_remove", "cortex_restart", "cortex_update", "claude_allow_dir"}),
    "maker": frozenset({"cortex_restart", "cortex_update", "claude_allow_dir"}),
    "agent": frozenset({"spawn_agent"}),
    # Nothing that goes on past the answer, or reaches beyond the token's scope and limits.
    "api": frozenset(
        {"cron_add", "cron_remove", "cortex_restart", "cortex_update", "claude_allow_dir", "spawn_agent", "aider_run"}
    ),
    "result": frozenset(),  # as the chat it answers in: its tools stay what the provider has cached
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolGrant:
    """What is granted, as categories, names or `all`: the tools that `words` and, unless it is None, `within` mean.

    `lacks`: names that are taken out of it again.
    """

    words: frozenset[str]
    within: frozenset[str] | None = None
    lacks: frozenset[str] = frozenset()


class ToolGrants(Protocol):
    """The part of a role that grants tools; `base/role.py` says what the fields mean."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Categories or names, or `all`."""
        ...

    @property
    def admin_tools(self) -> tuple[str, ...]:
        """The same, for an admin's account on top."""
        ...

    @property
    def within(self) -> tuple[str, ...] | None:
        """Categories or names that bound what the others grant."""
        ...

    @property
    def lacks(self) -> tuple[str, ...]:
        """Names that it does not grant."""
        ...

    @property
    def is_admin_only(self) -> bool:
        """Whether the role is for admins alone."""
        ...


def granted(role: ToolGrants, *, is_admin: bool) -> ToolGrant:
    """What the role grants to this account; nothing where it may not take the role."""
    if role.is_admin_only and not is_admin:
        return ToolGrant(words=frozenset())
    words = (*role.tools, *role.admin_tools) if is_admin else role.tools
    within = None if role.within is None else frozenset(role.within)
    return ToolGrant(words=frozenset(words), within=within, lacks=frozenset(role.lacks))


def permits(
    grant: ToolGrant, *, name: str, category: str, is_admin_tool: bool, is_admin: bool, channel: Channel
) -> bool:
    """Whether the grant permits this tool to this account on this channel."""
    if (is_admin_tool and not is_admin) or name in CHANNEL_LACKS[channel] or name in grant.lacks:
        return False
    meant = {"all", name, category, FAMILY if category.startswith(f"{FAMILY}_") else category}
    return not grant.words.isdisjoint(meant) and (grant.within is None or not grant.within.isdisjoint(meant))


def digest(entries: Iterable[ToolEntry]) -> str:
    """What is permitted, as a short key."""
    return blake2b(",".join(entry.name for entry in entries).encode(), digest_size=8).hexdigest()


def unknown(words: Iterable[str], known: frozenset[str]) -> tuple[str, ...]:
    """Words of a role's list that name neither category nor tool: they grant nothing, and a person should hear it."""
    return tuple(word for word in words if word not in known and word != "all")
