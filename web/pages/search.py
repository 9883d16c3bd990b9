"""Search over all that a person has: a page, the sidebar's list while the person types, and the palette (Ctrl K)."""

from collections.abc import Sequence

from fastapi.responses import RedirectResponse, Response

from cortex.services.search.search import QUERY_CHARACTERS, HitGroup
from web.palette import ASK, ONLY_DEEDS, PaletteGroup, PaletteItem, asking, deeds_found, pages_found, palette_of
from web.render import Context, address, described, wants_fragment
from web.routes import PageRouter
from web.visit import UserVisit

router = PageRouter()


class SearchContext(Context, frozen=True, kw_only=True):
    """The hits of a search; the sidebar shows its `results` block in place of the list of chats."""

    q: str = described("what was searched for")
    groups: Sequence[HitGroup] = described("what was found, by kind")
    pages: Sequence[PaletteItem] = described("pages whose title or sentence fits")
    deeds: Sequence[PaletteItem] = described("what can be done and whose words fit; with nothing typed, all of it")
    on_page: bool = described("whether the search page shows it, and not the sidebar")


class PaletteContext(Context, frozen=True, kw_only=True):
    """The lines of the palette."""

    q: str = described("what was typed")
    groups: Sequence[PaletteGroup] = described("what fits, by kind")
    ask: PaletteItem | None = described("the line that asks Cortex, where nothing was found")


@router.get("/search")
async def search(visit: UserVisit, q: str = "", on_page: bool = False) -> Response:
    """Return what fits, by kind; an empty search gives the list of chats back."""
    words = q.strip()[:QUERY_CHARACTERS]
    is_sidebar = wants_fragment(visit.request) and not on_page
    context = SearchContext(
        q=words,
        groups=await visit.services.search.find(visit.user, words),
        pages=await pages_found(visit, words) if words else (),
        deeds=() if is_sidebar else await deeds_found(visit, words),
        on_page=not is_sidebar,
    )
    return await visit.show("search.html", context, block="results")


@router.get("/palette")
async def palette(visit: UserVisit, q: str = "") -> Response:
    """Return the palette's lines for what was typed, as a fragment; a page's visit is led to the search page."""
    words = q.strip()[:QUERY_CHARACTERS]
    if not wants_fragment(visit.request):
        return RedirectResponse(address("/search", q=words), 303)
    groups = await palette_of(visit, words)
    question = words.lstrip(ONLY_DEEDS + ASK).strip()
    context = PaletteContext(q=words, groups=groups, ask=asking(question) if question and not groups else None)
    return await visit.show("palette.html", context, block="lines")
