"""A person who was invited, or whose password was reset, chooses one: the link works once, for a day or 15 minutes."""

from collections.abc import Collection

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from cortex.base.errors import NotAllowed, Throttled, UserError
from cortex.base.user import User
from cortex.services.accounts.accounts import Guest
from web.deps import Services, Text, Texts
from web.render import Context, described, respond
from web.routes import PageRouter
from web.security import client, set_login

router = PageRouter()


class WelcomeContext(Context, frozen=True, kw_only=True):
    """The page behind an invitation. The code stands in the address after #, which no server sees."""

    token: str = described("what was typed before", default="")
    guest: Guest | None = described("whose link it is, where that is known", default=None)
    is_dead: bool = described("whether the link cannot be used any more", default=False)
    unticked: Collection[str] = described("kinds of access that are to stay with the new password", default=())


@router.get("/welcome")
async def show(request: Request, services: Services) -> Response:
    """The form; the set-up page while there is no account at all."""
    if not await services.accounts.has_users():
        return RedirectResponse("/setup", 303)
    return respond(request, "welcome.html", WelcomeContext())


@router.post("/welcome/who")
async def who(request: Request, services: Services, token: Text = "") -> Response:
    """Return who is invited by whom: a fragment for the page, which alone knows the code."""
    code = token.strip().removeprefix("#")
    guest = await services.accounts.guest(code) if code else None
    context = WelcomeContext(guest=guest, is_dead=bool(code) and guest is None)
    return respond(request, "welcome.html", context, block="who")


@router.post("/welcome")
async def choose(
    request: Request,
    services: Services,
    token: Text = "",
    password: Text = "",
    time_zone: Text = "",
    listed: Texts = None,
    ends: Texts = None,
) -> Response:
    """Take the password and come in; what lets somebody in as this person ends, but what was unticked."""
    if not await services.accounts.has_users():
        return RedirectResponse("/setup", 303)
    keep = {*(listed or ())} - {*(ends or ())}
    try:
        user = await services.accounts.redeem_setup(token.strip().removeprefix("#"), "", password, keep=keep)
        cookie = await services.accounts.login(user.name, password, *client(request), time_zone=time_zone)
    except (UserError, NotAllowed, Throttled) as refused:
        field = "password" if isinstance(refused, UserError) else "token"
        guest = await services.accounts.guest(token.strip().removeprefix("#"))
        context = WelcomeContext(token=token, guest=guest, unticked=keep, error=refused.message, error_field=field)
        return respond(request, "welcome.html", context, status=422)
    answer = RedirectResponse(await _next(services, user), 303)
    set_login(request, answer, cookie)
    return answer


async def _next(services: Services, user: User) -> str:
    """Return the way to be told on this device, for whoever was not told anywhere yet; else the first page."""
    left = await services.first_steps.left(user)
    step = left.step("notify") if left else None
    return "/start?open=notify" if step and not step.is_done else "/"
