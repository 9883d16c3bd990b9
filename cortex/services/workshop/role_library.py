"""Makes, copies, deletes and brings back a person's own roles: files of their home, and what was set for them.

A role made here has the tools of one that its person may take, or none: nobody grants themselves more than they have.
"""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotAllowed, NotFound, UserError
from cortex.base.role import Role
from cortex.base.user import User
from cortex.services.models.models import Models
from cortex.services.roles.files import written
from cortex.services.roles.roles import Roles
from cortex.storage.audit import AuditRepository
from cortex.storage.conversations import ConversationRow, ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.home import ABSENT, Homes
from cortex.storage.integrations import IntegrationsRepository
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.grants import granted

NAME_MAX = 40
PROMPT_MAX = 12_000
OWN_MOST = 60
REMOVED = "removed_roles"
REMOVED_KEPT = 10
FIRST = "role"  # the preference that says in which role a new chat begins
RESERVED = frozenset({"new", "all", "none", "default"})
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class RoleUse(Struct, frozen=True, kw_only=True):
    """The use that is made of a role. `begins_chats`: new chats start with it."""

    conversations: Sequence[ConversationRow]
    jobs: Sequence[JobRow]
    begins_chats: bool


class RoleLibrary(Struct, frozen=True, kw_only=True):
    """Every method takes the user first and sees nothing of anybody else's."""

    db: Database
    homes: Homes
    roles: Roles
    models: Models

    async def make(self, user: User, name: str, prompt: str, source: str) -> str:
        """A new role with the tools and settings of `source`, "" for none; its name. An empty prompt is the source's.

        UserError names the field that is wrong.
        """
        wanted = await self._free_name(user, name)
        role = await self._source(user, source)
        words = prompt.replace("\r\n", "\n").strip()
        if len(words) > PROMPT_MAX:
            raise UserError(f"That is too long: at most {PROMPT_MAX:,} characters.", field="prompt")
        if not words and not source:
            raise UserError("Enter a prompt, or choose a role to base it on.", field="prompt")
        if not granted(role, is_admin=user.is_admin).words <= await self.roles.reach(user):
            raise NotAllowed(f"The role {source!r} has tools you cannot use.")
        text = written(replace(role, name=wanted, prompt=words or role.prompt))
        async with self.db.transaction(user.id) as repository:
            await repository(PreferencesRepository).unset(_settings_of(wanted))  # of a file that was taken away by hand
            await repository(AuditRepository).add(user.id, "role.made", wanted, {"from": source})
        try:
            await self.homes.home_of(user.id).write(_path(wanted), text, ABSENT)
        except Conflict:
            raise UserError(f"There is a role {wanted!r} already; choose another name.", field="name") from None
        await self.models.set_chain(user, await self._chain(user, source), wanted)
        return wanted

    async def use(self, user: User, name: str) -> RoleUse:
        """List the conversations and jobs that go on in the role. NotFound for none of this user's own."""
        await self._text(user, name)
        if self.roles.ships(name):  # with its file gone, the shipped one goes on
            return RoleUse(conversations=(), jobs=(), begins_chats=False)
        async with self.db.read_transaction(user.id) as repository:
            return RoleUse(
                conversations=await repository(ConversationsRepository).in_role(name),
                jobs=await repository(JobsRepository).in_role(name),
                begins_chats=await repository(PreferencesRepository).get(FIRST) == name,
            )

    async def remove(self, user: User, name: str, to: str = "") -> None:
        """Delete the role; what goes on in it goes on in `to`, or, without one, waits for its person to choose.

        Conversations stay readable either way, and `restore` brings all back. UserError for an unknown `to`.
        """
        text, version = await self._text(user, name)
        if to and (to == name or to not in await self.roles.names(user)):
            raise UserError(f"There is no role {to!r} to continue in.", field="to")
        use = await self.use(user, name)
        conversations, jobs = [one.id for one in use.conversations], [one.id for one in use.jobs]
        chain = list(await self._chain(user, name))
        async with self.db.transaction(user.id) as repository:
            preferences = repository(PreferencesRepository)
            kept: list[dict[str, Any]] = await preferences.get(REMOVED, [])
            gone = {
                "name": name,
                "text": text,
                "settings": await preferences.get(_settings_of(name)),
                "chain": chain,
                "to": to,
                "conversations": conversations,
                "jobs": jobs,
                "begins_chats": use.begins_chats,
            }
            gone = _with_what_a_cut_try_moved(gone, next((one for one in kept if one["name"] == name), None))
            others = [one for one in kept if one["name"] != name]
            await preferences.set(REMOVED, [*others, gone][-REMOVED_KEPT:])
            await preferences.unset(_settings_of(name))
            if use.begins_chats:
                await (preferences.set(FIRST, to) if to else preferences.unset(FIRST))
            if to:
                await repository(ConversationsRepository).move_role(conversations, name, to)
                await repository(JobsRepository).move_role(jobs, name, to)
            await repository(AuditRepository).add(user.id, "role.removed", name, {"to": to})
        await self.models.set_chain(user, (), name)
        await self.homes.home_of(user.id).remove(_path(name), version)

    async def removed(self, user: User) -> Sequence[str]:
        """The roles that were deleted lately and can be brought back, the newest first."""
        kept = await self.db.repository(PreferencesRepository, user.id).get(REMOVED, [])
        return [one["name"] for one in reversed(kept)]

    async def restore(self, user: User, name: str) -> None:
        """Bring a role back as it was, with what went on in it, but for what was given another role since.

        NotFound when it is not among the last few; Conflict when there is one of that name again.
        """
        kept: list[dict[str, Any]] = await self.db.repository(PreferencesRepository, user.id).get(REMOVED, [])
        gone = next((one for one in kept if one["name"] == name), None)
        if gone is None:
            raise NotFound("This role cannot be restored. Only the last few deleted roles can.")
        home = self.homes.home_of(user.id)
        there = await home.configured(_path(name))
        if there is not None and there.text != gone["text"]:
            raise Conflict(f"There is a role named {name!r} again. Copy or delete that one first.")
        if there is None:  # else an earlier try has written it
            await home.write(_path(name), gone["text"], ABSENT)
        registry = await self.models.registry(user)
        await self.models.set_chain(user, [one for one in gone["chain"] if registry.get(one)], name)
        async with self.db.transaction(user.id) as repository:
            preferences = repository(PreferencesRepository)
            if gone["settings"] is not None:
                await preferences.set(_settings_of(name), gone["settings"])
            if gone["begins_chats"] and await preferences.get(FIRST, "") == gone["to"]:
                await preferences.set(FIRST, name)
            if gone["to"]:
                await repository(ConversationsRepository).move_role(gone["conversations"], gone["to"], name)
                await repository(JobsRepository).move_role(gone["jobs"], gone["to"], name)
            await preferences.set(REMOVED, [one for one in kept if one["name"] != name])
            await repository(AuditRepository).add(user.id, "role.restored", name, {})

    async def give(self, user: User, conversation_id: str, role: str) -> None:
        """Let a conversation go on in another role. UserError when that is not there, NotFound for another's."""
        conversations = self.db.repository(ConversationsRepository, user.id)
        await conversations.get(conversation_id)  # another's is not there, whatever role is named
        await self.roles.must_be_there(user, role)
        await conversations.set_role(conversation_id, role)

    async def _free_name(self, user: User, typed: str) -> str:
        name = "_".join(typed.strip().casefold().split())
        if not _NAME.fullmatch(name) or len(name) > NAME_MAX or name in RESERVED:
            raise UserError(
                f"A name has 1 to {NAME_MAX} lower-case letters a to z, digits and _, and starts with a letter.",
                field="name",
            )
        own = await self.roles.own(user)
        if self.roles.ships(name) or name in own:
            raise UserError(f"There is a role {name!r} already; choose another name.", field="name")
        if len(own) >= OWN_MOST:
            raise UserError(
                f"You have {OWN_MOST} roles of your own, which is the limit. Delete one first.", field="name"
            )
        rows = await self.db.repository(IntegrationsRepository).list()
        if not user.is_admin and any(name in row.roles for row in rows):
            raise UserError(f"The name {name!r} is reserved for an admin role. Choose another one.", field="name")
        return name

    async def _source(self, user: User, source: str) -> Role:
        if not source:
            return Role(name="", prompt="")
        await self.roles.must_be_there(user, source)
        return (await self.roles.in_force(user, source)).role

    async def _chain(self, user: User, name: str) -> Sequence[str]:
        return (await self.models.registry(user)).roles.get(name, ()) if name else ()

    async def _text(self, user: User, name: str) -> tuple[str, str]:
        """The role's file and its version; NotFound for a role that is none of this user's own."""
        found = None
        if name.isidentifier():
            found = await self.homes.home_of(user.id).configured(_path(name))
        if found is None:
            raise NotFound(f"There is no role {name!r} of your own.")
        return found


def _with_what_a_cut_try_moved(gone: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """A deletion that was cut ahead of its last step has moved things already: `restore` is to know of them too."""
    if before is None or before["text"] != gone["text"] or before["to"] != gone["to"]:
        return gone
    joined = {key: list(dict.fromkeys([*before[key], *gone[key]])) for key in ("conversations", "jobs")}
    settings = gone["settings"] if gone["settings"] is not None else before["settings"]
    chain = gone["chain"] or before["chain"]
    begins = gone["begins_chats"] or before["begins_chats"]
    return {**gone, **joined, "settings": settings, "chain": chain, "begins_chats": begins}


def _path(name: str) -> str:
    return f"roles/{name}.md"


def _settings_of(name: str) -> str:
    return f"role:{name}"
