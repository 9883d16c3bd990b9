"""Admin: every tool of the server, and one tool whole. On or off, when it is sent, whether it asks first."""

from collections.abc import Sequence
from urllib.parse import urlencode

from fastapi.responses import HTMLResponse, Response

from cortex.app import Cortex
from cortex.base.user import User
from cortex.services.tools.listing import ToolList
from web.deps import Number, Text
from web.render import ADMIN, Context, Frame, NavEntry, Renderer, described, wants_fragment
from web.routes import PageRouter
from web.security import local_path
from web.tool_view import TOOLS, tool_page
from web.visit import ReauthedAdminVisit

router = PageRouter()
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


class ToolsContext(Context, frozen=True, kw_only=True):
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
    visit: ReauthedAdminVisit, q: str = "", category: str = "", risk: str = "", page: Number = 1
) -> Response:
    """The tools, filtered."""
    words = q.strip()[:100]
    listing = await visit.services.tool_listing.list(words, category, risk, page)
    kept = {name: value for name, value in (("q", words), ("category", category), ("risk", risk)) if value}

    def place(number: int) -> str:
        return f"{HREF}?{urlencode({**kept, 'page': number})}"

    context = ToolsContext(
        listing=listing,
        q=words,
        category=category,
        risk=risk,
        earlier=place(listing.page - 1) if listing.page > 1 else "",
        later=place(listing.page + 1) if listing.page < listing.pages else "",
    )
    return await visit.show("tools.html", context, block="list")


@router.get(HREF + "/{tool}")
async def show_one(visit: ReauthedAdminVisit, tool: str, first: Number = 0) -> Response:
    """One tool with its schema and its last calls."""
    return await tool_page(visit, tool, first=max(0, first))


@router.post(HREF + "/{tool}")
async def save(
    visit: ReauthedAdminVisit,
    tool: str,
    is_on: Text = "",
    sending: Text = "needed",
    asks_first: Text = "",
    default: Text = "",
    back: Text = "",
) -> Response:
    """Keep all three, or take the one named `default` back; the row alone for htmx."""
    if default:
        await visit.services.tool_settings.take_back(visit.user, tool, default)
    else:
        await visit.services.tool_settings.change(
            visit.user, tool, is_on=bool(is_on), sending=sending, asks_first=bool(asks_first)
        )
    if not wants_fragment(visit.request):
        return visit.redirect(local_path(back, f"{HREF}/{tool}"), f"Saved: {tool}")
    line = (await visit.services.tool_listing.sheet(visit.user, tool)).line
    pages: Renderer = visit.request.app.state.pages
    macros = pages.macros("tool_parts.html", Context(frame=Frame(user=visit.user)))
    return HTMLResponse(macros.row(line))
