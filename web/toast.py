"""News that survives one redirect: a short-lived cookie holds the words and, if any, the way to undo.

Nothing secret is in it, and what is read back is shown as text; its undo address must be one of ours.
"""

import base64
import binascii
import json

from fastapi import Request
from fastapi.responses import RedirectResponse

from cortex.base.json_text import parsed
from web.render import Toast
from web.security import is_secure, local_path

COOKIE = "cortex_toast"
LIFE_S = 8


def redirect(request: Request, place: str, text: str = "", *, undo_href: str = "") -> RedirectResponse:
    """Go on to `place` and say `text` there."""
    answer = RedirectResponse(place, 303)
    if text:
        packed = base64.urlsafe_b64encode(json.dumps([text, undo_href]).encode()).decode()
        answer.set_cookie(COOKIE, packed, max_age=LIFE_S, httponly=True, samesite="lax", secure=is_secure(request))
    return answer


def take(request: Request) -> Toast | None:
    """The news that the last redirect left, if it can be read."""
    packed = request.cookies.get(COOKIE, "")
    if not packed:
        return None
    try:
        text, undo_href = parsed(base64.urlsafe_b64decode(packed))
    except (ValueError, binascii.Error, TypeError):
        return None
    request.state.shown = COOKIE  # `respond` takes it off the browser: news is told once
    return Toast(text=str(text)[:300], undo_href=local_path(str(undo_href), ""))
