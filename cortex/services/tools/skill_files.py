"""The skills of each user as their folder has them now: what plans are made from, and what the page lists.

Files that did not change are not read again. Writes nothing.
"""

from datetime import datetime

from cortex.base.errors import UserError
from cortex.base.skill import FOLDER, Skill
from cortex.base.user import User
from cortex.storage.db import Database
from cortex.storage.home import Home, Homes
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.page import mark_of
from cortex.toolkit.skills import SkillFile, names_of, read_skills

KEPT_USERS = 64

_Seen = tuple[tuple[tuple[str, datetime, int], ...], tuple[str, ...]]


class SkillFiles:
    """Reads the skills of the homes, with the marks of outside words. Without these (the command line), no skill."""

    def __init__(self, homes: Homes | None = None, db: Database | None = None) -> None:
        """Nothing is read before it is asked for."""
        self._homes = homes
        self._db = db
        self._kept: dict[str, tuple[_Seen, tuple[SkillFile, ...]]] = {}

    async def files(self, user: User) -> tuple[SkillFile, ...]:
        """Every skill file of the user by name, the broken ones with what is wrong."""
        if self._homes is None or self._db is None:
            return ()
        home, marks = self._homes.home_of(user.id), self._db.repository(PreferencesRepository, user.id)
        entries = await names_of(home)
        if not entries:
            self._kept.pop(user.id, None)
            return ()
        marked = tuple(await marks.names(mark_of(f"{FOLDER}/")))
        seen = (tuple((entry.name, entry.changed_at, entry.size_bytes) for entry in entries), marked)
        kept = self._kept.pop(user.id, None)
        if kept is None or kept[0] != seen:
            kept = (seen, await read_skills(home, marks))
        self._kept[user.id] = kept
        while len(self._kept) > KEPT_USERS:
            del self._kept[next(iter(self._kept))]
        return kept[1]

    def home(self, user: User) -> Home:
        """The folder to write them in; UserError where there is none."""
        if self._homes is None:
            raise UserError("Skills can be changed only while Cortex runs.")
        return self._homes.home_of(user.id)

    async def skills(self, user: User) -> tuple[Skill, ...]:
        """Those that can be used."""
        return tuple(file.skill for file in await self.files(user) if file.skill is not None)
