"""One conversation among others: rename, pin, archive, delete and undo that, export."""

from fastapi.responses import Response

from cortex.base.errors import UserError
from web.deps import Text
from web.render import Context, described, download
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()


class RenameContext(Context, frozen=True, kw_only=True):
    """The rename form."""

    cid: str = described("the conversation's id")
    title: str = described("its title as typed, or as it is")


@router.get("/c/{cid}/rename")
async def rename_form(visit: UserVisit, cid: str) -> Response:
    """The title in a form."""
    conversation = await visit.services.conversations.get(visit.user, cid)
    return await visit.show("rename.html", RenameContext(cid=cid, title=conversation.title))


@router.post("/c/{cid}/rename")
async def rename(visit: UserVisit, cid: str, title: Text = "") -> Response:
    """The new title; from then on it is not changed by itself."""
    try:
        await visit.services.conversations.rename(visit.user, cid, title)
    except UserError as refused:
        return await visit.show("rename.html", RenameContext(cid=cid, title=title), refused=refused)
    return visit.redirect(f"/c/{cid}")


@router.post("/c/{cid}/pin")
async def pin(visit: UserVisit, cid: str, on: Text = "") -> Response:
    """Keep it above the others, or no longer."""
    await visit.services.conversations.pin(visit.user, cid, bool(on))
    return visit.redirect(f"/c/{cid}")


@router.post("/c/{cid}/memory")
async def use_memory(visit: UserVisit, cid: str, on: Text = "") -> Response:
    """Use memory in it, or no longer."""
    await visit.services.conversations.set_memory(visit.user, cid, is_used=bool(on))
    return visit.redirect(f"/c/{cid}", f"Memory is {'used' if on else 'not used'} in this chat.")


@router.get("/c/{cid}/delete")
async def ask_delete(visit: UserVisit, cid: str) -> Response:
    """The question before deleting."""
    conversation = await visit.services.conversations.get(visit.user, cid)
    return await visit.ask(
        title="Delete this chat?",
        text=f"“{conversation.title or 'New chat'}” is removed from the list and from search. "
        "For a day you can restore it under All chats.",
        words="Delete",
        back=f"/c/{cid}",
    )


@router.post("/c/{cid}/delete")
async def delete(visit: UserVisit, cid: str) -> Response:
    """Delete it, and offer to take that back."""
    await visit.services.conversations.delete(visit.user, cid)
    return visit.redirect("/c/new", "Chat deleted.", undo_href=f"/c/{cid}/restore")


@router.post("/c/{cid}/restore")
async def restore(visit: UserVisit, cid: str) -> Response:
    """Take a deletion back."""
    await visit.services.conversations.restore(visit.user, cid)
    return visit.redirect(f"/c/{cid}", "Chat restored.")


@router.post("/c/{cid}/end")
async def end_temporary(visit: UserVisit, cid: str) -> Response:
    """Erase a temporary chat."""
    await visit.services.temporary_chats.end(visit.user, cid)
    return visit.redirect("/c/new", "The temporary chat is erased.")


@router.get("/c/{cid}/export.md")
async def export_markdown(visit: UserVisit, cid: str) -> Response:
    """The conversation as Markdown."""
    text = await visit.services.conversations.export_markdown(visit.user, cid)
    return download(text, await _name(visit, cid, "md"), "text/markdown")


@router.get("/c/{cid}/export.json")
async def export_json(visit: UserVisit, cid: str) -> Response:
    """The conversation as JSON."""
    text = await visit.services.conversations.export_json(visit.user, cid)
    return download(text, await _name(visit, cid, "json"), "application/json; charset=utf-8")


async def _name(visit: Visit, cid: str, ending: str) -> str:
    """Of the file: by title and day."""
    conversation = await visit.services.conversations.get(visit.user, cid)
    return f"{visit.services.conversations.file_name(visit.user, conversation)}.{ending}"
