"""Search over chats, notes and files: a page, and the sidebar's list while the person types."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.services.search.search import QUERY_CHARACTERS, HitGroup
from web.deps import CurrentUser, Services
from web.frame import frame_of
from web.render import Context, described, respond, wants_fragment
from web.routes import LazyRoute

router = APIRouter(route_class=LazyRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchContext(Context):
    """What was found; the sidebar shows its `results` block in place of the list of chats."""

    q: str = described("what was searched for")
    groups: Sequence[HitGroup] = described("what was found, by kind")
    on_page: bool = described("whether the search page shows it, and not the sidebar")


@router.get("/search")
async def search(
    request: Request, services: Services, user: CurrentUser, q: str = "", on_page: bool = False
) -> Response:
    """Return what fits, by kind; an empty search gives the list of chats back."""
    words = q.strip()[:QUERY_CHARACTERS]
    context = SearchContext(
        frame=await frame_of(request, services, user),
        q=words,
        groups=await services.search.find(user, words),
        on_page=on_page or not wants_fragment(request),
    )
    return respond(request, "search.html", context, block="results")
