"""Who may use what: the one rule that selection, executor and discovery share. A function of user, role and channel.

Fails closed: what is not written out is not permitted, an unknown name permits nothing.
"""

from msgspec import Struct

from cortex.base.role import Channel, Role, RoleView
from cortex.ports.mcp import FAMILY

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


class ToolGrant(Struct, frozen=True, kw_only=True):
    """The tools that `words` and, unless it is None, `within` mean: categories, names or `all`.

    `lacks`: names that are taken out of it again.
    """

    words: frozenset[str]
    within: frozenset[str] | None = None
    lacks: frozenset[str] = frozenset()


def granted(role: Role | RoleView, *, is_admin: bool) -> ToolGrant:
    """Return what the role grants to this account; nothing where it may not take the role."""
    if role.is_admin_only and not is_admin:
        return ToolGrant(words=frozenset())
    words = (*role.tools, *role.admin_tools) if is_admin else role.tools
    within = None if role.within is None else frozenset(role.within)
    return ToolGrant(words=frozenset(words), within=within, lacks=frozenset(role.lacks))


def permits(grant: ToolGrant, name: str, category: str, channel: Channel, *, is_withheld: bool) -> bool:
    """Tell whether the grant permits this tool there. `is_withheld`: it is for admins, and the account is none."""
    if is_withheld or name in CHANNEL_LACKS[channel] or name in grant.lacks:
        return False
    meant = {"all", name, category, FAMILY if category.startswith(f"{FAMILY}_") else category}
    return not grant.words.isdisjoint(meant) and (grant.within is None or not grant.within.isdisjoint(meant))
