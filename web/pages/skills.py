"""A person's skills: the list, one to edit with a box to try messages in, rename, delete and take that back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Request, UploadFile
from fastapi import File as FormFile
from fastapi.responses import Response

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
from web.deps import CurrentUser, Services, Text
from web.figures import counted
from web.frame import frame_of
from web.render import MORE, Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillsContext(Context):
    """The list."""

    skills: Sequence[SkillRow] = described("every skill file by name, the broken ones with what is wrong")
    example: str = described("the file of an example, for a page without any", default=EXAMPLE)
    tried: SkillMatch | None = described("a message and the skills it would show", default=None)
    message: str = described("the message that was tried", default="")
    title: str = described("a title that was refused", default="")
    description: str = described("the description typed with it", default="")
    error: str = described("why it was refused", default="")
    error_field: str = described("the field the error is about, or empty", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillContext(Context):
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
    error: str = described("why a change was refused", default="")
    error_field: str = described("the field the error is about", default="")


@router.get(HREF)
async def show(request: Request, services: Services, user: CurrentUser, message: str | None = None) -> Response:
    """The skills; with a message, which of them it would show."""
    asked = " ".join((message or "").split())[:MESSAGE_CHARS_MAX]
    tried = await services.skills.tried(user, asked) if asked else None
    context = SkillsContext(
        frame=await frame_of(request, services, user, here=HREF),
        skills=await services.skills.list(user),
        tried=tried,
        message=asked,
    )
    return respond(request, "skills.html", context, block="content" if message is None else "shown")


@router.post(HREF)
async def create(
    request: Request,
    services: Services,
    user: CurrentUser,
    title: Text = "",
    description: Text = "",
    example: Text = "",
) -> Response:
    """A new skill, or the example one, opened."""
    try:
        made = (
            await services.skills.create_example(user)
            if example
            else await services.skills.create(user, title, description)
        )
    except UserError as refused:
        context = SkillsContext(
            frame=await frame_of(request, services, user, here=HREF),
            skills=await services.skills.list(user),
            title=EXAMPLE_TITLE if example else title,
            description=description,
            error=refused.message,
            error_field=refused.field,
        )
        return respond(request, "skills.html", context, status=422)
    return redirect(request, _place(made))


@router.post(FOLDERS)
@takes(TEXT_BYTES, has_files=True)
async def bring_in(
    request: Request, services: Services, user: CurrentUser, file: Annotated[UploadFile | None, FormFile()] = None
) -> Response:
    """Add the skills of a SKILL.md, or of an archive of folders with one each."""
    try:
        if file is None or not file.filename:
            raise UserError("Choose a file first.")
        found = await services.skills.bring_in(user, file.file)
    except UserError as error:
        found = BroughtIn(added=(), refused=(error.message,), others=0)
    words = f"{len(found.added)} added: {', '.join(found.added)}." if found.added else "Nothing was added."
    if found.others:
        words += f" {counted(found.others, 'file')} beside them not taken: a skill is a text."
    if not found.refused:
        return redirect(request, HREF, words)
    context = SkillsContext(
        frame=await frame_of(request, services, user, here=HREF),
        skills=await services.skills.list(user),
        error=f"{words} Not added: {'; '.join(found.refused)}",
    )
    return respond(request, "skills.html", context, status=422)


@router.get(FOLDERS + ".zip")
async def folders(services: Services, user: CurrentUser) -> Response:
    """The skills as folders with a SKILL.md each."""
    headers = {"Content-Disposition": 'attachment; filename="skills.zip"', "Cache-Control": "no-store"}
    return Response(await services.skills.folders(user), media_type="application/zip", headers=headers)


@router.get(HREF + "/{skill}")
async def show_one(request: Request, services: Services, user: CurrentUser, skill: str) -> Response:
    """One skill to edit."""
    kept = await services.skills.read(user, skill)
    return await _page(request, services, user, kept, kept.text)


@router.post(HREF + "/{skill}")
@takes(TEXT_BYTES)
async def save(
    request: Request,
    services: Services,
    user: CurrentUser,
    skill: str,
    text: Text = "",
    version: Text = "",
    messages: Text = "",
) -> Response:
    """Save it; a slip is named, and when it was changed in between both are shown."""
    try:
        await services.skills.write(user, skill, text, version)
    except Conflict:
        kept = await services.skills.read(user, skill)
        return await _page(request, services, user, kept, text, messages=messages, theirs=kept.text, status=409)
    except UserError as refused:
        kept = await services.skills.read(user, skill)
        return await _page(
            request, services, user, kept, text, version=version, messages=messages, refused=refused, status=422
        )
    return redirect(request, _place(skill), "Saved.")


@router.post(HREF + "/{skill}/try")
@takes(TEXT_BYTES)
async def try_messages(
    request: Request,
    services: Services,
    user: CurrentUser,
    skill: str,
    text: Text = "",
    version: Text = "",
    messages: Text = "",
) -> Response:
    """Return which messages would show it as it is typed; nothing is saved."""
    kept = await services.skills.read(user, skill)
    return await _page(
        request, services, user, kept, text, version=version, messages=messages, block="tried", status=200
    )


@router.post(HREF + "/{skill}/rename")
async def rename(request: Request, services: Services, user: CurrentUser, skill: str, to: Text = "") -> Response:
    """Give it another name."""
    try:
        made = await services.skills.rename(user, skill, to)
    except UserError as refused:
        kept = await services.skills.read(user, skill)
        return await _page(request, services, user, kept, kept.text, to=to, refused=refused, status=422)
    return redirect(request, _place(made), "Renamed.")


@router.post(HREF + "/{skill}/delete")
async def delete(request: Request, services: Services, user: CurrentUser, skill: str) -> Response:
    """Delete it; the next page offers it back."""
    await services.skills.remove(user, skill)
    return redirect(request, HREF, f"Deleted: {skill}", undo_href=f"{_place(skill)}/restore")


@router.post(HREF + "/{skill}/restore")
async def restore(request: Request, services: Services, user: CurrentUser, skill: str) -> Response:
    """Bring a deleted skill back."""
    await services.skills.restore(user, skill)
    return redirect(request, _place(skill), f"Restored: {skill}")


def _place(name: str) -> str:
    return f"{HREF}/{quote(name, safe='')}"


async def _page(
    request: Request,
    services: Services,
    user: CurrentUser,
    kept: SkillFile,
    text: str,
    *,
    version: str = "",
    messages: str = "",
    to: str = "",
    theirs: str | None = None,
    refused: UserError | None = None,
    block: str = "content",
    status: int = 200,
) -> Response:
    """One skill's page with what was typed; `version` is that of the text it was typed over, else the present one."""
    asked = messages[:MESSAGES_CHARS_MAX]
    context = SkillContext(
        frame=await frame_of(request, services, user, here=HREF),
        skill=kept,
        text=text,
        version=version or kept.version,
        messages=asked,
        trial=await services.skills.trial(user, kept.name, text, asked),
        to=to or kept.name,
        theirs=theirs,
        error=refused.message if refused else "",
        error_field=refused.field if refused else "",
    )
    return respond(request, "skill.html", context, block=block, status=status)
