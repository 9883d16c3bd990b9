"""More and Admin: a card for each page that is not in the sidebar, with how it is just now."""

from collections.abc import Sequence

from fastapi.responses import Response

from cortex.base.errors import CortexError
from web.frame import entries_for
from web.render import ADMIN, MORE, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import AdminVisit, UserVisit, Visit

router = PageRouter()
NAV = (
    NavEntry(title="More", href=MORE, icon="fold", order=90),
    NavEntry(title="Admin", href=ADMIN, icon="shield", order=95),
)


class CardsContext(Context, frozen=True, kw_only=True):
    """A page of cards."""

    title: str = described("heading of the page")
    cards: Sequence[tuple[NavEntry, str]] = described("the pages, each with its state, which may be empty")


@router.get(MORE)
async def more(visit: UserVisit) -> Response:
    """Return what is the person's own."""
    return await _cards(visit, "More", MORE)


@router.get(ADMIN)
async def admin(visit: AdminVisit) -> Response:
    """Return what is the server's."""
    return await _cards(visit, "Admin", ADMIN)


async def _cards(visit: Visit, title: str, here: str) -> Response:
    found = [entry for entry in await entries_for(visit.request, visit.services, visit.user) if entry.under == here]
    cards = [(entry, await _state(visit, entry)) for entry in found]
    context = CardsContext(title=title, cards=cards)
    return await visit.show("more.html", context)


async def _state(visit: Visit, entry: NavEntry) -> str:
    """Return how it is; a page that cannot be read says why itself."""
    try:
        return await entry.state(visit.services, visit.user) if entry.state else ""
    except CortexError:
        return "Needs attention"
