"""A user's skill files as tools and services read them: each with its skill, or with the slip that keeps it from use.

Pure over two protocols; the caller hands in the real home and the real marks. Writes nothing.
"""

from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import NotFound, ToolFailed, UserError
from cortex.base.skill import FOLDER, SKILLS_MAX, SUFFIX, TEXT_CHARS_MAX, Skill, needs_yaml, path_of, skill_of
from cortex.ports.foreign import FrontMatters
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
        """Tell whether it is one."""
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
        """List what stands in the folder, by name."""
        ...

    def read(self, path: str) -> Awaitable[VersionedText]:
        """The text; NotFound, or UserError for one that is no text."""
        ...


class MarkNames(Protocol):
    """The names of small values; a user's preferences have some."""

    def names(self, beginning: str) -> Awaitable[Sequence[str]]:
        """Those that begin so."""
        ...


class SkillFile(Struct, frozen=True, kw_only=True):
    """A file of the skills folder. `skill` is None, and `error` says why, when it cannot be used.

    `is_read`: whether that is so until the file changes; else it could only not be read now.
    """

    name: str
    changed_at: datetime
    text: str = ""
    version: str = ""
    skill: Skill | None = None
    body: str = ""
    is_tainted: bool = False
    error: str = ""
    is_read: bool = True


async def names_of(files: TextFiles) -> Sequence[FolderEntry]:
    """Return what in the skills folder is a skill's file, by name."""
    entries = await files.list(FOLDER)
    return [entry for entry in entries if entry.name.endswith(SUFFIX) and not entry.is_folder]


async def read_skills(files: TextFiles, marks: MarkNames, heads: FrontMatters) -> tuple[SkillFile, ...]:
    """Every skill file by name; a slip in one costs the others nothing."""
    entries = await names_of(files)
    if not entries:
        return ()
    marked = frozenset(await marks.names(mark_of(f"{FOLDER}/")))
    read = [await _read(files, entry, marked) for entry in entries[:SKILLS_MAX]]
    there = [one for one in read if one is not None]
    if unread := [head for one in there if not one.error and (head := needs_yaml(one.name, one.text))]:
        await heads.ready(unread)
    found = [one if one.error else await _judged(one, heads) for one in there]
    rest = [
        SkillFile(name=entry.name.removesuffix(SUFFIX), changed_at=entry.changed_at, error=TOO_MANY)
        for entry in entries[SKILLS_MAX:]
    ]
    return (*found, *rest)


async def _read(files: TextFiles, entry: FolderEntry, marked: frozenset[str]) -> SkillFile | None:
    """One file, not looked into; None when it went away in between."""
    name = entry.name.removesuffix(SUFFIX)
    path = path_of(name)
    is_tainted = mark_of(path) in marked
    if entry.size_bytes > 4 * TEXT_CHARS_MAX:
        why = f"{path}: a skill has at most {TEXT_CHARS_MAX:,} characters; this has {entry.size_bytes:,} bytes."
        return SkillFile(name=name, changed_at=entry.changed_at, is_tainted=is_tainted, error=why)
    try:
        kept = await files.read(path)
    except NotFound:
        return None
    except UserError as error:
        return SkillFile(name=name, changed_at=entry.changed_at, is_tainted=is_tainted, error=error.message)
    except OSError as error:
        why = f"{path}: it cannot be read ({error.strerror})."
        return SkillFile(name=name, changed_at=entry.changed_at, is_tainted=is_tainted, error=why)
    return SkillFile(
        name=name, changed_at=entry.changed_at, text=kept.text, version=kept.version, is_tainted=is_tainted
    )


async def _judged(file: SkillFile, heads: FrontMatters) -> SkillFile:
    """The file with its skill, or with the slip in it."""
    try:
        skill, body = await skill_in(file.name, file.text, heads, is_tainted=file.is_tainted)
    except (UserError, ToolFailed) as error:
        return replace(file, error=error.message, is_read=isinstance(error, UserError))
    return replace(file, skill=skill, body=body)


async def skill_in(name: str, text: str, heads: FrontMatters, *, is_tainted: bool = False) -> tuple[Skill, str]:
    """The skill that a file's text describes, and its body. UserError with the slip; ToolFailed: not to be read now."""
    head = needs_yaml(name, text)
    if not head:
        return skill_of(name, text, is_tainted=is_tainted)
    try:
        keys = await heads.keys(head)
    except UserError as error:
        try:  # what the parser of earlier versions took goes on being read as it did
            return skill_of(name, text, is_tainted=is_tainted)
        except UserError as slip:
            raise (UserError(f"{path_of(name)}: {error.message}") if "Line" in error.message else slip) from error
    return skill_of(name, text, keys=keys, is_tainted=is_tainted)
