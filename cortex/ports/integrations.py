"""Outside systems that can be set up: a kind with its form, what tools get by it, the client that it opens.

Those that this version has are files in `integrations/cards`; nothing here knows any of them.
"""

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

from msgspec import Struct
from pydantic import BaseModel

from cortex.base.errors import UserError

PAGE = "/admin/integrations"


class IntegrationClient(Protocol):
    """A system reached with the settings of its card. Connects by itself, at the first need."""

    async def test(self) -> str:
        """Reach it now: one sentence about what answered. ToolFailed or UserError says what is wrong and what to do."""
        ...

    async def close(self) -> None:
        """End its connections and background work."""
        ...


class LoginStore(Protocol):
    """Where a login is kept, sealed."""

    async def load(self) -> str:
        """Return what was kept; "" for nothing."""
        ...

    async def save(self, text: str) -> None:
        """Keep this in its place."""
        ...


class Setup(Struct, frozen=True, kw_only=True):
    """The reason why a tool cannot be used: a sentence, and the page on which an admin changes that ("" = none does).

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


class IntegrationKind(Struct, frozen=True, kw_only=True):
    """A kind of outside system. `name`: in addresses and tables, so it stays; `about`: what it is good for.

    On the page. order: its place. note: what the card says besides. has_many: several may be set up, each with a name.
    has_roles: it can be given to some roles alone. more: the page of what there is besides its settings; its name
    follows. more_label, more_of_all: words of the link there, for one that is set up and for none.

    Its settings. form: their fields; a `SecretStr` in it is sealed and never shown again. place: fields that say where
    the secrets travel to: who changes one enters them again. beside: names of sealed values that its client keeps
    itself, and that go with it or with another place. people: the account names, in small letters, of which a filled-in
    form says something. search: looks for such systems in the network when an admin asks, and says in a sentence what
    it found.

    What tools get. open: the client for a filled-in form and its name. opens: protocols that they open by it
    (`ctx.use`): its client has their methods, and is asked for anew with each call. by_person: in place of the client,
    what of it has the methods of one of them for one person, by account name. ports: class names of such that are
    wired in `compose` instead. port_of: the port that one of several opens, by its name.

    A kind without `open` is set up by the server's settings: `settings` is their group on that page, `lacks` says what
    is missing ("" = nothing).
    """

    name: str
    title: str
    about: str
    order: int
    opens: tuple[type[Any], ...] = ()  # Any: protocols, which have no type of their own
    ports: tuple[str, ...] = ()
    form: type[BaseModel] = BaseModel
    open: Callable[[Any, str], IntegrationClient] | None = None  # Any: a value of `form`
    place: tuple[str, ...] = ()
    by_person: Callable[[Any, type[Any], str], Awaitable[Any]] | None = None  # Any: client, protocol, what has it
    has_many: bool = False
    has_roles: bool = True
    port_of: Callable[[str], str] | None = None
    more: str = ""
    more_label: str = ""
    more_of_all: str = ""
    beside: tuple[str, ...] = ()
    note: str = ""
    search: Callable[[], Awaitable[str]] | None = None
    people: Callable[[Any], Collection[str]] | None = None  # Any: a value of `form`
    settings: str = ""
    lacks: Callable[[], str] | None = None

    @property
    def port_names(self) -> tuple[str, ...]:
        """Return the class names of all that tools open by it."""
        return (*(port.__name__ for port in self.opens), *self.ports)

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
        """Return the address of its card."""
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
