"""Search over chats, notes and files: a page, and the sidebar's list while the person types."""

from collections.abc import Sequence

from fastapi.responses import Response

from cortex.services.search.search import QUERY_CHARACTERS, HitGroup
from web.render import Context, described, wants_fragment
from web.routes import PageRouter
from web.visit import UserVisit

router = PageRouter()


class SearchContext(Context, frozen=True, kw_only=True):
    """The hits of a search; the sidebar shows its `results` block in place of the list of chats."""

    q: str = described("what was searched for")
    groups: Sequence[HitGroup] = described("what was found, by kind")
    on_page: bool = described("whether the search page shows it, and not the sidebar")


@router.get("/search")
async def search(visit: UserVisit, q: str = "", on_page: bool = False) -> Response:
    """Return what fits, by kind; an empty search gives the list of chats back."""
    words = q.strip()[:QUERY_CHARACTERS]
    context = SearchContext(
        q=words,
        groups=await visit.services.search.find(visit.user, words),
        on_page=on_page or not wants_fragment(visit.request),
    )
    return await visit.show("search.html", context, block="results")
