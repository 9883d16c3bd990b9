"""More and Admin: a card for each page that is not in the sidebar; the word near the person's name; the keys."""

from collections.abc import Sequence

from fastapi.responses import RedirectResponse, Response

from cortex.base.errors import CortexError
from web.frame import entries_for
from web.render import ADMIN, MORE, Context, NavEntry, described, wants_fragment
from web.routes import PageRouter
from web.visit import AdminVisit, UserVisit, Visit

router = PageRouter()
NAV = (
    NavEntry(title="More", href=MORE, icon="dots", order=90),
    NavEntry(title="Admin", href=ADMIN, icon="gear", order=95, under=MORE, about="The server: people, models, health."),
)


class CardsContext(Context, frozen=True, kw_only=True):
    """A page of cards."""

    title: str = described("heading of the page")
    cards: Sequence[tuple[NavEntry, str]] = described("the pages, each with its state, which may be empty")
    admin: Sequence[tuple[NavEntry, str]] = described("the server's pages, for admins", default=())


@router.get(MORE)
async def more(visit: UserVisit) -> Response:
    """Return what is the person's own, and for admins what is the server's."""
    return await _page(visit, "More", MORE, ADMIN)


@router.get(ADMIN)
async def admin(visit: AdminVisit) -> Response:
    """Return what is the server's."""
    return await _page(visit, "Admin", ADMIN)


@router.get("/status")
async def status(visit: UserVisit) -> Response:
    """Return how things stand just now, for the word under the person's name and what it opens; no page of its own."""
    if not wants_fragment(visit.request):
        return RedirectResponse(MORE, 303)
    return await visit.show("status.html", Context(), here="")


@router.get("/shortcuts")
async def shortcuts(visit: UserVisit) -> Response:
    """Return the keys that do something."""
    return await visit.show("shortcuts.html", Context(), here=MORE)


async def _page(visit: Visit, title: str, here: str, also: str = "") -> Response:
    nav = await entries_for(visit.request, visit.services, visit.user)
    context = CardsContext(title=title, cards=await _cards(visit, nav, here), admin=await _cards(visit, nav, also))
    return await visit.show("more.html", context)


async def _cards(visit: Visit, nav: Sequence[NavEntry], under: str) -> list[tuple[NavEntry, str]]:
    found = [entry for entry in nav if under and entry.under == under and entry.href != ADMIN]
    return [(entry, await _state(visit, entry)) for entry in found]


async def _state(visit: Visit, entry: NavEntry) -> str:
    """Return how it is; a page that cannot be read says why itself."""
    try:
        return await entry.state(visit.services, visit.user) if entry.state else ""
    except CortexError:
        return "Needs attention"
