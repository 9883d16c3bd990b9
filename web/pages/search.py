"""Search over all that a person has: a page, and the palette (Ctrl K)."""

from collections.abc import Sequence

from fastapi.responses import RedirectResponse, Response

from cortex.services.search.search import QUERY_CHARACTERS, HitGroup
from web.palette import ASK, ONLY_DEEDS, PaletteGroup, PaletteItem, asking, deeds_found, pages_found, palette_of
from web.render import Context, address, described, wants_fragment
from web.routes import PageRouter
from web.visit import UserVisit

router = PageRouter()


class SearchContext(Context, frozen=True, kw_only=True):
    """The hits of a search."""

    q: str = described("what was searched for")
    groups: Sequence[HitGroup] = described("what was found, by kind")
    pages: Sequence[PaletteItem] = described("pages whose title or sentence fits")
    deeds: Sequence[PaletteItem] = described("what can be done and whose words fit; with nothing typed, all of it")


class PaletteContext(Context, frozen=True, kw_only=True):
    """The lines of the palette."""

    q: str = described("what was typed")
    groups: Sequence[PaletteGroup] = described("what fits, by kind")
    ask: PaletteItem | None = described("the line that asks Cortex, where nothing was found")


@router.get("/search")
async def search(visit: UserVisit, q: str = "") -> Response:
    """Return what fits, by kind."""
    words = q.strip()[:QUERY_CHARACTERS]
    context = SearchContext(
        q=words,
        groups=await visit.services.search.find(visit.user, words),
        pages=await pages_found(visit, words) if words else (),
        deeds=await deeds_found(visit, words),
    )
    return await visit.show("search.html", context, block="results")


@router.get("/palette")
async def palette(visit: UserVisit, q: str | None = None) -> Response:
    """Return the palette's lines for what was typed, as a fragment, before that its box; a page's visit is led on."""
    words = (q or "").strip()[:QUERY_CHARACTERS]
    if not wants_fragment(visit.request):
        return RedirectResponse(address("/search", q=words), 303)
    groups = await palette_of(visit, words)
    question = words.lstrip(ONLY_DEEDS + ASK).strip()
    context = PaletteContext(q=words, groups=groups, ask=asking(question) if question and not groups else None)
    return await visit.show("palette.html", context, block="box" if q is None else "lines")
