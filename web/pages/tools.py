"""Admin: every tool of the server, and one tool whole. On or off, when it is sent, whether it asks first."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from cortex.app import Cortex
from cortex.base.user import User
from cortex.services.tools.listing import ToolList
from web.deps import Number, ReauthedAdmin, Services, Text
from web.frame import frame_of
from web.render import ADMIN, Context, Frame, NavEntry, Renderer, described, respond, wants_fragment
from web.routes import LazyRoute
from web.security import local_path
from web.toast import redirect
from web.tool_view import TOOLS, tool_page

router = APIRouter(route_class=LazyRoute)
HREF = TOOLS


async def _state(services: Cortex, user: User) -> str:
    """Return how many are off."""
    count = len((await services.tool_settings.in_force()).off)
    return f"{count} off" if count else ""


NAV = NavEntry(
    title="Tools",
    href=HREF,
    icon="wrench",
    order=68,
    under=ADMIN,
    about="Switch tools on and off, set when they ask, try them.",
    state=_state,
)
RISKS = ("low", "medium", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsContext(Context):
    """The list."""

    listing: ToolList = described("the tools that fit the filter, by category, with the sums over all")
    q: str = described("words to filter by", default="")
    category: str = described("the one category shown, or empty", default="")
    risk: str = described("the one risk shown, or empty", default="")
    risks: Sequence[str] = described("the risks there are", default=RISKS)
    earlier: str = described("address of the page before, or empty", default="")
    later: str = described("address of the page behind, or empty", default="")


@router.get(HREF)
async def show(
    request: Request,
    services: Services,
    user: ReauthedAdmin,
    q: str = "",
    category: str = "",
    risk: str = "",
    page: Number = 1,
) -> Response:
    """The tools, filtered."""
    words = q.strip()[:100]
    listing = await services.tool_listing.list(words, category, risk, page)
    kept = {name: value for name, value in (("q", words), ("category", category), ("risk", risk)) if value}

    def place(number: int) -> str:
        return f"{HREF}?{urlencode({**kept, 'page': number})}"

    context = ToolsContext(
        frame=await frame_of(request, services, user, here=HREF),
        listing=listing,
        q=words,
        category=category,
        risk=risk,
        earlier=place(listing.page - 1) if listing.page > 1 else "",
        later=place(listing.page + 1) if listing.page < listing.pages else "",
    )
    return respond(request, "tools.html", context, block="list")


@router.get(HREF + "/{tool}")
async def show_one(request: Request, services: Services, user: ReauthedAdmin, tool: str, first: Number = 0) -> Response:
    """One tool with its schema and its last calls."""
    return await tool_page(request, services, user, tool, first=max(0, first))


@router.post(HREF + "/{tool}")
async def save(
    request: Request,
    services: Services,
    user: ReauthedAdmin,
    tool: str,
    is_on: Text = "",
    sending: Text = "needed",
    asks_first: Text = "",
    default: Text = "",
    back: Text = "",
) -> Response:
    """Keep all three, or take the one named `default` back; the row alone for htmx."""
    if default:
        await services.tool_settings.take_back(user, tool, default)
    else:
        await services.tool_settings.change(user, tool, is_on=bool(is_on), sending=sending, asks_first=bool(asks_first))
    if not wants_fragment(request):
        return redirect(request, local_path(back, f"{HREF}/{tool}"), f"Saved: {tool}")
    line = (await services.tool_listing.sheet(user, tool)).line
    pages: Renderer = request.app.state.pages
    macros = pages.macros("tool_parts.html", Context(frame=Frame(user=user)))
    return HTMLResponse(macros.row(line))
