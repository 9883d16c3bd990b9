"""With whom a task list is shared: `/lists`. Its owner chooses people and names it; who is offered it answers here."""

from fastapi.responses import Response

from cortex.base.errors import Conflict, UserError
from cortex.services.content.shared_lists import ListSharing
from web.deps import Text, Texts
from web.render import Context, address, described
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()


class SharedListContext(Context, frozen=True, kw_only=True):
    """One list."""

    sharing: ListSharing = described("the list, and with whom it is and can be shared")
    new_name: str = described("its name, or what was typed for it")


@router.get("/lists")
async def show(visit: UserVisit, name: str = "") -> Response:
    """A list of one's own to share, or somebody else's to leave."""
    return await _page(visit, name)


@router.post("/lists/share")
async def share(visit: UserVisit, name: Text = "", people: Texts = None) -> Response:
    """Share it with exactly these people; with nobody, sharing ends."""
    try:
        shared = await visit.services.shared_lists.share(visit.user, name, people or ())
    except UserError as refused:
        return await _page(visit, name, refused)
    told = f"Shared with {', '.join(shared)}, once they accept." if shared else "Only you see this list now."
    return visit.redirect(address("/tasks", list=name), told)


@router.post("/lists/rename")
async def rename(visit: UserVisit, name: Text = "", new_name: Text = "") -> Response:
    """Another name, for all who see it."""
    try:
        words = await visit.services.shared_lists.rename(visit.user, name, new_name)
    except (UserError, Conflict) as refused:
        return await _page(visit, name, refused, new_name)
    return visit.redirect(address("/tasks", list=words), f"Renamed to {words}.")


@router.post("/lists/{list_id}/accept")
async def accept(visit: UserVisit, list_id: str) -> Response:
    """See an offered list from now on."""
    row = await visit.services.shared_lists.accept(visit.user, list_id)
    return visit.redirect(address("/tasks", list=row.label), f"You now share {row.label}.")


@router.post("/lists/{list_id}/decline")
async def decline(visit: UserVisit, list_id: str) -> Response:
    """Refuse it."""
    await visit.services.shared_lists.decline(visit.user, list_id)
    return visit.redirect("/tasks", "Declined.")


@router.post("/lists/{list_id}/leave")
async def leave(visit: UserVisit, list_id: str) -> Response:
    """See somebody else's list no longer."""
    left = await visit.services.shared_lists.leave(visit.user, list_id)
    return visit.redirect("/tasks", f"You left {left.label}.")


async def _page(
    visit: Visit, name: str, refused: UserError | Conflict | None = None, typed: str | None = None
) -> Response:
    sharing = await visit.services.shared_lists.sharing(visit.user, name)
    context = SharedListContext(
        sharing=sharing,
        new_name=sharing.row.name if typed is None else typed,
        error_field="new_name" if typed is not None else "",
    )
    return await visit.show("shared_list.html", context, here="/tasks", refused=refused)
