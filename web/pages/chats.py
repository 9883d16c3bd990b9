"""All chats, with a box at each: archive, pin, delete or export several; and the archived ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from cortex.base.errors import UserError
from cortex.services.chat.conversations import ConversationRow
from cortex.services.chat.several import Done, Undoable
from web.deps import CurrentUser, Services
from web.figures import counted
from web.frame import frame_of, side_groups
from web.render import Context, SideGroup, described, in_pieces, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)

HOME = "/chats"

Act = Literal["archive", "unarchive", "pin", "delete", "export"]
Ids = Annotated[tuple[str, ...], Form()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatsContext(Context):
    """A page of the list."""

    groups: tuple[SideGroup, ...] = described("chats by day of last use, pinned first")
    deleted: Sequence[ConversationRow] = described("those that were deleted in the last day, the latest first")
    is_archived: bool = described("whether these are the archived ones")
    is_all: bool = described("whether every box is ticked")
    all_href: str = described("address of this page with every box ticked, or with none")
    newer: str = described("address of the first page, or empty")
    older: str = described("address of the next page, or empty")


@router.get(HOME)
async def show(
    request: Request,
    services: Services,
    user: CurrentUser,
    archived: bool = False,
    before: str = "",
    all: bool = False,
) -> Response:
    """The chats in the list, or the archived ones; `all`: with every box ticked."""
    page = await services.conversations.page(user, before=_moment(before), is_archived=archived)
    here = {"archived": "1"} if archived else {}
    at = {"before": before} if before else {}
    context = ChatsContext(
        frame=await frame_of(request, services, user, here=HOME),
        groups=side_groups(page.groups),
        deleted=() if before or archived else await services.conversations.deleted(user),
        is_archived=archived,
        is_all=all,
        all_href=_address(**here, **at, **({} if all else {"all": "1"})),
        newer=_address(**here) if before else "",
        older=_address(**here, before=page.older.isoformat()) if page.older else "",
    )
    return respond(request, "chats.html", context)


@router.post(HOME)
async def change(
    request: Request, services: Services, user: CurrentUser, act: Annotated[Act, Form()], id: Ids = (), back: str = ""
) -> Response:
    """Do it to all that are ticked; archiving and deleting can be undone in one press."""
    here = _address(archived="1") if back == "archived" else HOME
    chats = services.several_chats
    try:
        if act == "export":
            return _archive(await chats.export(user, id))
        if act == "archive":
            return _redirected(request, here, act, "archived", await chats.archive(user, id))
        if act == "delete":
            return _redirected(request, here, act, "deleted", await chats.delete(user, id))
        done = await (chats.pin(user, id) if act == "pin" else chats.unarchive(user, id))
    except UserError as refused:
        return redirect(request, here, refused.message)
    return redirect(request, here, f"{counted(done, 'chat')} {'pinned' if act == 'pin' else 'back in the list'}.")


@router.post("/chats/undo")
async def undo(request: Request, services: Services, user: CurrentUser, what: Undoable, at: str) -> Response:
    """Put back what one press archived or deleted."""
    moment = _moment(at)
    if moment is None:
        raise UserError("Say what to undo, as the page does.")
    count = await services.several_chats.undo(user, what, moment)
    return redirect(request, HOME, f"{counted(count, 'chat')} back in the list.")


@router.post("/c/{cid}/archive")
async def archive(request: Request, services: Services, user: CurrentUser, cid: str) -> Response:
    """Take this one out of the list."""
    await services.conversations.get(user, cid)
    done = await services.several_chats.archive(user, [cid])
    return _redirected(request, "/c/new", "archive", "archived", done)


@router.post("/c/{cid}/unarchive")
async def unarchive(request: Request, services: Services, user: CurrentUser, cid: str) -> Response:
    """Put this one back into the list."""
    await services.conversations.get(user, cid)
    await services.several_chats.unarchive(user, [cid])
    return redirect(request, f"/c/{cid}", "Back in the list.")


def _redirected(request: Request, here: str, what: Undoable, words: str, done: Done) -> Response:
    left = f" {counted(done.left, 'chat')} still being answered: stop first." if done.left else ""
    undo_href = f"/chats/undo?what={what}&at={quote(done.at.isoformat(), safe='')}" if done.count else ""
    return redirect(request, here, f"{counted(done.count, 'chat')} {words}.{left}", undo_href=undo_href)


def _chats(count: int) -> str:
    return counted(count, "chat")


def _address(**query: str) -> str:
    return f"{HOME}?{urlencode(query)}" if query else HOME


def _moment(text: str) -> datetime | None:
    """The moment that an address names, in UTC; None for what is none."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _archive(packed: bytes) -> Response:
    headers = {"Content-Disposition": 'attachment; filename="chats.zip"', "Cache-Control": "no-store"}
    return in_pieces(Response(packed, media_type="application/zip", headers=headers))
