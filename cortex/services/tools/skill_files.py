"""The skills of each user as their folder has them now: what plans are made from, and what the page lists.

Files that did not change are not read again. Writes nothing.
"""

from datetime import datetime

from cortex.base.errors import UserError
from cortex.base.skill import FOLDER, Skill
from cortex.base.user import User
from cortex.ports.foreign import ForeignReader, FrontMatters
from cortex.services.tools.front_matters import UserFrontMatters
from cortex.storage.db import Database
from cortex.storage.home import Home, Homes
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.page import mark_of
from cortex.toolkit.skills import SkillFile, names_of, read_skills

KEPT_USERS = 64

_Seen = tuple[tuple[tuple[str, datetime, int], ...], tuple[str, ...]]


class SkillFiles:
    """Reads the skills of the homes, with the marks of outside words. Without these (the command line), no skill."""

    def __init__(
        self, homes: Homes | None = None, db: Database | None = None, foreign: ForeignReader | None = None
    ) -> None:
        """Nothing is read before it is asked for."""
        self._homes = homes
        self._db = db
        self._foreign = foreign
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
            kept = (seen, await read_skills(home, marks, self.heads(user.id)))
        if not all(file.is_read for file in kept[1]):
            return kept[1]  # and look again the next time
        self._kept[user.id] = kept
        while len(self._kept) > KEPT_USERS:
            del self._kept[next(iter(self._kept))]
        return kept[1]

    @property
    def foreign(self) -> ForeignReader:
        """Return what reads skills of other programs; UserError where there is none."""
        if self._foreign is None:
            raise UserError("Skills can be read from elsewhere only while Cortex runs.")
        return self._foreign

    def heads(self, user_id: str) -> FrontMatters:
        """Return what reads the front matters of this user that are written in the whole of YAML."""
        if self._db is None:
            raise UserError("Skills can be read only while Cortex runs.")
        return UserFrontMatters(self.foreign, self._db.repository(PreferencesRepository, user_id))

    def home(self, user: User) -> Home:
        """The folder to write them in; UserError where there is none."""
        if self._homes is None:
            raise UserError("Skills can be changed only while Cortex runs.")
        return self._homes.home_of(user.id)

    async def skills(self, user: User) -> tuple[Skill, ...]:
        """Those that can be used."""
        return tuple(file.skill for file in await self.files(user) if file.skill is not None)
