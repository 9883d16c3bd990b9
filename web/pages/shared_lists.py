"""With whom a task list is shared: `/lists`. Its owner chooses people and names it; who is offered it answers here."""

from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import Conflict, UserError
from cortex.services.content.shared_lists import ListSharing
from web.deps import CurrentUser, Services, Text, Texts
from web.frame import frame_of
from web.render import Context, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedListContext(Context):
    """One list."""

    sharing: ListSharing = described("the list, and with whom it is and can be shared")
    new_name: str = described("its name, or what was typed for it")
    error: str = described("why a change was refused", default="")
    error_field: str = described("the field the error is about, or empty", default="")


@router.get("/lists")
async def show(request: Request, services: Services, user: CurrentUser, name: str = "") -> Response:
    """A list of one's own to share, or somebody else's to leave."""
    return await _page(request, services, user, name)


@router.post("/lists/share")
async def share(
    request: Request, services: Services, user: CurrentUser, name: Text = "", people: Texts = None
) -> Response:
    """Share it with exactly these people; with nobody, sharing ends."""
    try:
        shared = await services.shared_lists.share(user, name, people or ())
    except UserError as refused:
        return await _page(request, services, user, name, refused)
    told = f"Shared with {', '.join(shared)}, once they accept." if shared else "Only you see this list now."
    return redirect(request, _tasks(name), told)


@router.post("/lists/rename")
async def rename(
    request: Request, services: Services, user: CurrentUser, name: Text = "", new_name: Text = ""
) -> Response:
    """Another name, for all who see it."""
    try:
        words = await services.shared_lists.rename(user, name, new_name)
    except (UserError, Conflict) as refused:
        return await _page(request, services, user, name, refused, new_name)
    return redirect(request, _tasks(words), f"Renamed to {words}.")


@router.post("/lists/{list_id}/accept")
async def accept(request: Request, services: Services, user: CurrentUser, list_id: str) -> Response:
    """See an offered list from now on."""
    row = await services.shared_lists.accept(user, list_id)
    return redirect(request, _tasks(row.label), f"You now share {row.label}.")


@router.post("/lists/{list_id}/decline")
async def decline(request: Request, services: Services, user: CurrentUser, list_id: str) -> Response:
    """Refuse it."""
    await services.shared_lists.decline(user, list_id)
    return redirect(request, "/tasks", "Declined.")


@router.post("/lists/{list_id}/leave")
async def leave(request: Request, services: Services, user: CurrentUser, list_id: str) -> Response:
    """See somebody else's list no longer."""
    left = await services.shared_lists.leave(user, list_id)
    return redirect(request, "/tasks", f"You left {left.label}.")


async def _page(
    request: Request,
    services: Services,
    user: CurrentUser,
    name: str,
    refused: UserError | Conflict | None = None,
    typed: str | None = None,
) -> Response:
    sharing = await services.shared_lists.sharing(user, name)
    context = SharedListContext(
        frame=await frame_of(request, services, user, here="/tasks"),
        sharing=sharing,
        new_name=sharing.row.name if typed is None else typed,
        error=refused.message if refused else "",
        error_field="new_name" if typed is not None else "",
    )
    return respond(request, "shared_list.html", context, status=refused.status if refused else 200)


def _tasks(name: str) -> str:
    return "/tasks?" + urlencode({"list": name})
