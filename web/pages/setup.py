"""First start: the one-time link makes the admin's account. Open only while no account exists."""

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from starlette.background import BackgroundTask

from cortex.base.errors import CortexError, NotAllowed, Throttled, UserError
from cortex.services.backup.restore import Found, UnvouchedError
from web.deps import Services, Text
from web.render import Context, described, respond
from web.routes import PageRouter
from web.security import client, set_login

router = PageRouter()

FIRST_PAGE = "/start"


class SetupContext(Context, frozen=True, kw_only=True):
    """The set-up page. The token stands in the address after #, which no server sees; app.js copies it to the form."""

    name: str = described("what was typed before", default="")
    token: str = described("what was typed before", default="")
    backup: str = described("the backup that was named before", default="")
    restore_error: str = described("why the backup was refused", default="")
    restored: Found | None = described("the backup that is being put in place", default=None)
    unvouched: Found | None = described("a backup that is restored only if the person takes it as it is", default=None)


@router.get("/setup")
async def show(request: Request, services: Services) -> Response:
    """The form, or the login page once an account exists."""
    if await services.accounts.has_users():
        return RedirectResponse("/login", 303)
    return respond(request, "setup.html", SetupContext())


@router.post("/setup")
async def set_up(
    request: Request, services: Services, token: Text = "", name: Text = "", password: Text = "", time_zone: Text = ""
) -> Response:
    """Make the admin, log them in, and go on to the first questions; once an account exists, to the login page."""
    if await services.accounts.has_users():
        return RedirectResponse("/login", 303)
    try:
        user = await services.accounts.redeem_setup(token.strip().removeprefix("#"), name, password)
        cookie = await services.accounts.login(user.name, password, *client(request), time_zone=time_zone)
    except (UserError, NotAllowed, Throttled) as refused:
        context = SetupContext(name=name, token=token, error=refused.message, error_field=_field(refused))
        return respond(request, "setup.html", context, status=422)
    answer = RedirectResponse(FIRST_PAGE, 303)
    set_login(request, answer, cookie)
    return answer


@router.post("/setup/restore")
async def restore(
    request: Request,
    services: Services,
    token: Text = "",
    backup: Text = "",
    passphrase: Text = "",
    key: Text = "",
    accepted: Text = "",
) -> Response:
    """Put a backup in place of this empty home, and start anew with it; once an account exists, to the login page.

    `accepted`: the digest of a backup that nobody can vouch for, once the person was shown what it holds.
    """
    if await services.accounts.has_users():
        return RedirectResponse("/login", 303)
    try:
        await services.accounts.check_setup(token.strip().removeprefix("#"))
        made = await services.restores.prepare(backup.strip(), passphrase, key, accepted)
    except UnvouchedError as doubtful:
        context = SetupContext(token=token, backup=backup, unvouched=doubtful.found)
        return respond(request, "setup.html", context, status=422)
    except (UserError, NotAllowed) as refused:
        context = SetupContext(token=token, backup=backup, restore_error=refused.message)
        return respond(request, "setup.html", context, status=422)
    answer = respond(request, "setup.html", SetupContext(restored=made))
    answer.background = BackgroundTask(request.app.state.end)
    return answer


def _field(refused: CortexError) -> str:
    return refused.field if isinstance(refused, UserError) else "token"
