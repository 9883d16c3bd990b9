"""Admin: a tool's description as models read it. What other words cost and change is shown before they are saved."""

from fastapi import Request
from fastapi.responses import Response

from cortex.base.errors import UserError
from cortex.services.tools.words import read_description
from web.bodies import TEXT_BYTES, takes
from web.deps import Number, Text
from web.routes import PageRouter
from web.toast import redirect
from web.tool_view import TOOLS, tool_page
from web.visit import ReauthedAdminVisit

router = PageRouter()
PLACE = TOOLS + "/{tool}/description"
MESSAGES_MAX = 8_000


@router.post(PLACE)
@takes(TEXT_BYTES)
async def change(
    visit: ReauthedAdminVisit, tool: str, description: Text = "", messages: Text = "", do: Text = "effect"
) -> Response:
    """Show what the description would cost and change, save it, or let the shipped one hold again."""
    await visit.services.tool_listing.sheet(visit.user, tool)
    if do == "default":
        number = await visit.services.tool_settings.take_back(visit.user, tool, "description")
        return _saved(visit.request, tool, number, f"{tool} has its shipped description again.")
    typed = {"description": description, "messages": messages[:MESSAGES_MAX]}
    try:
        if do == "save":
            number = await visit.services.tool_settings.describe(visit.user, tool, description)
            return _saved(visit.request, tool, number, "Saved. Applies from the next message on.")
        words = read_description(description)
        tried = [said for said in typed["messages"].splitlines() if said.strip()]
        told = await visit.services.tool_effects.of_description(visit.user, tool, words, tried, "cortex")
    except UserError as refused:
        return await tool_page(visit, tool, block="effect", error=refused.message, **typed)
    return await tool_page(visit, tool, block="effect", told=told, **typed)


@router.post(PLACE + "/undo/{number}")
async def undo(visit: ReauthedAdminVisit, tool: str, number: Number) -> Response:
    """Put back what stood there before this change."""
    await visit.services.tool_settings.undo_description(visit.user, tool, number)
    return visit.redirect(f"{TOOLS}/{tool}#schema", "Undone: the description is what it was.")


def _saved(request: Request, tool: str, number: int, words: str) -> Response:
    """Back to the page, with the way back where something was changed."""
    place = f"{TOOLS}/{tool}"
    undo_href = f"{place}/description/undo/{number}" if number else ""
    return redirect(request, f"{place}#schema", words if number else "Nothing was changed.", undo_href=undo_href)
