"""All chats, with a box at each: archive, pin, delete or export several; and the archived ones."""

from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import Form, Request
from fastapi.responses import Response

from cortex.base.errors import UserError
from cortex.services.chat.conversations import ConversationRow
from cortex.services.chat.several import Done, Undoable
from web.deps import Number
from web.figures import counted
from web.frame import side_groups
from web.render import Context, SideGroup, address, described, download
from web.routes import PageRouter
from web.stretch import PAGE_ROWS, Stretch, part
from web.toast import redirect
from web.visit import UserVisit

router = PageRouter()

HOME = "/chats"

Act = Literal["archive", "unarchive", "pin", "delete", "export"]
Ids = Annotated[tuple[str, ...], Form()]


class ChatsContext(Context, frozen=True, kw_only=True):
    """A page of the list."""

    groups: tuple[SideGroup, ...] = described("chats by day of last use, pinned first")
    deleted: Stretch[ConversationRow] = described("those that were deleted in the last day, the latest first")
    is_archived: bool = described("whether these are the archived ones")
    is_all: bool = described("whether every box is ticked")
    all_href: str = described("address of this page with every box ticked, or with none")
    newer: str = described("address of the first page, or empty")
    older: str = described("address of the next page, or empty")


@router.get(HOME)
async def show(
    visit: UserVisit, archived: bool = False, before: str = "", all: bool = False, deleted: Number = 0
) -> Response:
    """The chats in the list, or the archived ones; `all`: with every box ticked."""
    conversations, skip = visit.services.conversations, max(0, deleted)
    page = await conversations.page(visit.user, before=_moment(before), is_archived=archived)
    is_first = not before and not archived
    gone = await conversations.deleted(visit.user, skip=skip, limit=PAGE_ROWS + 1) if is_first else ()
    context = ChatsContext(
        groups=side_groups(page.groups),
        deleted=part(gone, skip, partial(address, HOME, all=all), by="deleted", at="deleted"),
        is_archived=archived,
        is_all=all,
        all_href=address(HOME, archived=archived, before=before, all=not all, deleted=skip),
        newer=address(HOME, archived=archived) if before else "",
        older=address(HOME, archived=archived, before=page.older.isoformat()) if page.older else "",
    )
    return await visit.show("chats.html", context)


@router.post(HOME)
async def change(visit: UserVisit, act: Annotated[Act, Form()], id: Ids = (), back: str = "") -> Response:
    """Do it to all that are ticked; archiving and deleting can be undone in one press."""
    here = address(HOME, archived=back == "archived")
    chats = visit.services.several_chats
    try:
        if act == "export":
            return download(await chats.export(visit.user, id), "chats.zip", "application/zip")
        if act == "archive":
            return _redirected(visit.request, here, act, "archived", await chats.archive(visit.user, id))
        if act == "delete":
            return _redirected(visit.request, here, act, "deleted", await chats.delete(visit.user, id))
        done = await (chats.pin(visit.user, id) if act == "pin" else chats.unarchive(visit.user, id))
    except UserError as refused:
        return visit.redirect(here, refused.message)
    return visit.redirect(here, f"{counted(done, 'chat')} {'pinned' if act == 'pin' else 'back in the list'}.")


@router.post("/chats/undo")
async def undo(visit: UserVisit, what: Undoable, at: str) -> Response:
    """Put back what one press archived or deleted."""
    moment = _moment(at)
    if moment is None:
        raise UserError("Say what to undo, as the page does.")
    count = await visit.services.several_chats.undo(visit.user, what, moment)
    return visit.redirect(HOME, f"{counted(count, 'chat')} back in the list.")


@router.post("/c/{cid}/archive")
async def archive(visit: UserVisit, cid: str) -> Response:
    """Take this one out of the list."""
    await visit.services.conversations.get(visit.user, cid)
    done = await visit.services.several_chats.archive(visit.user, [cid])
    return _redirected(visit.request, "/c/new", "archive", "archived", done)


@router.post("/c/{cid}/unarchive")
async def unarchive(visit: UserVisit, cid: str) -> Response:
    """Put this one back into the list."""
    await visit.services.conversations.get(visit.user, cid)
    await visit.services.several_chats.unarchive(visit.user, [cid])
    return visit.redirect(f"/c/{cid}", "Back in the list.")


def _redirected(request: Request, here: str, what: Undoable, words: str, done: Done) -> Response:
    left = f" {counted(done.left, 'chat')} still being answered: stop first." if done.left else ""
    undo_href = f"/chats/undo?what={what}&at={quote(done.at.isoformat(), safe='')}" if done.count else ""
    return redirect(request, here, f"{counted(done.count, 'chat')} {words}.{left}", undo_href=undo_href)


def _moment(text: str) -> datetime | None:
    """The moment that an address names, in UTC; None for what is none."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
