"""Who may use what: the one rule that selection, executor and discovery share. A function of user, role and channel.

Fails closed: what is not written out is not permitted, an unknown name permits nothing.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Protocol

from cortex.base.role import Channel
from cortex.selection.types import Entry

CHANNEL_LACKS: dict[Channel, frozenset[str]] = {
    "chat": frozenset(),
    "cron": frozenset({"cron_add", "cron_remove", "cortex_restart", "cortex_update", "claude_allow_dir"}),
    "maker": frozenset({"cortex_restart", "cortex_update", "claude_allow_dir"}),
    "agent": frozenset({"spawn_agent"}),
    "result": frozenset(),  # as the chat it answers in: its tools stay what the provider has cached
}


class Grants(Protocol):
    """The part of a role that grants tools."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Categories or names, or `all`."""
        ...

    @property
    def admin_tools(self) -> tuple[str, ...]:
        """The same, for an admin's account on top."""
        ...

    @property
    def is_admin_only(self) -> bool:
        """Whether the role is for admins alone."""
        ...


def granted(role: Grants, *, is_admin: bool) -> frozenset[str]:
    """The categories and names that the role writes out for this account; empty for a role it may not take."""
    if role.is_admin_only and not is_admin:
        return frozenset()
    return frozenset((*role.tools, *role.admin_tools) if is_admin else role.tools)


def permits(
    words: frozenset[str], *, name: str, category: str, is_admin_tool: bool, is_admin: bool, channel: Channel
) -> bool:
    """Whether the granted words permit this tool to this account on this channel."""
    if is_admin_tool and not is_admin:
        return False
    return name not in CHANNEL_LACKS[channel] and not words.isdisjoint({"all", name, category})


def digest(entries: Iterable[Entry]) -> str:
    """What is permitted, as a short key."""
    return blake2b(",".join(entry.name for entry in entries).encode(), digest_size=8).hexdigest()


def unknown(words: Iterable[str], known: frozenset[str]) -> tuple[str, ...]:
    """Words of a role's list that name neither category nor tool: they grant nothing, and a person should hear it."""
    return tuple(word for word in words if word not in known and word != "all")
