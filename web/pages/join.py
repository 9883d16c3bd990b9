"""Behind a code that was scanned: the person's other device comes in. The code works once, within ten minutes."""

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from cortex.base.errors import NotAllowed, Throttled
from web.deps import Services, Text
from web.render import Context, described, respond
from web.routes import PageRouter
from web.security import client, set_login

router = PageRouter()
NEXT = "/start?open=notify"  # this device is a new one: it can be told at once


class JoinContext(Context, frozen=True, kw_only=True):
    """The page. The code stands in the address after #, which no server sees; app.js copies it to the form."""

    token: str = described("what was typed before", default="")


@router.get("/join")
async def show(request: Request, services: Services) -> Response:
    """The button; the set-up page while there is no account at all."""
    if not await services.accounts.has_users():
        return RedirectResponse("/setup", 303)
    return respond(request, "join.html", JoinContext())


@router.post("/join")
async def come_in(request: Request, services: Services, token: Text = "") -> Response:
    """Log this device in. Only a press does: whatever looks at addresses ahead of a person uses no code up."""
    try:
        cookie = await services.device_links.redeem(token.strip().removeprefix("#"), *client(request))
    except (NotAllowed, Throttled) as refused:
        return respond(request, "join.html", JoinContext(error=refused.message), status=refused.status)
    answer = RedirectResponse(NEXT, 303)
    set_login(request, answer, cookie)
    return answer
