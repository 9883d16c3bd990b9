"""Skills as other programs keep them: folders with a SKILL.md, out of an archive and into one.

The form is that of Agent Skills (https://agentskills.io/specification, read 2026-11-24): YAML with `name` and
`description`, then Markdown. Scripts and other files beside it are left out: a skill here is a text. What comes in is
from elsewhere and marked so, until its person saves it by hand.
"""

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from cortex.base.errors import CortexError, UserError
from cortex.base.front_matter import FENCE
from cortex.base.skill import DESCRIPTION_CHARS_MAX, TEXT_CHARS_MAX, TITLE_CHARS_MAX, Skill, skill_of

FILE = "SKILL.md"
MOST = 200
MEMBER_BYTES = 200_000
NO_SKILL = "It contains no SKILL.md. Choose a SKILL.md, or a .zip of folders with one each."


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSkill:
    """A SKILL.md as a skill of Cortex: what goes into its file. `error`: why it cannot be one, "" where it can."""

    name: str
    title: str = ""
    description: str = ""
    body: str = ""
    phrases: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    error: str = ""


def read_folders(data: bytes) -> Sequence[FoundSkill]:
    """The skills of an archive, or of one SKILL.md. UserError where there is none."""
    found = [_found(place, text) for place, text in _files(data)]
    if not found:
        raise UserError(NO_SKILL, field="file")
    return found[:MOST]


def as_folders(skills: Sequence[tuple[Skill, str]]) -> bytes:
    """These skills with their texts as an archive of folders."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for skill, text in skills:
            _, body = skill_of(skill.name, text)
            own = {"title": skill.title, "phrases": [*skill.phrases], "tools": [*skill.tools]}
            head = {"name": skill.name, "description": skill.description, "metadata": own}
            keys = yaml.safe_dump(head, allow_unicode=True, sort_keys=False)
            archive.writestr(f"{skill.name}/{FILE}", f"{FENCE}\n{keys}{FENCE}\n\n{body}\n")
    return held.getvalue()


def _files(data: bytes) -> Iterator[tuple[str, str]]:
    if not data.startswith(b"PK"):
        yield "", _text(data)
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if info.filename.rpartition("/")[2] == FILE:
                    with archive.open(info) as member:
                        yield info.filename.rpartition("/")[0].rpartition("/")[2], _text(member.read(MEMBER_BYTES))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise UserError("The archive is damaged or password protected.", field="file") from error


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace").replace("\0", "")


def _found(folder: str, text: str) -> FoundSkill:
    try:
        head, body = _parts(text)
        name = str(head.get("name") or folder)
        own = head["metadata"] if isinstance(head.get("metadata"), Mapping) else {}
        description = " ".join(str(head.get("description") or "").split()).replace(" #", " nr ")
        if not name or not description:
            return FoundSkill(name=name or folder or FILE, error="it says no name or no description")
        if len(body) > TEXT_CHARS_MAX - 1_000:
            return FoundSkill(name=name, error=f"its text has {len(body):,} characters; {TEXT_CHARS_MAX - 1_000:,} fit")
        return FoundSkill(
            name=name,
            title=str(own.get("title") or name.replace("-", " ").capitalize())[:TITLE_CHARS_MAX],
            description=_short(description),
            body=body,
            phrases=_words(own.get("phrases")),
            tools=_words(own.get("tools")),
        )
    except (yaml.YAMLError, CortexError, RecursionError) as error:
        return FoundSkill(name=folder or FILE, error=f"its front matter cannot be read ({type(error).__name__})")


def _parts(text: str) -> tuple[Mapping[str, Any], str]:
    lines = text.splitlines()
    if not lines or lines[0].strip() != FENCE or FENCE not in [line.strip() for line in lines[1:]]:
        return {}, text.strip()
    end = [line.strip() for line in lines[1:]].index(FENCE) + 1
    head = yaml.safe_load("\n".join(lines[1:end]))
    return (head if isinstance(head, Mapping) else {}), "\n".join(lines[end + 1 :]).strip()


def _short(text: str) -> str:
    if len(text) <= DESCRIPTION_CHARS_MAX:
        return text
    return text[: DESCRIPTION_CHARS_MAX - 1].rsplit(" ", 1)[0] + "…"


def _words(value: Any) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()
