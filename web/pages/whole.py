"""All of an answer that the conversation shows shortened: as it was written, not rendered; and as plain text.

And the frame in which a listing of it is drawn: HTML, SVG, Mermaid. `static/preview.js` hands in what and by what. In
no origin, without script and without network: what a model wrote can neither read a page of ours nor tell of it.
"""

import secrets

from fastapi.responses import PlainTextResponse, Response

from cortex.services.chat.transcript_views import TextPart, turn_of
from web.chat_view import find_turn
from web.render import Context, described, in_pieces
from web.routes import PageRouter
from web.security import framed
from web.visit import UserVisit, Visit

router = PageRouter()


class WholeContext(Context, frozen=True, kw_only=True):
    """An answer's whole text."""

    cid: str = described("the conversation it stands in")
    key: str = described("its turn")
    text: str = described("what was written, source and all")
    is_open: bool = described("whether more of it is being written")


class PreviewContext(Context, frozen=True, kw_only=True):
    """The frame of previews."""

    nonce: str = described("by which its own script is known")


@router.get("/c/{cid}/whole/{key}.txt")
async def plain(visit: UserVisit, cid: str, key: str) -> Response:
    """The text alone: what the copy button takes."""
    text, _ = await _text(visit, cid, key)
    return in_pieces(PlainTextResponse(text))


@router.get("/c/{cid}/whole/{key}")
async def whole(visit: UserVisit, cid: str, key: str) -> Response:
    """A page with nothing but the text."""
    text, is_open = await _text(visit, cid, key)
    context = WholeContext(cid=cid, key=key, text=text, is_open=is_open)
    return await visit.show("whole.html", context)


@router.get("/preview")
async def preview(visit: UserVisit) -> Response:
    """Return the empty frame."""
    nonce = secrets.token_urlsafe(16)
    page = visit.pages.page("preview.html", PreviewContext(nonce=nonce))
    return in_pieces(Response(page, media_type="text/html; charset=utf-8", headers=framed(nonce)))


async def _text(visit: Visit, cid: str, key: str) -> tuple[str, bool]:
    """The turn's words, parts apart by a blank line, with what is being written; and whether something is."""
    turn, _ = await find_turn(visit, cid, turn_of(key))
    growing = {part.part: part.text for part in visit.services.hub.open_parts(cid)}
    parts = [part for part in turn.parts if isinstance(part, TextPart)]
    texts = [growing.get(part.id, "") if part.is_open else part.text for part in parts]
    return "\n\n".join(text for text in texts if text), any(part.is_open for part in parts)
