"""Log in, log out, and the password again before admin pages."""

from typing import Annotated, Literal

from fastapi import Form, Request
from fastapi.responses import RedirectResponse, Response
from msgspec.structs import replace

from cortex.base.errors import NotAllowed, Throttled
from web.deps import MaybeLogin, Services, Text
from web.render import Context, NavEntry, described, respond
from web.routes import PageRouter
from web.security import clear_login, client, local_path, login_token, set_login
from web.visit import UserVisit, Visit

router = PageRouter()


class LoginContext(Context, frozen=True, kw_only=True):
    """The login page."""

    name: str = described("what was typed before", default="")
    next: str = described("where to go afterwards, a path of ours", default="/")


class PasswordAgainContext(Context, frozen=True, kw_only=True):
    """The page that asks for the password again."""

    next: str = described("where to go afterwards, a path of ours", default="/")
    again: bool = described("whether a button was pressed that has to be pressed again afterwards", default=False)
    kind: Literal["page", "token", "link"] = described("what asks for it: an admin's page, a token, a link")
    page: str = described("the title of the page that asks, or empty")


@router.get("/login")
async def show(request: Request, services: Services, view: MaybeLogin, next: str = "/") -> Response:
    """The form; on to the page for who is logged in, to set-up while there is no account."""
    if view is not None:
        return RedirectResponse(local_path(next), 303)
    if not await services.accounts.has_users():
        return RedirectResponse("/setup", 303)
    return respond(request, "login.html", LoginContext(next=local_path(next)))


@router.post("/login")
async def log_in(
    request: Request, services: Services, name: Text = "", password: Text = "", next: Text = "/", time_zone: Text = ""
) -> Response:
    """Check and remember; what was wrong is not said more closely than that."""
    try:
        token = await services.accounts.login(name, password, *client(request), time_zone=time_zone)
    except (NotAllowed, Throttled) as refused:
        context = LoginContext(name=name, next=local_path(next), error=refused.message)
        answer: Response = respond(
            request, "login.html", context, status=429 if isinstance(refused, Throttled) else 422
        )
        if isinstance(refused, Throttled):
            answer.headers["Retry-After"] = str(int(refused.wait_s) + 1)
        return answer
    answer = RedirectResponse(local_path(next), 303)
    set_login(request, answer, token)
    return answer


@router.post("/logout")
async def log_out(request: Request, services: Services) -> Response:
    """End this login; what the browser kept of the pages goes too."""
    token = login_token(request)
    if token:
        await services.accounts.logout(token)
    answer = RedirectResponse("/login", 303)
    clear_login(request, answer)
    answer.headers["Clear-Site-Data"] = '"cache", "storage"'
    return answer


@router.get("/confirm")
async def ask_again(visit: UserVisit, next: str = "/", again: bool = False) -> Response:
    """Asks for the password before an admin page."""
    return await visit.show("password_again.html", _asking(visit, next, is_again=again))


@router.post("/confirm")
async def confirm(
    visit: UserVisit, password: Text = "", next: Text = "/", again: Annotated[bool, Form()] = False
) -> Response:
    """On to the admin page for 10 minutes, when the password is right."""
    try:
        await visit.services.accounts.confirm(login_token(visit.request), password)
    except (NotAllowed, Throttled) as refused:
        context = replace(_asking(visit, next, is_again=again), error=refused.message)
        return await visit.show("password_again.html", context, status=429 if isinstance(refused, Throttled) else 422)
    return RedirectResponse(local_path(next), 303)


def _asking(visit: Visit, next: str, *, is_again: bool) -> PasswordAgainContext:
    """Say what asks for the password, by the address that it leads on to."""
    path = local_path(next)
    nav: tuple[NavEntry, ...] = visit.request.app.state.nav
    below = [entry for entry in nav if f"{path.partition('?')[0]}/".startswith(f"{entry.href}/")]
    page = max(below, key=lambda entry: len(entry.href), default=None)
    return PasswordAgainContext(
        next=path,
        again=is_again,
        kind="token" if path.startswith("/account/tokens") else "link" if path.startswith("/go/") else "page",
        page=page.title if page else "",
    )
