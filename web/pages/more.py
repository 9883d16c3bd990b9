"""More and Admin: a card for each page that is not in the sidebar, with how it is just now."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import CortexError
from cortex.base.user import User
from web.deps import Admin, CurrentUser, Services
from web.frame import entries_for, frame_of
from web.render import ADMIN, MORE, Context, NavEntry, described, respond
from web.routes import LazyRoute

router = APIRouter(route_class=LazyRoute)
NAV = (
    NavEntry(title="More", href=MORE, icon="fold", order=90),
    NavEntry(title="Admin", href=ADMIN, icon="shield", order=95),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardsContext(Context):
    """A page of cards."""

    title: str = described("heading of the page")
    cards: Sequence[tuple[NavEntry, str]] = described("the pages, each with its state, which may be empty")


@router.get(MORE)
async def more(request: Request, services: Services, user: CurrentUser) -> Response:
    """Return what is the person's own."""
    return await _cards(request, services, user, "More", MORE)


@router.get(ADMIN)
async def admin(request: Request, services: Services, user: Admin) -> Response:
    """Return what is the server's."""
    return await _cards(request, services, user, "Admin", ADMIN)


async def _cards(request: Request, services: Services, user: User, title: str, here: str) -> Response:
    found = [entry for entry in await entries_for(request, services, user) if entry.under == here]
    cards = [(entry, await _state(services, user, entry)) for entry in found]
    context = CardsContext(frame=await frame_of(request, services, user, here=here), title=title, cards=cards)
    return respond(request, "more.html", context)


async def _state(services: Services, user: User, entry: NavEntry) -> str:
    """Return how it is; a page that cannot be read says why itself."""
    try:
        return await entry.state(services, user) if entry.state else ""
    except CortexError:
        return "Needs attention"
