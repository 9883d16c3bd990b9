"""A person who was invited, or whose password was reset, chooses one: the link works once, for a day or 15 minutes."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from cortex.base.errors import NotAllowed, Throttled, UserError
from web.deps import Services
from web.render import Context, described, respond
from web.routes import LazyRoute
from web.security import client, set_login

router = APIRouter(route_class=LazyRoute)

Text = Annotated[str, Form()]


@dataclass(frozen=True, slots=True, kw_only=True)
class WelcomeContext(Context):
    """The page behind an invitation. The code stands in the address after #, which no server sees."""

    token: str = described("what was typed before", default="")
    error: str = described("why the last try was refused", default="")
    error_field: str = described("the field the error is about: token or password", default="")


@router.get("/welcome")
async def show(request: Request, services: Services) -> Response:
    """The form; the set-up page while there is no account at all."""
    if not await services.accounts.has_users():
        return RedirectResponse("/setup", 303)
    return respond(request, "welcome.html", WelcomeContext())


@router.post("/welcome")
async def choose(
    request: Request, services: Services, token: Text = "", password: Text = "", time_zone: Text = ""
) -> Response:
    """Take the password and come in."""
    if not await services.accounts.has_users():
        return RedirectResponse("/setup", 303)
    try:
        user = await services.accounts.redeem_setup(token.strip().removeprefix("#"), "", password)
        cookie = await services.accounts.login(user.name, password, *client(request), time_zone=time_zone)
    except (UserError, NotAllowed, Throttled) as refused:
        field = "password" if isinstance(refused, UserError) else "token"
        context = WelcomeContext(token=token, error=refused.message, error_field=field)
        return respond(request, "welcome.html", context, status=422)
    answer = RedirectResponse("/", 303)
    set_login(request, answer, cookie)
    return answer
