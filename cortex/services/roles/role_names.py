"""Slips in the files of a home: what cannot be read, and names in its roles that name nothing (tools, models, roles).

They grant nothing and stop nothing; the pages of the roles and the doctor say them where they are used.
"""

from collections.abc import Awaitable, Mapping, Sequence
from difflib import get_close_matches

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.ports.mcp import FAMILY
from cortex.services.accounts.people import as_user
from cortex.services.models.models import Models
from cortex.services.roles.roles import Roles
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.jobs import JobsRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.registry import Registry

LISTS = ("tools", "admin_tools", "core")
PLACES = {
    "yours": "roles/{role}.md",
    "browser": "role {role}, as set on its page",
    "shipped": "the shipped role {role}",
}


class RoleNames(Struct, frozen=True, kw_only=True):
    """Looks through a person's roles and what names them."""

    db: Database
    roles: Roles
    models: Models
    registry: Registry

    async def of_role(self, user: User, name: str) -> Sequence[str]:
        """A sentence for each name in this role that names nothing here; () when all is well, or a slip is in it."""
        try:
            found = await self.roles.in_force(user, name)
            models = await self.models.registry(user)
        except UserError:
            return ()
        known = frozenset({*self.registry.categories, *self.registry.tools, FAMILY})
        said = []
        for field in LISTS:
            where = PLACES.get(found.origins[field], "").format(role=name)
            for word in getattr(found.role, field):
                if word in known or word == "all":
                    continue
                said.append(f"{where}: {field!r} names {word!r}, which is no tool and no category.{_near(word, known)}")
        where = PLACES.get(found.origins["models"], "").format(role=name)
        for word in found.role.models:
            if models.get(word) is None:
                said.append(f"{where}: 'models' names {word!r}, which is none of your models.")
        return tuple(said)

    async def all(self, user: User) -> Sequence[str]:
        """The same of every role of this person, and what names a role that is not there: jobs, chains, new chats."""
        names = await self.roles.names(user)
        said = [sentence for name in names for sentence in await self.of_role(user, name)]
        for role, users in (await self._named(user)).items():
            if role not in names:
                said.append(
                    f"There is no role {role!r} any more. It is named by {', '.join(users)}: choose another one."
                )
        return tuple(said)

    async def of_admins(self) -> frozenset[str]:
        """Every role that an outside system can be given to: those that come with Cortex, and the admins' own."""
        accounts = await self.db.repository(AccountsRepository).list()
        admins = [as_user(account) for account in accounts if account.rank == "admin"]
        return frozenset({name for admin in admins for name in await self.roles.names(admin)})

    async def _named(self, user: User) -> Mapping[str, list[str]]:
        """Every role that is named somewhere, with where."""
        named: dict[str, list[str]] = {}
        for job in await self.db.repository(JobsRepository, user.id).list():
            if job.role:
                named.setdefault(job.role, []).append(f"the job {job.name!r}")
        try:
            for role in (await self.models.registry(user)).roles:
                named.setdefault(role, []).append("model_registry.json")
        except UserError:  # a slip of that file is told by itself
            pass
        first = await self.db.repository(PreferencesRepository, user.id).get("role", "")
        if isinstance(first, str) and first:
            named.setdefault(first, []).append("your settings for new chats")
        return named


def _near(word: str, known: frozenset[str]) -> str:
    near = get_close_matches(word, sorted(known), n=1, cutoff=0.75)
    return f" Did you mean {near[0]!r}?" if near else ""


class HomeFiles(Struct, frozen=True, kw_only=True):
    """Finds slips in the files of a home: every page and the doctor say them; a turn fails with the same words."""

    roles: Roles
    models: Models
    names: RoleNames

    async def slips(self, user: User) -> Sequence[str]:
        """A sentence for each file that cannot be taken as it is: its name and what is wrong; () when all is well."""
        readings: list[Awaitable[object]] = [self.models.registry(user), self.roles.persona(user)]
        readings += [self.roles.file(user, name) for name in await self.roles.own(user)]
        return tuple([slip for reading in readings if (slip := await _slip(reading))])


async def _slip(reading: Awaitable[object]) -> str:
    try:
        await reading
    except UserError as error:
        return error.message
    return ""
