"""Access to what outside systems give: for each port its rules, or why it is closed."""

from collections.abc import Mapping

from msgspec import Struct, field

from cortex.base.user import User
from cortex.ports.integrations import Setup


class PortRule(Struct, frozen=True, kw_only=True):
    """Accounts that may use what one configured system gives: role names, account ids; () = every role, everybody.

    member_roles: those of `roles` that come with Cortex and that a member may take.
    """

    roles: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    member_roles: tuple[str, ...] = ()

    def has(self, user_id: str) -> bool:
        """Tell whether this account may in some role."""
        return not self.people or user_id in self.people

    def lets(self, user_id: str, role: str, *, is_admin: bool) -> bool:
        """Tell whether this account may in this role. `role` "": in one of those that it may take."""
        if not self.has(user_id) or not self.roles:
            return self.has(user_id)
        mine = self.roles if is_admin else self.member_roles  # a member can give a role of their own any name
        return role in mine if role else is_admin or bool(mine)


class PortAccess(Struct, frozen=True, kw_only=True):
    """Ports that outside systems open to tools: rules of each that is configured, for others why they are not.

    closed: for each configured port, what is said where it is not open to an account in a role.
    """

    rules: Mapping[str, tuple[PortRule, ...]]
    setups: Mapping[str, Setup]
    closed: Mapping[str, Setup] = field(default_factory=dict)

    def ports(self, user: User, role: str = "") -> frozenset[str]:
        """The ports that this account may use in this role ("" = in one of those that it may take)."""
        return frozenset(
            port
            for port, rules in self.rules.items()
            if any(one.lets(user.id, role, is_admin=user.is_admin) for one in rules)
        )

    @property
    def configured(self) -> frozenset[str]:
        """The ports that somebody may use."""
        return frozenset(self.rules)


NO_ACCESS = PortAccess(rules={}, setups={})
