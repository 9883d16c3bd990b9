"""A person's skills: the list, one to edit with a box to try messages in, rename, delete and take that back."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import quote

from fastapi import File as FormFile
from fastapi import UploadFile
from fastapi.responses import Response
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.errors import Conflict, UserError
from cortex.base.skill import TEXT_CHARS_MAX
from cortex.base.user import User
from cortex.services.tools.skills import (
    EXAMPLE,
    EXAMPLE_TITLE,
    LEAST,
    BroughtIn,
    SkillFile,
    SkillMatch,
    SkillRow,
    SkillTrial,
)
from web.bodies import TEXT_BYTES, takes
from web.deps import Text
from web.figures import counted
from web.render import MORE, Context, NavEntry, described, download
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()
HREF = "/skills"
FOLDERS = "/skill-folders"


async def _state(services: Cortex, user: User) -> str:
    """Return how many there are."""
    count = len(await services.skills.list(user))
    return counted(count, "skill") if count else ""


NAV = NavEntry(
    title="Skills",
    href=HREF,
    icon="bolt",
    order=30,
    under=MORE,
    about="Instructions that Cortex follows when a message needs them.",
    state=_state,
)
MESSAGE_CHARS_MAX = 2_000
MESSAGES_CHARS_MAX = 8_000


class SkillsContext(Context, frozen=True, kw_only=True):
    """The list."""

    skills: Sequence[SkillRow] = described("every skill file by name, the broken ones with what is wrong")
    example: str = described("the file of an example, for a page without any", default=EXAMPLE)
    tried: SkillMatch | None = described("a message and the skills it would show", default=None)
    message: str = described("the message that was tried", default="")
    title: str = described("a title that was refused", default="")
    description: str = described("the description typed with it", default="")


class SkillContext(Context, frozen=True, kw_only=True):
    """One skill."""

    skill: SkillFile = described("the file as it stands")
    text: str = described("the text as typed or as kept")
    version: str = described("the tag of the text as it stands")
    messages: str = described("messages to try, one a line", default="")
    trial: SkillTrial = described("what the text as typed costs, and which messages would show it")
    least: float = described("from which score a skill is shown", default=LEAST)
    most_chars: int = described("how long a skill may be", default=TEXT_CHARS_MAX)
    to: str = described("the new name as typed or as it is")
    theirs: str | None = described("what stands there now, when it was changed in between", default=None)


@router.get(HREF)
async def show(visit: UserVisit, message: str | None = None) -> Response:
    """The skills; with a message, which of them it would show."""
    asked = " ".join((message or "").split())[:MESSAGE_CHARS_MAX]
    tried = await visit.services.skills.tried(visit.user, asked) if asked else None
    context = SkillsContext(skills=await visit.services.skills.list(visit.user), tried=tried, message=asked)
    return await visit.show("skills.html", context, block="content" if message is None else "shown")


@router.post(HREF)
async def create(visit: UserVisit, title: Text = "", description: Text = "", example: Text = "") -> Response:
    """A new skill, or the example one, opened."""
    try:
        made = (
            await visit.services.skills.create_example(visit.user)
            if example
            else await visit.services.skills.create(visit.user, title, description)
        )
    except UserError as refused:
        context = SkillsContext(
            skills=await visit.services.skills.list(visit.user),
            title=EXAMPLE_TITLE if example else title,
            description=description,
        )
        return await visit.show("skills.html", context, refused=refused)
    return visit.redirect(_place(made))


@router.post(FOLDERS)
@takes(TEXT_BYTES, has_files=True)
async def bring_in(visit: UserVisit, file: Annotated[UploadFile | None, FormFile()] = None) -> Response:
    """Add the skills of a SKILL.md, or of an archive of folders with one each."""
    try:
        if file is None or not file.filename:
            raise UserError("Choose a file first.")
        found = await visit.services.skills.bring_in(visit.user, file.file)
    except UserError as error:
        found = BroughtIn(added=(), refused=(error.message,), others=0)
    words = f"{len(found.added)} added: {', '.join(found.added)}." if found.added else "Nothing was added."
    if found.others:
        words += f" {counted(found.others, 'file')} beside them not taken: a skill is a text."
    if not found.refused:
        return visit.redirect(HREF, words)
    context = SkillsContext(
        skills=await visit.services.skills.list(visit.user), error=f"{words} Not added: {'; '.join(found.refused)}"
    )
    return await visit.show("skills.html", context, here=HREF, status=422)


@router.get(FOLDERS + ".zip")
async def folders(visit: UserVisit) -> Response:
    """The skills as folders with a SKILL.md each."""
    return download(await visit.services.skills.folders(visit.user), "skills.zip", "application/zip")


@router.get(HREF + "/{skill}")
async def show_one(visit: UserVisit, skill: str) -> Response:
    """One skill to edit."""
    kept = await visit.services.skills.read(visit.user, skill)
    return await visit.show("skill.html", await _skill(visit, kept, kept.text))


@router.post(HREF + "/{skill}")
@takes(TEXT_BYTES)
async def save(visit: UserVisit, skill: str, text: Text = "", version: Text = "", messages: Text = "") -> Response:
    """Save it; a slip is named, and when it was changed in between both are shown."""
    try:
        await visit.services.skills.write(visit.user, skill, text, version)
    except Conflict:
        kept = await visit.services.skills.read(visit.user, skill)
        context = replace(await _skill(visit, kept, text, messages), theirs=kept.text)
        return await visit.show("skill.html", context, status=409)
    except UserError as refused:
        kept = await visit.services.skills.read(visit.user, skill)
        context = await _typed(visit, kept, text, version, messages)
        return await visit.show("skill.html", context, refused=refused)
    return visit.redirect(_place(skill), "Saved.")


@router.post(HREF + "/{skill}/try")
@takes(TEXT_BYTES)
async def try_messages(
    visit: UserVisit, skill: str, text: Text = "", version: Text = "", messages: Text = ""
) -> Response:
    """Return which messages would show it as it is typed; nothing is saved."""
    kept = await visit.services.skills.read(visit.user, skill)
    return await visit.show("skill.html", await _typed(visit, kept, text, version, messages), block="tried")


@router.post(HREF + "/{skill}/rename")
async def rename(visit: UserVisit, skill: str, to: Text = "") -> Response:
    """Give it another name."""
    try:
        made = await visit.services.skills.rename(visit.user, skill, to)
    except UserError as refused:
        kept = await visit.services.skills.read(visit.user, skill)
        context = await _skill(visit, kept, kept.text)
        return await visit.show("skill.html", replace(context, to=to or kept.name), refused=refused)
    return visit.redirect(_place(made), "Renamed.")


@router.post(HREF + "/{skill}/delete")
async def delete(visit: UserVisit, skill: str) -> Response:
    """Delete it; the next page offers it back."""
    await visit.services.skills.remove(visit.user, skill)
    return visit.redirect(HREF, f"Deleted: {skill}", undo_href=f"{_place(skill)}/restore")


@router.post(HREF + "/{skill}/restore")
async def restore(visit: UserVisit, skill: str) -> Response:
    """Bring a deleted skill back."""
    await visit.services.skills.restore(visit.user, skill)
    return visit.redirect(_place(skill), f"Restored: {skill}")


def _place(name: str) -> str:
    return f"{HREF}/{quote(name, safe='')}"


async def _skill(visit: Visit, kept: SkillFile, text: str, messages: str = "") -> SkillContext:
    asked = messages[:MESSAGES_CHARS_MAX]
    return SkillContext(
        skill=kept,
        text=text,
        version=kept.version,
        messages=asked,
        trial=await visit.services.skills.trial(visit.user, kept.name, text, asked),
        to=kept.name,
    )


async def _typed(visit: Visit, kept: SkillFile, text: str, version: str, messages: str) -> SkillContext:
    """The page with what was typed over the text of this version."""
    return replace(await _skill(visit, kept, text, messages), version=version or kept.version)
