"""A role of one's own: made, copied, deleted with a look at what goes on in it, brought back."""

from collections.abc import Sequence
from urllib.parse import quote

from fastapi.responses import Response

from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.workshop.role_library import NAME_MAX, PROMPT_MAX, RoleUse
from web.bodies import TEXT_BYTES, takes
from web.deps import Text
from web.render import Context, described
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()
HREF = "/account/roles"
SHOWN = 8


class RoleMakingContext(Context, frozen=True, kw_only=True):
    """The form of a new role."""

    roles: Sequence[tuple[str, str]] = described("what it can begin as: role, words; the first is no role")
    name: str = described("the name as typed", default="")
    source: str = described("the role whose tools and settings it takes", default="")
    prompt: str = described("its words as typed", default="")
    name_max: int = described("how long a name may be", default=NAME_MAX)
    prompt_max: int = described("how long its words may be", default=PROMPT_MAX)


class RoleDeletionContext(Context, frozen=True, kw_only=True):
    """The question before a role goes."""

    role: str = described("its name")
    ships: bool = described("whether a role of this name ships, which then holds")
    use: RoleUse = described("conversations and jobs that go on in it")
    roles: Sequence[tuple[str, str]] = described("what these can go on in: role, words; the first leaves them")
    shown: int = described("how many of them are named", default=SHOWN)
    to: str = described("the role chosen", default="")


@router.get(HREF + "/new")
async def ask_new(visit: UserVisit, source: str = "") -> Response:
    """The form; `source`: the role to copy."""
    return await _form(visit, "", source, "")


@router.post(HREF)
@takes(TEXT_BYTES)
async def make(visit: UserVisit, name: Text = "", source: Text = "", prompt: Text = "") -> Response:
    """Make it, and open it."""
    try:
        made = await visit.services.role_library.make(visit.user, name, prompt, source)
    except UserError as refused:
        return await _form(visit, name, source, prompt, refused)
    return visit.redirect(_place(visit.user, made), f"Created: {made}. You can choose it for new chats.")


@router.get(HREF + "/{role}/delete")
async def ask_delete(visit: UserVisit, role: str) -> Response:
    """Return what goes on in it, and in what that shall go on."""
    return await _question(visit, role)


@router.post(HREF + "/{role}/delete")
async def delete(visit: UserVisit, role: str, to: Text = "") -> Response:
    """Delete it; the next page offers it back."""
    try:
        await visit.services.role_library.remove(visit.user, role, to)
    except UserError as refused:
        return await _question(visit, role, to, refused)
    return visit.redirect("/account/roles", f"Deleted: {role}", undo_href=f"{HREF}/{quote(role, safe='')}/restore")


@router.post(HREF + "/{role}/restore")
async def restore(visit: UserVisit, role: str) -> Response:
    """Bring it back with what went on in it."""
    await visit.services.role_library.restore(visit.user, role)
    return visit.redirect(f"{HREF}/{quote(role, safe='')}", f"Restored: {role}")


def _place(user: User, role: str) -> str:
    """Where the new role is set further: its tools are an admin's to tick."""
    return f"/admin/roles/{quote(role, safe='')}" if user.is_admin else f"{HREF}/{quote(role, safe='')}"


async def _form(visit: Visit, name: str, source: str, prompt: str, refused: UserError | None = None) -> Response:
    names = await visit.services.roles.names(visit.user)
    context = RoleMakingContext(
        roles=[("", "no role: text only, no tools"), *((one, one) for one in names)],
        name=name,
        source=source if source in names else "",
        prompt=prompt,
    )
    return await visit.show("role_new.html", context, refused=refused)


async def _question(visit: Visit, role: str, to: str = "", refused: UserError | None = None) -> Response:
    use = await visit.services.role_library.use(visit.user, role)
    others = [one for one in await visit.services.roles.names(visit.user) if one != role]
    context = RoleDeletionContext(
        role=role,
        ships=visit.services.roles.ships(role),
        use=use,
        roles=[("", "nothing yet: choose tools later"), *((one, one) for one in others)],
        to=to,
    )
    return await visit.show("role_delete.html", context, refused=refused)
