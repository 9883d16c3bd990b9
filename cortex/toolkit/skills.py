"""A user's skill files as tools and services read them: each with its skill, or with the slip that keeps it from use.

Pure over two protocols; the caller hands in the real home and the real marks. Writes nothing.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from cortex.base.errors import NotFound, UserError
from cortex.base.skill import FOLDER, SKILLS_MAX, SUFFIX, Skill, path_of, skill_of
from cortex.toolkit.page import VersionedText, mark_of

TOO_MANY = f"Only the first {SKILLS_MAX} skills by name are in use; delete some, or join them."


class FolderEntry(Protocol):
    """A thing in a folder."""

    @property
    def name(self) -> str:
        """Its name with the ending."""
        ...

    @property
    def is_folder(self) -> bool:
        """Whether it is one."""
        ...

    @property
    def size_bytes(self) -> int:
        """Its size."""
        ...

    @property
    def changed_at(self) -> datetime:
        """When it was written last."""
        ...


class TextFiles(Protocol):
    """Text files in folders; a user's home is one."""

    def list(self, folder: str) -> Awaitable[Sequence[FolderEntry]]:
        """What stands in the folder, by name."""
        ...

    def read(self, path: str) -> Awaitable[VersionedText]:
        """The text; NotFound, or UserError for one that is no text."""
        ...


class MarkNames(Protocol):
    """The names of small values; a user's preferences have some."""

    def names(self, beginning: str) -> Awaitable[Sequence[str]]:
        """Those that begin so."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """A file of the skills folder. `skill` is None, and `error` says why, when it cannot be used."""

    name: str
    changed_at: datetime
    text: str = ""
    version: str = ""
    skill: Skill | None = None
    body: str = ""
    is_tainted: bool = False
    error: str = ""


async def names_of(files: TextFiles) -> Sequence[FolderEntry]:
    """What in the skills folder is a skill's file, by name."""
    entries = await files.list(FOLDER)
    return [entry for entry in entries if entry.name.endswith(SUFFIX) and not entry.is_folder]


async def read_skills(files: TextFiles, marks: MarkNames) -> tuple[SkillFile, ...]:
    """Every skill file by name; a slip in one costs the others nothing."""
    entries = await names_of(files)
    if not entries:
        return ()
    marked = frozenset(await marks.names(mark_of(f"{FOLDER}/")))
    found = [await _read(files, entry, marked) for entry in entries[:SKILLS_MAX]]
    rest = [
        SkillFile(name=entry.name.removesuffix(SUFFIX), changed_at=entry.changed_at, error=TOO_MANY)
        for entry in entries[SKILLS_MAX:]
    ]
    return (*(one for one in found if one is not None), *rest)


async def _read(files: TextFiles, entry: FolderEntry, marked: frozenset[str]) -> SkillFile | None:
    """One file; None when it went away in between."""
    name = entry.name.removesuffix(SUFFIX)
    path = path_of(name)
    is_tainted = mark_of(path) in marked
    try:
        kept = await files.read(path)
    except NotFound:
        return None
    except UserError as error:
        return SkillFile(name=name, changed_at=entry.changed_at, is_tainted=is_tainted, error=error.message)
    except OSError as error:
        why = f"{path}: it cannot be read ({error.strerror})."
        return SkillFile(name=name, changed_at=entry.changed_at, is_tainted=is_tainted, error=why)
    return parsed(name, kept.text, kept.version, entry.changed_at, is_tainted=is_tainted)


def parsed(name: str, text: str, version: str, changed_at: datetime, *, is_tainted: bool) -> SkillFile:
    """The file with its skill, or with the slip in it."""
    try:
        skill, body = skill_of(name, text, is_tainted=is_tainted)
    except UserError as error:
        return SkillFile(
            name=name, changed_at=changed_at, text=text, version=version, is_tainted=is_tainted, error=error.message
        )
    return SkillFile(
        name=name,
        changed_at=changed_at,
        text=text,
        version=version,
        skill=skill,
        body=body,
        is_tainted=is_tainted,
    )
