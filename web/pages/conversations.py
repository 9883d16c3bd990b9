"""One conversation among others: rename, pin, archive, delete and undo that, export."""

from dataclasses import dataclass
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import UserError
from cortex.base.user import User
from web import toast
from web.deps import CurrentUser, Services, Text
from web.frame import frame_of
from web.render import ConfirmContext, Context, described, in_pieces, respond
from web.routes import LazyRoute

router = APIRouter(route_class=LazyRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameContext(Context):
    """The rename form."""

    cid: str = described("the conversation's id")
    title: str = described("its title as typed, or as it is")
    error: str = described("why the last one was not taken", default="")


@router.get("/c/{cid}/rename")
async def rename_form(request: Request, services: Services, user: CurrentUser, cid: str) -> Response:
    """The title in a form."""
    conversation = await services.conversations.get(user, cid)
    frame = await frame_of(request, services, user, conversation_id=cid)
    return respond(request, "rename.html", RenameContext(frame=frame, cid=cid, title=conversation.title))


@router.post("/c/{cid}/rename")
async def rename(request: Request, services: Services, user: CurrentUser, cid: str, title: Text = "") -> Response:
    """The new title; from then on it is not changed by itself."""
    try:
        await services.conversations.rename(user, cid, title)
    except UserError as refused:
        frame = await frame_of(request, services, user, conversation_id=cid)
        context = RenameContext(frame=frame, cid=cid, title=title, error=refused.message)
        return respond(request, "rename.html", context, status=422)
    return toast.redirect(request, f"/c/{cid}")


@router.post("/c/{cid}/pin")
async def pin(request: Request, services: Services, user: CurrentUser, cid: str, on: Text = "") -> Response:
    """Keep it above the others, or no longer."""
    await services.conversations.pin(user, cid, bool(on))
    return toast.redirect(request, f"/c/{cid}")


@router.post("/c/{cid}/memory")
async def use_memory(request: Request, services: Services, user: CurrentUser, cid: str, on: Text = "") -> Response:
    """Use memory in it, or no longer."""
    await services.conversations.set_memory(user, cid, is_used=bool(on))
    return toast.redirect(request, f"/c/{cid}", f"Memory is {'used' if on else 'not used'} in this chat.")


@router.get("/c/{cid}/delete")
async def ask_delete(request: Request, services: Services, user: CurrentUser, cid: str) -> Response:
    """The question before deleting."""
    conversation = await services.conversations.get(user, cid)
    context = ConfirmContext(
        frame=await frame_of(request, services, user, conversation_id=cid),
        title="Delete this chat?",
        text=f"“{conversation.title or 'New chat'}” is removed from the list and from search. "
        "For a day you can restore it under All chats.",
        action=f"/c/{cid}/delete",
        words="Delete",
        back=f"/c/{cid}",
    )
    return respond(request, "confirm.html", context)


@router.post("/c/{cid}/delete")
async def delete(request: Request, services: Services, user: CurrentUser, cid: str) -> Response:
    """Delete it, and offer to take that back."""
    await services.conversations.delete(user, cid)
    return toast.redirect(request, "/c/new", "Chat deleted.", undo_href=f"/c/{cid}/restore")


@router.post("/c/{cid}/restore")
async def restore(request: Request, services: Services, user: CurrentUser, cid: str) -> Response:
    """Take a deletion back."""
    await services.conversations.restore(user, cid)
    return toast.redirect(request, f"/c/{cid}", "Chat restored.")


@router.get("/c/{cid}/export.md")
async def export_markdown(services: Services, user: CurrentUser, cid: str) -> Response:
    """The conversation as Markdown."""
    text = await services.conversations.export_markdown(user, cid)
    return _file(text, "text/markdown", await _name(services, user, cid, "md"))


@router.get("/c/{cid}/export.json")
async def export_json(services: Services, user: CurrentUser, cid: str) -> Response:
    """The conversation as JSON."""
    text = await services.conversations.export_json(user, cid)
    return _file(text, "application/json", await _name(services, user, cid, "json"))


async def _name(services: Services, user: User, cid: str, ending: str) -> str:
    """Of the file: by title and day."""
    conversation = await services.conversations.get(user, cid)
    return f"{services.conversations.file_name(user, conversation)}.{ending}"


def _file(body: str | bytes, kind: str, name: str) -> Response:
    headers = {"Content-Disposition": f"attachment; filename*=utf-8''{quote(name, safe='')}"}
    made = Response(body, media_type=f"{kind}; charset=utf-8", headers={**headers, "Cache-Control": "no-store"})
    return in_pieces(made)
