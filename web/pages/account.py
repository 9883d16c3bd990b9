"""My settings: the page's look, what a new chat starts with, the persona, the password, the logins."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import Conflict, CortexError, NotAllowed, Throttled, UserError
from cortex.services.accounts.accounts import LoginRow
from cortex.services.accounts.credentials import Credential
from cortex.services.roles.preferences import Origin, Preferences
from cortex.services.roles.roles import PERSONA
from cortex.services.roles.settings import RoleSettings
from cortex.services.turns.approvals import GrantRow
from cortex.services.zones import places
from web.bodies import TEXT_BYTES, takes
from web.deps import CurrentLogin, Services, Text, Texts
from web.frame import frame_of
from web.render import MORE, Context, DeletionContext, NavEntry, described, respond
from web.routes import LazyRoute
from web.security import clear_login, login_token, set_login
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
NAV = NavEntry(
    title="Account",
    href="/account",
    icon="user",
    order=48,
    under=MORE,
    about="Theme, time zone, password, roles and where you are logged in.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Why a form of this page was refused, by form or field."""

    preferences: str = ""
    time_zone: str = ""
    start: str = ""
    max_rounds: str = ""
    persona: str = ""
    old: str = ""
    new: str = ""
    password: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountContext(Context):
    """The account page."""

    chosen: Preferences = described("the preferences in force")
    origins: dict[str, Origin] = described("name -> default or yours")
    zones: Sequence[str] = described("the time zones there are, to choose from while typing")
    time_zone: str = described("the time zone as typed or as kept")
    rounds: str = described("the rounds of a new chat, as typed or as kept")
    role_names: Sequence[tuple[str, str]] = described("roles to choose from: value, words")
    roles: Sequence[RoleSettings] = described("the same roles with what holds for each")
    removed: Sequence[str] = described("roles that were deleted lately and can be brought back")
    default_persona: str = described("the words in force while the person has none of their own")
    persona: str = described("the person's own persona, empty for the shipped one")
    persona_version: str = described("its tag, given back when saving")
    logins: Sequence[LoginRow] = described("where the person is logged in, latest first")
    login_id: str = described("the login of this very browser")
    credentials: Sequence[Credential] = described("what lets somebody in as this person besides this login")
    unticked: Collection[str] = described("keys of those that are to stay when the password changes")
    became_outside: bool = described("whether to say that text of older tokens counts as external content now")
    grants: Sequence[GrantRow] = described("what was allowed for a whole conversation and still holds")
    shares_words: bool = described("whether admins may read messages of this person that lacked a tool")
    errors: Errors = described("what was refused", default=Errors())


@router.get("/account")
async def show(request: Request, services: Services, view: CurrentLogin) -> Response:
    """Everything that is mine to set."""
    return await _page(request, services, view)


@router.post("/account/preferences")
async def save_preferences(
    request: Request,
    services: Services,
    view: CurrentLogin,
    theme: Text = "",
    density: Text = "",
    keys: Text = "",
    time_zone: Text = "",
) -> Response:
    """Return how the page looks and behaves; an empty value returns to the default."""
    zone = time_zone.strip()
    try:
        if zone != view.user.time_zone:
            await services.accounts.set_time_zone(view.user, zone)
        await services.preferences.change(view.user, {"theme": theme, "density": density, "keys": keys})
    except UserError as refused:
        is_zone = refused.field == "time_zone"
        errors = Errors(time_zone=refused.message) if is_zone else Errors(preferences=refused.message)
        return await _page(request, services, view, errors, 422, time_zone=time_zone)
    return redirect(request, "/account", "Saved.")


@router.post("/account/words")
async def save_words(request: Request, view: CurrentLogin, services: Services, shares: Text = "") -> Response:
    """Tell whether admins may read messages that lacked a tool."""
    await services.learning.share(view.user, is_shared=bool(shares))
    return redirect(request, "/account#words", "Saved.")


@router.post("/account/start")
async def save_start(
    request: Request,
    services: Services,
    view: CurrentLogin,
    role: Text = "",
    mode: Text = "",
    max_rounds: Text = "",
) -> Response:
    """Return what a new chat starts with; an empty value returns to the default."""
    values = {"role": role, "mode": mode, "max_rounds": max_rounds}
    try:
        await services.preferences.change(view.user, values, roles=await services.roles.names(view.user))
    except UserError as refused:
        is_rounds = refused.field == "max_rounds"
        errors = Errors(max_rounds=refused.message) if is_rounds else Errors(start=refused.message)
        return await _page(request, services, view, errors, 422, rounds=max_rounds)
    return redirect(request, "/account#start", "Saved.")


@router.post("/account/persona")
@takes(TEXT_BYTES)
async def save_persona(
    request: Request, services: Services, view: CurrentLogin, persona: Text = "", version: Text = ""
) -> Response:
    """Keep it for the next message."""
    try:
        await services.preferences.save_persona(view.user, persona, version)
    except (UserError, Conflict) as refused:
        errors = Errors(persona=refused.message)
        return await _page(request, services, view, errors, refused.status, persona=persona)
    return redirect(request, "/account#persona", "Saved.")


@router.post("/account/password")
async def change_password(
    request: Request,
    services: Services,
    view: CurrentLogin,
    old: Text = "",
    new: Text = "",
    listed: Texts = None,
    ends: Texts = None,
) -> Response:
    """Another password; what lets somebody in as this person ends, but what was unticked."""
    keep = {*(listed or ())} - {*(ends or ())}  # what came to be behind the page ends too
    try:
        token = await services.accounts.change_password(login_token(request), old, new, keep=keep)
    except (UserError, NotAllowed, Throttled) as refused:
        field = "old" if isinstance(refused, NotAllowed) else "new" if isinstance(refused, UserError) else "password"
        return await _page(request, services, view, Errors(**{field: refused.message}), _status(refused), unticked=keep)
    answer = redirect(request, "/account#password", f"Password changed.{' What was ticked has ended.' if ends else ''}")
    set_login(request, answer, token)
    return answer


@router.post("/account/sign-out")
async def sign_out(request: Request, services: Services, view: CurrentLogin) -> Response:
    """End all that lets somebody in as me, but this login."""
    token = await services.accounts.sign_out_everywhere(login_token(request))
    answer = redirect(request, "/account#logins", "Everything else was signed out and ended.")
    set_login(request, answer, token)
    return answer


@router.post("/account/logins/{login_id}/end")
async def end_login(request: Request, services: Services, view: CurrentLogin, login_id: str) -> Response:
    """End one of my logins."""
    await services.accounts.revoke(view.user, login_id)
    return redirect(request, "/login" if login_id == view.login_id else "/account#logins", "Logged out.")


@router.post("/account/grants/{grant_id}/revoke")
async def revoke_grant(request: Request, services: Services, view: CurrentLogin, grant_id: str) -> Response:
    """Take back what I allowed for a whole conversation."""
    await services.approvals.revoke(view.user, grant_id)
    return redirect(request, "/account#grants", "Revoked. You will be asked again.")


@router.get("/account/delete")
async def ask_delete(request: Request, services: Services, view: CurrentLogin) -> Response:
    """Really, with all of it?"""
    return await _deletion(request, services, view)


@router.post("/account/delete")
async def delete(
    request: Request, services: Services, view: CurrentLogin, name: Text = "", password: Text = ""
) -> Response:
    """Delete my account with all that is mine."""
    try:
        await services.accounts.confirm(login_token(request), password)
        await services.deletions.delete(view.user, view.user.id, name)
    except (UserError, NotAllowed, Throttled) as refused:
        return await _deletion(request, services, view, refused.message, refused.status)
    answer = redirect(request, "/login", "Your account and everything in it was deleted.")
    clear_login(request, answer)
    return answer


async def _deletion(
    request: Request, services: Services, view: CurrentLogin, error: str = "", status: int = 200
) -> Response:
    context = DeletionContext(
        frame=await frame_of(request, services, view.user, here="/account"),
        name=view.user.name,
        action="/account/delete",
        back="/account",
        needs_password=True,
        error=error,
    )
    return respond(request, "account_delete.html", context, status=status)


async def _page(
    request: Request,
    services: Services,
    view: CurrentLogin,
    errors: Errors = Errors(),
    status: int = 200,
    *,
    persona: str | None = None,
    time_zone: str | None = None,
    rounds: str | None = None,
    unticked: Collection[str] = (),
) -> Response:
    kept = await services.preferences.persona(view.user)
    chosen = await services.preferences.get(view.user)
    roles = await services.role_defaults.all(view.user)
    context = AccountContext(
        frame=await frame_of(request, services, view.user, here="/account"),
        chosen=chosen,
        origins=await services.preferences.origins(view.user),
        zones=places(),
        time_zone=view.user.time_zone if time_zone is None else time_zone,
        rounds=str(chosen.max_rounds or "") if rounds is None else rounds,
        role_names=[(one.name, one.name) for one in roles],
        roles=roles,
        removed=await services.role_library.removed(view.user),
        default_persona=PERSONA,
        persona=kept.text if persona is None else persona,
        persona_version=kept.version,
        logins=await services.accounts.logins(view.user),
        login_id=view.login_id,
        credentials=[
            one for one in await services.accounts.credentials(view.user) if one.key != f"login:{view.login_id}"
        ],
        unticked=unticked,
        became_outside=await services.api_tokens.became_outside(view.user),
        grants=await services.approvals.grants(view.user),
        shares_words=await services.learning.shares(view.user),
        errors=errors,
    )
    return respond(request, "account.html", context, status=status)


def _status(refused: CortexError) -> int:
    return 422 if isinstance(refused, NotAllowed) else refused.status
