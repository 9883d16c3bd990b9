"""Behind a code that was scanned: the person's other device comes in. The code works once, within ten minutes."""

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from cortex.base.errors import NotAllowed, Throttled
from web.deps import MaybeLogin, Services, Text
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
async def come_in(request: Request, services: Services, view: MaybeLogin, token: Text = "") -> Response:
    """Log this device in. Only a press does: whatever looks at addresses ahead of a person uses no code up.

    Whoever is logged in here stays who they are: a code that somebody sends would make them write into another's chats.
    """
    code = token.strip().removeprefix("#")
    try:
        if view is not None:
            owner = await services.device_links.owner(code)
            if owner is not None and owner.id != view.user.id:
                raise NotAllowed(
                    f"You are logged in as {view.user.name}, and this code is {owner.name}'s. Log out first."
                )
        cookie = await services.device_links.redeem(code, *client(request))
    except (NotAllowed, Throttled) as refused:
        return respond(request, "join.html", JoinContext(error=refused.message), status=refused.status)
    answer = RedirectResponse(NEXT, 303)
    set_login(request, answer, cookie)
    return answer
