"""Skills as other programs keep them: folders with a SKILL.md, out of an archive and into one.

The form is that of Agent Skills (https://agentskills.io/specification, read 2026-11-24); what comes in is read by
`integrations/foreign/readers/skills.py`. It is from elsewhere and marked so, until its person saves it by hand.
"""

import io
import zipfile
from collections.abc import Sequence
from typing import Annotated, BinaryIO

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from cortex.base.errors import UserError
from cortex.base.front_matter import joined, quoted
from cortex.base.skill import Skill
from cortex.ports.foreign import ForeignReader, all_of

FILE = "SKILL.md"
Words = Annotated[str, Field(max_length=20_000)]


class FoundSkill(BaseModel):
    """A SKILL.md as it came, looked at before it is believed. `error`: why it cannot be a skill, "" where it can."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    name: Words
    title: Words = ""
    description: Words = ""
    body: str = Field(default="", max_length=200_000)
    phrases: list[Words] = Field(default=[], max_length=2_000)
    tools: list[Words] = Field(default=[], max_length=2_000)
    error: str = Field(default="", max_length=500)


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    skill: FoundSkill | None = None
    others: int = Field(default=0, ge=0, le=1_000_000)


class FoundFolders(Struct, frozen=True, kw_only=True):
    """The skills of an archive. `others`: how many files beside them were not looked into."""

    skills: tuple[FoundSkill, ...]
    others: int


async def read_folders(foreign: ForeignReader, file: BinaryIO) -> FoundFolders:
    """The skills of an archive, or of one SKILL.md. UserError where there is none."""
    try:
        lines = await all_of(foreign, "skills", file, _Line)
    except UserError as error:
        error.field = "file"
        raise
    skills = tuple(line.skill for line in lines if line.skill is not None)
    return FoundFolders(skills=skills, others=sum(line.others for line in lines))


def as_folders(skills: Sequence[tuple[Skill, str]]) -> bytes:
    """These skills with their bodies as an archive of folders."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for skill, body in skills:
            head = f"name: {quoted(skill.name)}\ndescription: {quoted(skill.description)}\nmetadata:\n"
            head += f"  title: {quoted(skill.title)}\n" + lists_of(skill.phrases, skill.tools, "  ")
            archive.writestr(f"{skill.name}/{FILE}", joined(head, body))
    return held.getvalue()


def lists_of(phrases: Sequence[str], tools: Sequence[str], indent: str = "") -> str:
    """The lines of both lists, without those that are empty."""
    both = (("phrases", phrases), ("tools", tools))
    return "".join(f"{indent}{key}: [{', '.join(map(quoted, words))}]\n" for key, words in both if words)
