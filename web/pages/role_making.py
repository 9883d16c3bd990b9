"""A role of one's own: made, copied, deleted with a look at what goes on in it, brought back."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.workshop.role_library import NAME_MAX, PROMPT_MAX, RoleUse
from web.bodies import TEXT_BYTES, takes
from web.deps import CurrentUser, Services, Text
from web.frame import frame_of
from web.render import Context, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
HREF = "/account/roles"
SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleMakingContext(Context):
    """The form of a new role."""

    roles: Sequence[tuple[str, str]] = described("what it can begin as: role, words; the first is no role")
    name: str = described("the name as typed", default="")
    source: str = described("the role whose tools and settings it takes", default="")
    prompt: str = described("its words as typed", default="")
    name_max: int = described("how long a name may be", default=NAME_MAX)
    prompt_max: int = described("how long its words may be", default=PROMPT_MAX)
    error: str = described("why it was refused", default="")
    error_field: str = described("the field it is about", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleDeletionContext(Context):
    """The question before a role goes."""

    role: str = described("its name")
    ships: bool = described("whether a role of this name ships, which then holds")
    use: RoleUse = described("conversations and jobs that go on in it")
    roles: Sequence[tuple[str, str]] = described("what these can go on in: role, words; the first leaves them")
    shown: int = described("how many of them are named", default=SHOWN)
    to: str = described("the role chosen", default="")
    error: str = described("why it was refused", default="")


@router.get(HREF + "/new")
async def ask_new(request: Request, services: Services, user: CurrentUser, source: str = "") -> Response:
    """The form; `source`: the role to copy."""
    return await _form(request, services, user, "", source, "")


@router.post(HREF)
@takes(TEXT_BYTES)
async def make(
    request: Request, services: Services, user: CurrentUser, name: Text = "", source: Text = "", prompt: Text = ""
) -> Response:
    """Make it, and open it."""
    try:
        made = await services.role_library.make(user, name, prompt, source)
    except UserError as refused:
        return await _form(request, services, user, name, source, prompt, refused)
    return redirect(request, _place(user, made), f"Created: {made}. You can choose it for new chats.")


@router.get(HREF + "/{role}/delete")
async def ask_delete(request: Request, services: Services, user: CurrentUser, role: str) -> Response:
    """Return what goes on in it, and in what that shall go on."""
    return await _question(request, services, user, role)


@router.post(HREF + "/{role}/delete")
async def delete(request: Request, services: Services, user: CurrentUser, role: str, to: Text = "") -> Response:
    """Delete it; the next page offers it back."""
    try:
        await services.role_library.remove(user, role, to)
    except UserError as refused:
        return await _question(request, services, user, role, to, refused)
    return redirect(request, "/account#roles", f"Deleted: {role}", undo_href=f"{HREF}/{quote(role, safe='')}/restore")


@router.post(HREF + "/{role}/restore")
async def restore(request: Request, services: Services, user: CurrentUser, role: str) -> Response:
    """Bring it back with what went on in it."""
    await services.role_library.restore(user, role)
    return redirect(request, f"{HREF}/{quote(role, safe='')}", f"Restored: {role}")


def _place(user: User, role: str) -> str:
    """Where the new role is set further: its tools are an admin's to tick."""
    return f"/admin/roles/{quote(role, safe='')}" if user.is_admin else f"{HREF}/{quote(role, safe='')}"


async def _form(
    request: Request,
    services: Services,
    user: User,
    name: str,
    source: str,
    prompt: str,
    refused: UserError | None = None,
) -> Response:
    names = await services.roles.names(user)
    context = RoleMakingContext(
        frame=await frame_of(request, services, user, here="/account"),
        roles=[("", "no role: text only, no tools"), *((one, one) for one in names)],
        name=name,
        source=source if source in names else "",
        prompt=prompt,
        error=refused.message if refused else "",
        error_field=refused.field if refused else "",
    )
    return respond(request, "role_new.html", context, status=refused.status if refused else 200)


async def _question(
    request: Request, services: Services, user: User, role: str, to: str = "", refused: UserError | None = None
) -> Response:
    use = await services.role_library.use(user, role)
    others = [one for one in await services.roles.names(user) if one != role]
    context = RoleDeletionContext(
        frame=await frame_of(request, services, user, here="/account"),
        role=role,
        ships=services.roles.ships(role),
        use=use,
        roles=[("", "nothing yet: choose tools later"), *((one, one) for one in others)],
        to=to,
        error=refused.message if refused else "",
    )
    return respond(request, "role_delete.html", context, status=refused.status if refused else 200)
