"""A person's skills for the page: write, rename, delete with a way back, and try which messages would show one.

Skills are files of their home (`base/skill.py`). What a person saves by hand is theirs, so the mark of outside goes.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from cortex.base import tokens
from cortex.base.errors import Conflict, NotFound, ToolFailed, UserError
from cortex.base.front_matter import joined, quoted
from cortex.base.skill import (
    DESCRIPTION_CHARS_MAX,
    SKILLS_MAX,
    TITLE_CHARS_MAX,
    Skill,
    SkillFit,
    path_of,
    reading,
    skill_of,
)
from cortex.base.user import User
from cortex.selection.index.skill_search import LEAST as LEAST
from cortex.selection.index.skill_search import fits, judged, line
from cortex.selection.types import Snapshot
from cortex.services.tools.skill_folders import FoundSkill, as_folders, lists_of, read_folders
from cortex.services.tools.tools import ToolsService
from cortex.storage.db import Database
from cortex.storage.home import ABSENT
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.page import mark_of
from cortex.toolkit.skills import TOO_MANY, skill_in
from cortex.toolkit.skills import SkillFile as SkillFile

NAME_CHARS_MAX = 60
MESSAGES_MAX = 20
REMOVED = "skills.removed"  # the last few deleted skills, so that the page can offer them back
REMOVED_KEPT = 5
BEGINNING = "Write here how it is done, step by step."
EXAMPLE_TITLE = "Weekly review"
EXAMPLE = """---
title: Weekly review
description: How I look back on the week and plan the next one
phrases: [plan my week, week in review]
tools: [task_list, task_create]
---

1. Show what is late on my lists, then what is due within seven days.
2. Ask me about each late one: do it, move it, or drop it.
3. Ask for three things that must happen next week, and add them to the list "week".
4. End with one line: how many done, how many moved.
"""


class SkillRow(Struct, frozen=True, kw_only=True):
    """A skill in the list. Tokens: of its line, paid when it fits, and of its text, paid when it is read."""

    name: str
    title: str
    description: str
    line_tokens: int
    read_tokens: int
    changed_at: datetime
    is_tainted: bool
    error: str


class SkillMatch(Struct, frozen=True, kw_only=True):
    """A message and the skills that it would show, best first; `mine`: how well the one on trial fits, if at all."""

    message: str
    shown: tuple[SkillFit, ...]
    mine: SkillFit | None = None

    @property
    def is_shown(self) -> bool:
        """Tell whether the one on trial would be among them."""
        return self.mine is not None and self.mine.name in {fit.name for fit in self.shown}


class SkillTrial(Struct, frozen=True, kw_only=True):
    """A skill's text as typed: what is wrong with it, else what it costs and which messages would show it."""

    error: str = ""
    line_tokens: int = 0
    read_tokens: int = 0
    unknown_tools: tuple[str, ...] = ()
    tried: tuple[SkillMatch, ...] = ()


class BroughtIn(Struct, frozen=True, kw_only=True):
    """The names of skills that were added, why others were not, and how many files beside them were not taken."""

    added: Sequence[str]
    refused: Sequence[str]
    others: int


class SkillsService:
    """Every method takes whose skills. A version tag guards each write: Conflict when it was changed in between."""

    def __init__(self, db: Database, tools: ToolsService) -> None:
        """`db` keeps the marks of outside words and what was deleted lately; `tools` what plans are made from."""
        self._db = db
        self._tools = tools
        self._files = tools.skills

    async def list(self, user: User) -> Sequence[SkillRow]:
        """The skills by name, the broken ones with what is wrong."""
        files = await self._files.files(user)
        return await asyncio.to_thread(lambda: [_row(file) for file in files])

    async def read(self, user: User, name: str) -> SkillFile:
        """One skill's file, whether it can be used or not; NotFound."""
        found = next((file for file in await self._files.files(user) if file.name == name), None)
        if found is None:
            raise NotFound(f"There is no skill {name!r}.")
        if found.error == TOO_MANY:
            kept = await self._files.home(user).read(path_of(name))
            return replace(found, text=kept.text, version=kept.version)
        return found

    async def create(self, user: User, title: str, description: str, body: str = "") -> str:
        """A new skill; its name, made of the title. UserError names the field that cannot be."""
        name = _name(title, "title")
        return await self._added(user, name, composed(name, title, description, body))

    async def _added(self, user: User, name: str, text: str) -> str:
        """A new file of this name; UserError when there is one, or there are too many."""
        if len(await self._files.files(user)) >= SKILLS_MAX:
            raise UserError(f"The limit is {SKILLS_MAX} skills. Delete one or combine two.", field="title")
        try:
            await self._files.home(user).write(path_of(name), text, ABSENT)
        except Conflict as error:
            raise UserError(f"There is a skill named {name!r} already.", field="title") from error
        await self._db.repository(PreferencesRepository, user.id).unset(mark_of(path_of(name)))
        return name

    async def bring_in(self, user: User, file: BinaryIO) -> BroughtIn:
        """Add the skills of SKILL.md folders, marked as words from outside. UserError where there is none in it."""
        folders = await read_folders(self._files.foreign, file)
        added: list[str] = []
        refused: list[str] = []
        marks = self._db.repository(PreferencesRepository, user.id)
        for found in folders.skills:
            try:
                name, text = _brought(found)
                if len(await self._files.files(user)) >= SKILLS_MAX:
                    raise UserError(f"the limit is {SKILLS_MAX} skills")
                if await self._files.home(user).version(path_of(name)) != ABSENT:
                    raise UserError("a skill with this name already exists")
                await marks.set(mark_of(path_of(name)), True)
                await self._files.home(user).write(path_of(name), text, ABSENT)
            except (UserError, Conflict) as error:
                refused.append(f"{found.name[:TITLE_CHARS_MAX]}: {error.message}")
            else:
                added.append(name)
        return BroughtIn(added=added, refused=refused, others=folders.others)

    async def folders(self, user: User) -> bytes:
        """The skills that can be used as an archive of SKILL.md folders."""
        files = [(file.skill, file.body) for file in await self._files.files(user) if file.skill is not None]
        return await asyncio.to_thread(as_folders, files)

    async def create_example(self, user: User) -> str:
        """The example, to make one's own; its name."""
        return await self._added(user, _name(EXAMPLE_TITLE, "title"), EXAMPLE)

    async def write(self, user: User, name: str, text: str, version: str) -> str:
        """Put the text there; its new version. UserError, and nothing is written, when it would be of no use."""
        clean = text.replace("\r\n", "\n")
        await self.read(user, name)
        try:
            await skill_in(name, clean, self._files.heads(user.id))
        except UserError as error:
            raise UserError(error.message, field="text") from error
        made = await self._files.home(user).write(path_of(name), clean, version)
        await self._db.repository(PreferencesRepository, user.id).unset(mark_of(path_of(name)))
        return made

    async def rename(self, user: User, name: str, to: str) -> str:
        """Give it another name; the one it got. UserError when that is taken or no name."""
        file, made = await self.read(user, name), _name(to, "to")
        if made == name:
            return name
        home, marks = self._files.home(user), self._db.repository(PreferencesRepository, user.id)
        if await home.version(path_of(made)) != ABSENT:
            raise UserError(f"There is a skill named {made!r} already.", field="to")
        if file.is_tainted:
            await marks.set(mark_of(path_of(made)), True)
        await home.rename(path_of(name), path_of(made))
        await marks.unset(mark_of(path_of(name)))
        return made

    async def remove(self, user: User, name: str) -> None:
        """Delete it; `restore` brings the last few back."""
        file = await self.read(user, name)
        async with self._db.transaction(user.id) as repository:
            kept = await repository(PreferencesRepository).get(REMOVED, [])
            gone = {"name": name, "text": file.text, "is_tainted": file.is_tainted}
            await repository(PreferencesRepository).set(REMOVED, [*kept, gone][-REMOVED_KEPT:])
        await self._files.home(user).remove(path_of(name), file.version or None)
        await self._db.repository(PreferencesRepository, user.id).unset(mark_of(path_of(name)))

    async def restore(self, user: User, name: str) -> None:
        """A skill that was deleted lately, as it was; NotFound when it is not among the last few."""
        marks = self._db.repository(PreferencesRepository, user.id)
        kept: list[dict[str, Any]] = await marks.get(REMOVED, [])
        found = next((one for one in reversed(kept) if one["name"] == name), None)
        if found is None:
            raise NotFound("This skill cannot be restored. Only the last few deleted skills can.")
        if await self._files.home(user).version(path_of(name)) != ABSENT:
            raise Conflict(f"There is a skill named {name!r} again; rename it first.")
        if found["is_tainted"]:
            await marks.set(mark_of(path_of(name)), True)
        await self._files.home(user).write(path_of(name), found["text"], ABSENT)
        await marks.set(REMOVED, [one for one in kept if one is not found])

    async def tried(self, user: User, message: str) -> SkillMatch:
        """Return which skills this message would show as they are."""
        shown = await asyncio.to_thread(fits, message, await self._files.skills(user))
        return SkillMatch(message=message, shown=shown)

    async def trial(self, user: User, name: str, text: str, messages: str) -> SkillTrial:
        """The skill as typed, among the others as they are, held against up to MESSAGES_MAX messages, one a line."""
        try:
            skill, body = await skill_in(name, text.replace("\r\n", "\n"), self._files.heads(user.id))
        except (UserError, ToolFailed) as error:
            return SkillTrial(error=error.message)
        others = tuple(one for one in await self._files.skills(user) if one.name != name)
        snapshot = await self._tools.snapshot()
        asked = [line.strip() for line in messages.splitlines() if line.strip()][:MESSAGES_MAX]
        return await asyncio.to_thread(_trial, skill, body, others, asked, snapshot)


def _trial(skill: Skill, body: str, others: tuple[Skill, ...], asked: Sequence[str], snapshot: Snapshot) -> SkillTrial:
    every = tuple(sorted((skill, *others), key=lambda one: one.name))
    known = {entry.name for entry in snapshot.entries}
    tried = []
    for message in asked:
        mine = next((fit for fit in judged(message, every) if fit.name == skill.name), None)
        tried.append(SkillMatch(message=message, shown=fits(message, every), mine=mine))
    return SkillTrial(
        line_tokens=tokens.count(line(skill)),
        read_tokens=tokens.count(reading(skill, body)),
        unknown_tools=tuple(tool for tool in skill.tools if tool not in known),
        tried=tuple(tried),
    )


def _row(file: SkillFile) -> SkillRow:
    return SkillRow(
        name=file.name,
        title=file.skill.title if file.skill else file.name,
        description=file.skill.description if file.skill else "",
        line_tokens=tokens.count(line(file.skill)) if file.skill else 0,
        read_tokens=tokens.count(reading(file.skill, file.body)) if file.skill else 0,
        changed_at=file.changed_at,
        is_tainted=file.is_tainted,
        error=file.error,
    )


def _name(words: str, field: str) -> str:
    """A name that a file can have: small letters and numbers of every script, joined by hyphens."""
    joined = "".join(sign if sign.isalnum() else " " for sign in words.casefold())
    name = "-".join(joined.split())[:NAME_CHARS_MAX].strip("-")
    if not name:
        raise UserError("A skill needs a name with letters or numbers in it.", field=field)
    return name


def _brought(found: FoundSkill) -> tuple[str, str]:
    """Name and file of a skill out of a folder; UserError says why it cannot be one."""
    if found.error:
        raise UserError(found.error)
    if not found.body.strip():
        raise UserError("its text is empty")
    name = _name(found.name, "name")
    title = found.title or found.name.replace("-", " ").capitalize()[:TITLE_CHARS_MAX]
    return name, composed(name, title, found.description, found.body, lists_of(found.phrases, found.tools))


def composed(name: str, title: str, description: str, body: str = "", lists: str = "") -> str:
    """The file of a new skill, with every text as it is; UserError names the field that cannot be.

    lists: the lines of its lists.
    """
    fields = (("title", title, TITLE_CHARS_MAX), ("description", description, DESCRIPTION_CHARS_MAX))
    for field, words, longest in fields:
        if not words.strip() or len(words) > longest:
            raise UserError(f"The {field} has 1 to {longest:,} characters.", field=field)
    keys = "".join(f"{field}: {quoted(words)}\n" for field, words, _ in fields)
    text = joined(keys + lists, body if body.strip() else BEGINNING)
    skill_of(name, text)
    return text
