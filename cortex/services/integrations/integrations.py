"""The outside systems of this server: set up by admins, tested, switched off, given to roles and people.

Their secrets are sealed and are shown to nobody. Each change is audited and holds from the next
message on, in every process.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from cortex.base.clock import Clock
from cortex.base.crypto import Vault
from cortex.base.errors import CortexError, NotFound, UserError
from cortex.base.user import User
from cortex.ports.integrations import IntegrationKind, Setup
from cortex.services.integrations.access import PortAccess, PortRule
from cortex.services.integrations.forms import (
    FormField,
    checked,
    fields_of,
    plain,
    removed_secrets,
    secrets_of,
    untouched_secrets,
)
from cortex.services.integrations.sealed_forms import SealedForms
from cortex.storage.accounts import AccountsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.integrations import IntegrationRow, IntegrationsRepository
from cortex.storage.secrets import ServerSecretsRepository
from cortex.storage.tool_settings import ToolSettingsRepository

NAME_CHARACTERS = 40
MOST_OF_A_KIND = 20
TEST_S = 30.0


class IntegrationCard(Struct, frozen=True, kw_only=True):
    """A system as the page shows it. `row` None = not set up; `lacks`: what the server's settings miss."""

    kind: IntegrationKind
    row: IntegrationRow | None = None
    fields: tuple[FormField, ...] = ()
    lacks: str = ""

    @property
    def name(self) -> str:
        """Its own name among several of its kind."""
        return self.row.name if self.row else ""

    @property
    def title(self) -> str:
        """Return what it is called."""
        return f"{self.kind.title}: {self.name}" if self.name else self.kind.title

    @property
    def is_set_up(self) -> bool:
        """Tell whether tools can use it, were it on."""
        return self.row is not None if self.kind.has_form else not self.lacks

    @property
    def is_shown_by_doctor(self) -> bool:
        """Tell whether the doctor has a line for it: what people set up, but no empty card of many."""
        is_set_by_people = self.kind.has_form or bool(self.kind.settings)
        return is_set_by_people and not (self.kind.has_many and self.row is None)

    @property
    def is_failing(self) -> bool:
        """Tell whether the last call failed."""
        return bool(self.row and self.row.is_on and self.row.failure)

    @property
    def state(self) -> str:
        """Return how it stands, in a sentence."""
        if not self.is_set_up:
            return f"Not configured. {self.lacks}".strip()
        if self.row is None:
            return "Configured by the server's settings." if self.kind.settings else "Works here."
        if not self.row.is_on:
            return "Switched off."
        if self.row.failure:
            return f"The last call failed: {self.row.failure}"
        return "Works." if self.row.worked_at else "Configured. Not used yet."


class Integrations(Struct, frozen=True, kw_only=True):
    """The systems that are set up here. `kinds`: what can be, in the order of the page.

    member_roles: the roles that come with Cortex and that a member may take. all_roles: every role that can be chosen.
    """

    db: Database
    vault: Vault
    clock: Clock
    kinds: Sequence[IntegrationKind]
    member_roles: frozenset[str]
    all_roles: Callable[[], Awaitable[frozenset[str]]]

    @property
    def secrets(self) -> SealedForms:
        """Return what was sealed of the forms."""
        return SealedForms(db=self.db, vault=self.vault)

    @property
    def ports(self) -> frozenset[str]:
        """Every port that a card opens, set up or not; the others are wired at the start."""
        return frozenset(port for kind in self.kinds if kind.has_form for port in kind.port_names)

    async def cards(self) -> Sequence[IntegrationCard]:
        """A card for each system that is set up, and one for each kind of which none is or more can be."""
        rows = await self.db.repository(IntegrationsRepository).list()
        return [card for kind in self.kinds for card in await self._cards_of(kind, rows)]

    async def card(self, kind_name: str, name: str) -> IntegrationCard:
        """One of them; NotFound for what is not set up."""
        kind = self.kind(kind_name)
        row = await self.db.repository(IntegrationsRepository).get(kind_name, name)
        if row is None:
            raise NotFound(f"{kind.title} is not set up{f' as {name!r}' if name else ''}.")
        return await self._card(kind, row)

    async def access(self) -> PortAccess:
        """Return what is open to whom now."""
        rules: dict[str, tuple[PortRule, ...]] = {}
        setups: dict[str, Setup] = {}
        closed: dict[str, Setup] = {}
        rows = await self.db.repository(IntegrationsRepository).list()
        for kind in self.kinds:
            own = [row for row in rows if row.kind == kind.name]
            for row in own if kind.port_of else ():
                port = kind.port_of(row.name) if kind.port_of else ""
                closed[port] = kind.closed(row.name)
                if row.is_on:
                    rules[port] = (self._rule(row),)
                else:
                    setups[port] = kind.setup(is_off=True, name=row.name)
            given = tuple(self._rule(row) for row in own if row.is_on)
            closed |= {port: kind.closed() for port in kind.port_names}
            if kind.has_form and given:
                rules |= {port: (*rules.get(port, ()), *given) for port in kind.port_names}
            elif kind.has_form or (kind.lacks and kind.lacks()):
                setups |= {port: kind.setup(is_off=bool(own)) for port in kind.port_names}
        return PortAccess(rules=rules, setups=setups, closed=closed)

    async def save(
        self,
        user: User,
        kind_name: str,
        name: str,
        typed: Mapping[str, Any],
        *,
        is_new: bool,
        is_same_place: bool = False,
    ) -> None:
        """Set it up, or change what is set. FormErrors names the fields that are wrong.

        An empty secret is kept, unless its removal is ticked. is_new: refuse to change one that is there already.
        is_same_place: secrets stay with it although a field changes that says where they travel to.
        """
        kind, name = self._changeable(user, kind_name), _name(name)
        before = await self.db.repository(IntegrationsRepository).get(kind.name, name)
        await self._check_place(kind, name, before, is_new=is_new)
        form = await self._form(kind, name, typed, before, is_same_place=is_same_place)
        kept = await self.secrets.kept_names(kind, name)
        given = await self.secrets.sealed(kind, name, form)
        async with self.db.transaction() as repository:
            now = await repository(IntegrationsRepository).get(
                kind.name, name
            )  # somebody may have switched it off since
            row = replace(
                now or IntegrationRow(kind=kind.name, name=name, settings={}),
                settings=plain(form),
                worked_at=None,
                failed_at=None,
                failure="",
            )
            secrets = repository(ServerSecretsRepository)
            await secrets.remove(self.secrets.names(kind, name))
            if before is not None and not is_same_place and _is_elsewhere(kind, before, form):
                await secrets.remove(self.secrets.names_beside(kind, name))
            for key, ciphertext in given.items():
                await secrets.put(key, ciphertext)
            await repository(IntegrationsRepository).save(row, user.id)
            await repository(ToolSettingsRepository).changed()
            removed = [*removed_secrets(typed, kept)]
            detail: dict[str, Any] = {"settings": row.settings, "was": before.settings if before else None}
            detail |= {"removed": removed} if removed else {}
            await repository(AuditRepository).add(user.id, "integration.saved", _subject(kind, name), detail)

    async def share(self, user: User, kind_name: str, name: str, roles: Sequence[str], people: Sequence[str]) -> None:
        """Let only these roles and people use it; none = every role, everybody.

        A role that is gone is dropped; UserError where that would leave none, and so open it to every role.
        """
        kept = await self._kept_roles(self._changeable(user, kind_name), roles)
        chosen = {"roles": kept, "people": tuple(dict.fromkeys(people))}
        await self._change(user, kind_name, name, "integration.shared", **chosen)

    async def switch(self, user: User, kind_name: str, name: str, *, is_on: bool) -> None:
        """Let tools use it, or keep them from it; all that is set stays."""
        await self._change(user, kind_name, name, "integration.switched", is_on=is_on)

    async def remove(self, user: User, kind_name: str, name: str) -> None:
        """Forget it and its secrets; NotFound when it is not set up."""
        kind = self._changeable(user, kind_name)
        async with self.db.transaction() as repository:
            if not await repository(IntegrationsRepository).remove(kind.name, name):
                raise NotFound(f"{kind.title} is not set up.")
            await repository(ServerSecretsRepository).remove(
                (*self.secrets.names(kind, name), *self.secrets.names_beside(kind, name))
            )
            await repository(ToolSettingsRepository).changed()
            await repository(AuditRepository).add(user.id, "integration.removed", _subject(kind, name))

    async def test(self, user: User, kind_name: str, name: str, typed: Mapping[str, Any]) -> str:
        """Try these values, saved or not, and return in a sentence what answers. UserError says what is wrong. 30 s."""
        kind, name = self._changeable(user, kind_name), _name(name)
        before = await self.db.repository(IntegrationsRepository).get(kind.name, name)
        form = await self._form(kind, name, typed, before)
        client = kind.client(form, "")
        try:
            async with asyncio.timeout(TEST_S):
                text = await client.test()
        except TimeoutError:
            text, failure = "", f"{kind.title} did not answer within {TEST_S:.0f} seconds."
        except CortexError as error:
            text, failure = "", error.message
        else:
            failure = ""
        finally:
            await client.close()
        is_stored = before is not None and before.settings == plain(form)
        secrets = secrets_of(kind.form)
        if before is not None and is_stored and untouched_secrets(typed, secrets) == secrets:
            await self.db.repository(IntegrationsRepository).note(kind.name, name, before.version, failure=failure)
        if failure:
            raise UserError(failure)
        return " ".join(filter(None, (text, await self._unknown_people(kind, form))))

    async def search(self, user: User, kind_name: str) -> str:
        """Return what of this kind answers in the network, in a sentence; UserError where that can't be searched."""
        kind = self._changeable(user, kind_name)
        if kind.search is None:
            raise UserError(f"{kind.title} cannot be found by searching the network. Enter its address.")
        try:
            async with asyncio.timeout(TEST_S):
                return await kind.search()
        except TimeoutError as error:
            raise UserError(f"The search took longer than {TEST_S:.0f} seconds. Enter the address instead.") from error

    async def names(self, kind_name: str, user_id: str, role: str = "") -> Sequence[str]:
        """Names of the systems of a kind that are on and that this account may use in this role.

        `role` "": in one of those that it may take.
        """
        rows = await self.db.repository(IntegrationsRepository).list()
        mine = [row for row in rows if row.kind == kind_name and row.is_on]
        if not mine:
            return []
        is_admin = (await self.db.repository(AccountsRepository).get(user_id)).rank == "admin"
        return [row.name for row in mine if self._rule(row).lets(user_id, role, is_admin=is_admin)]

    def _rule(self, row: IntegrationRow) -> PortRule:
        members = tuple(role for role in row.roles if role in self.member_roles)
        return PortRule(roles=row.roles, people=row.people, member_roles=members)

    async def _kept_roles(self, kind: IntegrationKind, chosen: Sequence[str]) -> tuple[str, ...]:
        known = await self.all_roles() if chosen and kind.has_roles else frozenset()
        kept = tuple(role for role in dict.fromkeys(chosen) if role in known)
        if chosen and not kept and kind.has_roles:
            gone = ", ".join(chosen)
            raise UserError(f"These roles no longer exist: {gone}. Choose others, or none for all roles.")
        return kept

    async def _unknown_people(self, kind: IntegrationKind, form: Any) -> str:  # Any: a value of the kind's form
        """A sentence on the account names in the form that nobody has; "" for none."""
        if kind.people is None:
            return ""
        known = {account.name.casefold() for account in await self.db.repository(AccountsRepository).list()}
        unknown = ", ".join(name for name in kind.people(form) if name not in known)
        return f"No account has this name: {unknown}." if unknown else ""

    async def _change(self, user: User, kind_name: str, name: str, action: str, **values: Any) -> None:
        kind = self._changeable(user, kind_name)
        async with self.db.transaction() as repository:
            before = await repository(IntegrationsRepository).get(kind.name, name)
            if before is None:
                raise NotFound(f"{kind.title} is not set up.")
            await repository(IntegrationsRepository).save(replace(before, **values), user.id)
            await repository(ToolSettingsRepository).changed()
            detail = {key: [_portable(getattr(before, key)), _portable(value)] for key, value in values.items()}
            await repository(AuditRepository).add(user.id, action, _subject(kind, name), detail)

    async def _cards_of(self, kind: IntegrationKind, rows: Sequence[IntegrationRow]) -> list[IntegrationCard]:
        own = [await self._card(kind, row) for row in rows if row.kind == kind.name]
        if own and not kind.has_many:
            return own
        return [*own, self.empty_card(kind.name)]

    async def _card(self, kind: IntegrationKind, row: IntegrationRow) -> IntegrationCard:
        kept = await self.secrets.kept_names(kind, row.name)
        return IntegrationCard(kind=kind, row=row, fields=fields_of(kind.form, row.settings, kept, {}))

    def empty_card(self, kind_name: str) -> IntegrationCard:
        """The card of one that is still to be set up; NotFound for an unknown kind."""
        kind = self.kind(kind_name)
        lacks = kind.lacks() if kind.lacks else ""
        return IntegrationCard(kind=kind, fields=fields_of(kind.form, {}, (), {}), lacks=lacks)

    def typed_card(self, card: IntegrationCard, typed: Mapping[str, Any], errors: Mapping[str, str]) -> IntegrationCard:
        """The card with what was typed in place of what is stored, each error beside its field."""
        kept = [one.name for one in card.fields if one.is_kept]
        return replace(card, fields=fields_of(card.kind.form, typed, kept, errors))

    async def _form(
        self,
        kind: IntegrationKind,
        name: str,
        typed: Mapping[str, Any],
        before: IntegrationRow | None,
        *,
        is_same_place: bool = False,
    ) -> Any:  # Any: a value of the kind's form
        kept = await self.secrets.kept(kind, name) if before else {}
        form = checked(kind.form, typed, kept)
        if (
            before is not None
            and not is_same_place
            and _is_elsewhere(kind, before, form)
            and untouched_secrets(typed, kept)
        ):
            raise UserError("The address changed, so the stored secret is not sent there. Enter it again.")
        return form

    async def _check_place(
        self, kind: IntegrationKind, name: str, before: IntegrationRow | None, *, is_new: bool
    ) -> None:
        if kind.has_many != bool(name):
            raise UserError("Give it a name." if kind.has_many else f"There is one {kind.title} only.", field="name")
        if before is not None and is_new:
            raise UserError(f"This name is already used: {name}.", field="name")
        rows = await self.db.repository(IntegrationsRepository).list()
        if before is None and sum(row.kind == kind.name for row in rows) >= MOST_OF_A_KIND:
            raise UserError(f"At most {MOST_OF_A_KIND} of these.")

    def kind(self, name: str) -> IntegrationKind:
        """The kind of this name; NotFound."""
        found = next((kind for kind in self.kinds if kind.name == name), None)
        if found is None:
            raise NotFound(f"There is no integration {name!r}.")
        return found

    def _changeable(self, user: User, name: str) -> IntegrationKind:
        user.must_be_admin("set up integrations")
        kind = self.kind(name)
        if not kind.has_form:
            raise UserError(f"{kind.title} is not set up on this page.")
        return kind


def _is_elsewhere(kind: IntegrationKind, before: IntegrationRow, form: BaseModel) -> bool:
    """Tell whether the stored secrets would travel to another place than they were given for."""
    return any(plain(form).get(key) != before.settings.get(key) for key in kind.place)


def _name(name: str) -> str:
    """The name tidied; UserError for one that could not stand in a sentence or an address."""
    tidy = name.strip()
    if len(tidy) > NAME_CHARACTERS or (tidy and not tidy.replace("-", "a").replace("_", "a").isalnum()):
        raise UserError(f"A name has up to {NAME_CHARACTERS} letters, digits, - and _.", field="name")
    return tidy.casefold()


def _subject(kind: IntegrationKind, name: str) -> str:
    return f"{kind.title}: {name}" if name else kind.title


def _portable(value: Any) -> Any:  # Any: what the audit log takes
    return json.loads(json.dumps(value))
