"""What can be set up: a kind of outside system with its form, what tools get by it, and how it is opened.

The list of those that this version has is made in `compose/integrations.py`; nothing here knows any of them.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.ports.integrations import IntegrationClient

PAGE = "/admin/integrations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Why a tool cannot be used: a sentence, and the page on which an admin changes that ("" = none does).

    `title`: what it waits for. `state`: how that is, as it follows "is". `is_own`: the person can change it themselves,
    admin or not. `role`: the one that has the tool, where this one lacks it.
    """

    title: str = ""
    text: str
    page: str
    state: str = "not set up here"
    is_own: bool = False
    role: str = ""

    @property
    def sentence(self) -> str:
        """The same for whoever does not see what it is said of."""
        return (
            self.text
            if self.page or self.is_own or not self.title
            else f"{self.title}: {self.text[:1].lower()}{self.text[1:]}"
        )

    def for_person(self, *, is_admin: bool) -> dict[str, str]:
        """For the receipt of this person's message: who cannot change it hears whom to ask, and is sent to no page."""
        can_change = is_admin or self.is_own
        text = self.sentence if can_change else f"{self.title} is {self.state}: ask whoever runs Cortex."
        return {"title": self.title, "text": text, "page": self.page if can_change else "", "role": self.role}

    def to_dict(self) -> dict[str, str]:
        """For `--json` and receipts."""
        return {"text": self.text, "page": self.page}


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrationKind:
    """A kind of outside system. `name`: in addresses and tables; `about`: what it is good for, in a sentence.

    ports: class names of what tools open by it (`ctx.use`). form: its settings; a `SecretStr` in it is sealed and never
    shown again. open: the client for a filled-in form and its name. place: fields that say where the secrets travel to:
    who changes one enters them again. has_many: several may be set up, each with a name. note: what the card says
    besides. search: looks for such systems in the network when an admin asks, and says in a sentence what it found.
    people: the account names, in small letters, of which a filled-in form says something. port_of: the port that one of
    several opens, by its name. more: the page of what there is besides its settings; its name follows. beside: names of
    sealed values that its client keeps itself, and that go with it or with another place. has_roles: it can be given to
    some roles alone.

    A kind without `open` is set up by the server's settings: `variables` names them, `lacks` says what is missing
    ("" = nothing), `lines` is what to add to the settings file, with examples for values.
    """

    name: str
    title: str
    about: str
    ports: tuple[str, ...]
    form: type[BaseModel] = BaseModel
    open: Callable[[Any, str], IntegrationClient] | None = None  # Any: a value of `form`
    place: tuple[str, ...] = ()
    has_many: bool = False
    has_roles: bool = True
    port_of: Callable[[str], str] | None = None
    more: str = ""
    beside: tuple[str, ...] = ()
    note: str = ""
    search: Callable[[], Awaitable[str]] | None = None
    people: Callable[[Any], Collection[str]] | None = None  # Any: a value of `form`
    variables: tuple[str, ...] = ()
    lacks: Callable[[], str] | None = None
    lines: tuple[str, ...] = ()

    @property
    def has_form(self) -> bool:
        """Tell whether it is set up on the page."""
        return self.open is not None

    def client(self, form: BaseModel, name: str) -> IntegrationClient:
        """Its client for a filled-in form and its name; UserError for a kind that is not set up on the page."""
        if self.open is None:
            raise UserError(f"{self.title} is not set up on this page.")
        return self.open(form, name)

    @property
    def page(self) -> str:
        """Where its card stands."""
        return f"{PAGE}#{self.name}"

    def setup(self, *, is_off: bool = False, name: str = "") -> Setup:
        """Return what is said where it is not set up, or switched off. `name`: its own among several."""
        if is_off:
            return self._setup(name, "switched off", "An admin can switch it on under Integrations.")
        return self._setup(name, "not set up", "An admin can do it under Integrations.")

    def closed(self, name: str = "") -> Setup:
        """Return what is said where it works, and not for this account in this role."""
        return self._setup(name, "not open to you in this role", "An admin can open it under Integrations.")

    def _setup(self, name: str, state: str, way: str) -> Setup:
        title = f"{self.title} {name}" if name else self.title
        here = state if "you" in state else f"{state} here"
        return Setup(title=title, text=f"{title} is {state}. {way}", page=self.page, state=here)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortRule:
    """Who may use what one configured system gives: role names and account ids; () = every role, everybody.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PortAccess:
    """What outside systems open to tools: the rules of each configured port, for others the reason why they are not.

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
