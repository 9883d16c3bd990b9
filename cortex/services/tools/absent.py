"""Which tools a person cannot use in this round although they might want them, each with the reason and the way.

Of what an account may never have it is said whom it is for, and nothing of how that stands on this server.
`services/tools/plans.py` says one where a message wants the tool; nothing here reads a table or a file.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.role import Channel, Role, ToolMode
from cortex.base.user import User
from cortex.ports.integrations import Setup
from cortex.ports.mcp import FAMILY
from cortex.selection.types import NamesKey, Snapshot, ToolEntry
from cortex.services.tools.plans import NOTHING_ABSENT, AbsentTools
from cortex.services.tools.settings import ToolSettings
from cortex.toolkit.grants import ToolGrant, granted, permits
from cortex.toolkit.registry import ToolSet

RoleGrants = tuple[tuple[str, ToolGrant], ...]


class _Same:
    """A mapping as a cache key that is equal to itself alone."""

    def __init__(self, value: Mapping[str, Setup]) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


def reasons_of(tools: ToolSet, settings: ToolSettings, setups: Mapping[str, Setup]) -> dict[str, Setup]:
    """Why a tool cannot be used, or not by everybody. Of one that nobody has allowed yet nothing is said."""
    found, closed = dict[str, Setup](), settings.access.closed
    for name, tool in tools.tools.items():
        port = next((port for port in (*tools.categories[tool.category].needs, *tool.needs) if port in closed), "")
        if name in settings.off:
            is_unknown = tool.has_foreign_words and name not in settings.outward_off
            found |= {} if is_unknown else {name: _switched_off(name, is_outward=name in settings.outward_off)}
        elif name in setups:
            found[name] = replace(setups[name], title=setups[name].title or name)
        elif port:
            found[name] = closed[port]
    return found


class ToolSeeker(Struct, frozen=True, kw_only=True):
    """A person who wants tools, and where. `roles`: those that the account may take, the first to be named first.

    `never`: tools that are not wanted in this conversation.
    """

    user: User
    role: Role
    mode: ToolMode
    channel: Channel
    roles: RoleGrants = ()
    never: Collection[str] = ()


def absent_tools(
    snapshot: Snapshot, ready: tuple[str, ...], reasons: Mapping[str, Setup], who: ToolSeeker
) -> AbsentTools:
    """Return what is absent. `ready`: what is there for this account in this role; `reasons`: why others are not."""
    is_admin = who.user.is_admin
    own = granted(who.role, is_admin=is_admin)
    if who.mode == "chat" or not own.words:  # who only talks has chosen that
        return NOTHING_ABSENT
    others = who.roles if who.channel == "chat" and who.role.within is None else ()
    found = _standing(snapshot, _Same(reasons), NamesKey(ready), own, others, is_admin, who.channel)
    chosen = {name: _chosen(name) for name in who.never if name in ready}
    return replace(found, reasons={**found.reasons, **chosen}) if chosen else found


@lru_cache(maxsize=32)
def _standing(
    snapshot: Snapshot,
    reasons: _Same,
    ready: NamesKey,
    own: ToolGrant,
    others: RoleGrants,
    is_admin: bool,
    channel: Channel,
) -> AbsentTools:
    """Return what holds for every message of such a person; worked out once, since there may be thousands of tools."""
    there, found, outside = frozenset(ready.names), dict[str, Setup](), list[str]()
    for entry in snapshot.entries:
        holder = next(
            (
                name
                for name, grant in (("", own), *others)
                if _permits(grant, entry, is_admin=is_admin, channel=channel)
            ),
            None,
        )
        if entry.is_meta or (entry.name in there and holder == ""):
            continue
        if holder is None:  # of what other servers bring nobody else need know
            is_for_admins = bool(others) and not is_admin and not entry.category.startswith(FAMILY)
            why = _for_admins(entry.name) if is_for_admins else None
        else:
            why = _elsewhere(entry.name, holder) if entry.name in there else reasons.value.get(entry.name)
        if why is not None:
            found[entry.name] = why
            outside += [] if holder == "" else [entry.name]
    return AbsentTools(reasons=found, outside=tuple(outside))


def _permits(grant: ToolGrant, entry: ToolEntry, *, is_admin: bool, channel: Channel) -> bool:
    return permits(grant, entry.name, entry.category, channel, is_withheld=entry.is_admin and not is_admin)


def _switched_off(name: str, *, is_outward: bool) -> Setup:
    """`is_outward`: with all that reaches outside."""
    if is_outward:
        text = f"{name} is switched off with all tools that reach outside. An admin can switch them on again."
        return Setup(title=name, text=text, page="/stop-all", state="switched off here for now")
    text = f"{name} is switched off. An admin can switch it on under Tools."
    return Setup(title=name, text=text, page=f"/admin/tools/{name}", state="switched off here")


def _elsewhere(name: str, role: str) -> Setup:
    text = f"{name} is a tool of the role {role}. Choose that role to use it."
    return Setup(title=name, text=text, page="", state=f"only in the role {role}", is_own=True, role=role)


def _for_admins(name: str) -> Setup:
    return Setup(title=name, text=f"{name} is for admins only.", page="", state="for admins only")


def _chosen(name: str) -> Setup:
    text = f"You set {name} to “never” for this chat."
    return Setup(title=name, text=text, page="", state="set to “never” for this chat", is_own=True)
