"""The page of the frame in which a listing is drawn: HTML, SVG, Mermaid. `static/preview.js` hands in what and by what.

In no origin, and without network: what a model wrote can neither read a page of ours nor tell anybody of it.
"""

from fastapi.responses import Response

from web.render import Context, in_pieces
from web.routes import PageRouter
from web.security import FRAMED
from web.visit import UserVisit

router = PageRouter()


@router.get("/preview")
async def preview(visit: UserVisit) -> Response:
    """Return the empty frame."""
    page = visit.pages.page("preview.html", Context())
    return in_pieces(Response(page, media_type="text/html; charset=utf-8", headers=FRAMED))
