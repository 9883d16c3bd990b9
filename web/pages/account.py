"""My settings: the page's look, what a new chat starts with, the persona, the password, the logins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from cortex.base.errors import Conflict, CortexError, NotAllowed, Throttled, UserError
from cortex.services.accounts import Login
from cortex.services.settings import Origin, Preferences
from web.deps import CurrentLogin, House
from web.frame import frame_of
from web.render import Context, described, respond
from web.security import login_token
from web.toast import redirect

router = APIRouter()

Text = Annotated[str, Form()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Why a form of this page was refused, by form or field."""

    preferences: str = ""
    time_zone: str = ""
    max_rounds: str = ""
    persona: str = ""
    password: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountContext(Context):
    """The account page."""

    chosen: Preferences = described("the preferences in force")
    origins: dict[str, Origin] = described("name -> default or yours")
    roles: Sequence[tuple[str, str]] = described("roles to choose from: value, words")
    persona: str = described("the person's own persona, empty for the shipped one")
    persona_version: str = described("its tag, given back when saving")
    logins: Sequence[Login] = described("where the person is logged in, latest first")
    login_id: str = described("the login of this very browser")
    errors: Errors = described("what was refused", default=Errors())


@router.get("/account")
async def show(request: Request, house: House, view: CurrentLogin) -> Response:
    """Everything that is mine to set."""
    return await _page(request, house, view)


@router.post("/account/preferences")
async def save_preferences(
    request: Request,
    house: House,
    view: CurrentLogin,
    theme: Text = "",
    density: Text = "",
    keys: Text = "",
    role: Text = "",
    mode: Text = "",
    max_rounds: Text = "",
    time_zone: Text = "",
) -> Response:
    """Keep them; an empty one returns to the default."""
    values = {
        "theme": theme,
        "density": density,
        "keys": keys,
        "role": role,
        "mode": mode,
        "max_rounds": max_rounds,
    }
    try:
        await house.preferences.change(view.user, values, roles=await house.roles.names(view.user))
        if time_zone.strip() != view.user.time_zone:
            await house.accounts.set_time_zone(view.user, time_zone.strip())
    except UserError as refused:
        is_known = refused.field in ("time_zone", "max_rounds")
        errors = Errors(**{refused.field if is_known else "preferences": refused.message})
        return await _page(request, house, view, errors, 422)
    return redirect(request, "/account", "Saved.")


@router.post("/account/persona")
async def save_persona(
    request: Request, house: House, view: CurrentLogin, persona: Text = "", version: Text = ""
) -> Response:
    """Keep it for the next message."""
    try:
        await house.preferences.save_persona(view.user, persona, version)
    except (UserError, Conflict) as refused:
        return await _page(request, house, view, Errors(persona=refused.message), refused.status, persona=persona)
    return redirect(request, "/account#persona", "Saved.")


@router.post("/account/password")
async def change_password(
    request: Request, house: House, view: CurrentLogin, old: Text = "", new: Text = ""
) -> Response:
    """Another password; the other logins end."""
    try:
        await house.accounts.change_password(login_token(request), old, new)
    except (UserError, NotAllowed, Throttled) as refused:
        return await _page(request, house, view, Errors(password=refused.message), _status(refused))
    return redirect(request, "/account", "The password is changed; your other logins have ended.")


@router.post("/account/logins/{login_id}/end")
async def end_login(request: Request, house: House, view: CurrentLogin, login_id: str) -> Response:
    """End one of my logins."""
    await house.accounts.revoke(view.user, login_id)
    return redirect(request, "/login" if login_id == view.login_id else "/account#logins", "That login has ended.")


async def _page(
    request: Request,
    house: House,
    view: CurrentLogin,
    errors: Errors = Errors(),
    status: int = 200,
    *,
    persona: str | None = None,
) -> Response:
    kept = await house.preferences.persona(view.user)
    context = AccountContext(
        frame=await frame_of(request, house, view.user, here="/account"),
        chosen=await house.preferences.get(view.user),
        origins=await house.preferences.origins(view.user),
        roles=[(name, name) for name in await house.roles.names(view.user)],
        persona=kept.text if persona is None else persona,
        persona_version=kept.version,
        logins=await house.accounts.logins(view.user),
        login_id=view.login_id,
        errors=errors,
    )
    return respond(request, "account.html", context, status=status)


def _status(refused: CortexError) -> int:
    return 422 if isinstance(refused, NotAllowed) else refused.status
