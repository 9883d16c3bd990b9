"""My settings: the page's look, what a new chat starts with, the persona, the password, the logins."""

from collections.abc import Collection, Sequence

from fastapi.responses import Response
from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import Conflict, CortexError, NotAllowed, Throttled, UserError
from cortex.services.accounts.accounts import LoginRow
from cortex.services.accounts.credentials import Credential
from cortex.services.chat.composer import FOR_WORK
from cortex.services.roles.preferences import Origin, Preferences
from cortex.services.roles.roles import PERSONA
from cortex.services.roles.settings import RoleSettings
from cortex.services.turns.approvals import GrantRow
from cortex.services.zones import places
from web.bodies import TEXT_BYTES, takes
from web.deps import Number, Text, Texts
from web.render import MORE, Context, DeletionContext, NavEntry, address, described
from web.routes import PageRouter
from web.security import clear_login, login_token, set_login
from web.stretch import Stretch, cut
from web.visit import UserVisit, Visit
from web.words import role_title

router = PageRouter()
NAV = NavEntry(
    title="Account",
    href="/account",
    icon="user",
    order=48,
    under=MORE,
    about="Theme, time zone, password, roles and where you are logged in.",
)
ENDS = 300  # of one form, whole: what is ticked does not travel between pages; two fields each, of `bodies.FIELDS`


class Errors(Struct, frozen=True, kw_only=True):
    """Why a form of this page was refused, by form or field."""

    preferences: str = ""
    time_zone: str = ""
    start: str = ""
    max_rounds: str = ""
    persona: str = ""
    old: str = ""
    new: str = ""
    password: str = ""


class AccountContext(Context, frozen=True, kw_only=True):
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
    logins: Stretch[LoginRow] = described("where the person is logged in, latest first")
    login_id: str = described("the login of this very browser")
    credentials: Sequence[Credential] = described("what lets somebody in as this person besides this login")
    unlisted: int = described("how many more of these there are")
    unticked: Collection[str] = described("keys of those that are to stay when the password changes", default=())
    became_outside: bool = described("whether to say that text of older tokens counts as external content now")
    grants: Stretch[GrantRow] = described("what was allowed for a whole conversation and still holds")
    shares_words: bool = described("whether admins may read messages of this person that lacked a tool")
    errors: Errors = described("what was refused", default=Errors())


@router.get("/account")
async def show(visit: UserVisit, logins: Number = 0, grants: Number = 0) -> Response:
    """Everything that is mine to set; of long lists the rows from these on."""
    return await visit.show("account.html", await _settings(visit, logins=logins, grants=grants))


@router.post("/account/preferences")
async def save_preferences(
    visit: UserVisit, theme: Text = "", density: Text = "", keys: Text = "", engine: Text = "", time_zone: Text = ""
) -> Response:
    """Return how the page looks and behaves; an empty value returns to the default."""
    zone = time_zone.strip()
    try:
        if zone != visit.user.time_zone:
            await visit.services.accounts.set_time_zone(visit.user, zone)
        look = {"theme": theme, "density": density, "keys": keys, "engine": engine}
        await visit.services.preferences.change(visit.user, look)
    except UserError as refused:
        is_zone = refused.field == "time_zone"
        errors = Errors(time_zone=refused.message) if is_zone else Errors(preferences=refused.message)
        return await _refused(visit, replace(await _settings(visit), errors=errors, time_zone=time_zone))
    return visit.redirect("/account", "Saved.")


@router.post("/account/words")
async def save_words(visit: UserVisit, shares: Text = "") -> Response:
    """Tell whether admins may read messages that lacked a tool."""
    await visit.services.learning.share(visit.user, is_shared=bool(shares))
    return visit.redirect("/account#words", "Saved.")


@router.post("/account/start")
async def save_start(visit: UserVisit, role: Text = "", mode: Text = "", max_rounds: Text = "") -> Response:
    """Return what a new chat starts with; an empty value returns to the default."""
    values = {"role": role, "mode": mode, "max_rounds": max_rounds}
    try:
        await visit.services.preferences.change(visit.user, values, roles=await visit.services.roles.names(visit.user))
    except UserError as refused:
        is_rounds = refused.field == "max_rounds"
        errors = Errors(max_rounds=refused.message) if is_rounds else Errors(start=refused.message)
        return await _refused(visit, replace(await _settings(visit), errors=errors, rounds=max_rounds))
    return visit.redirect("/account#start", "Saved.")


@router.post("/account/persona")
@takes(TEXT_BYTES)
async def save_persona(visit: UserVisit, persona: Text = "", version: Text = "") -> Response:
    """Keep it for the next message."""
    try:
        await visit.services.preferences.save_persona(visit.user, persona, version)
    except (UserError, Conflict) as refused:
        errors = Errors(persona=refused.message)
        return await _refused(visit, replace(await _settings(visit), errors=errors, persona=persona), refused.status)
    return visit.redirect("/account#persona", "Saved.")


@router.post("/account/password")
async def change_password(
    visit: UserVisit, old: Text = "", new: Text = "", listed: Texts = None, ends: Texts = None
) -> Response:
    """Another password; what lets somebody in as this person ends, but what was unticked."""
    keep = {*(listed or ())} - {*(ends or ())}  # what came to be behind the page ends too
    try:
        token = await visit.services.accounts.change_password(login_token(visit.request), old, new, keep=keep)
    except (UserError, NotAllowed, Throttled) as refused:
        field = "old" if isinstance(refused, NotAllowed) else "new" if isinstance(refused, UserError) else "password"
        errors = Errors(**{field: refused.message})
        return await _refused(visit, replace(await _settings(visit), errors=errors, unticked=keep), _status(refused))
    answer = visit.redirect("/account#password", f"Password changed.{' What was ticked has ended.' if ends else ''}")
    set_login(visit.request, answer, token)
    return answer


@router.post("/account/sign-out")
async def sign_out(visit: UserVisit) -> Response:
    """End all that lets somebody in as me, but this login."""
    token = await visit.services.accounts.sign_out_everywhere(login_token(visit.request))
    answer = visit.redirect("/account#logins", "Everything else was signed out and ended.")
    set_login(visit.request, answer, token)
    return answer


@router.post("/account/logins/{login_id}/end")
async def end_login(visit: UserVisit, login_id: str) -> Response:
    """End one of my logins."""
    await visit.services.accounts.revoke(visit.user, login_id)
    return visit.redirect("/login" if login_id == visit.login.login_id else "/account#logins", "Logged out.")


@router.post("/account/grants/{grant_id}/revoke")
async def revoke_grant(visit: UserVisit, grant_id: str) -> Response:
    """Take back what I allowed for a whole conversation."""
    await visit.services.approvals.revoke(visit.user, grant_id)
    return visit.redirect("/account#grants", "Revoked. You will be asked again.")


@router.get("/account/delete")
async def ask_delete(visit: UserVisit) -> Response:
    """Really, with all of it?"""
    return await _deletion(visit)


@router.post("/account/delete")
async def delete(visit: UserVisit, name: Text = "", password: Text = "") -> Response:
    """Delete my account with all that is mine."""
    try:
        await visit.services.accounts.confirm(login_token(visit.request), password)
        await visit.services.deletions.delete(visit.user, visit.user.id, name)
    except (UserError, NotAllowed, Throttled) as refused:
        return await _deletion(visit, refused)
    answer = visit.redirect("/login", "Your account and everything in it was deleted.")
    clear_login(visit.request, answer)
    return answer


async def _deletion(visit: Visit, refused: CortexError | None = None) -> Response:
    context = DeletionContext(
        name=visit.user.name,
        action="/account/delete",
        back="/account",
        needs_password=True,
    )
    return await visit.show("account_delete.html", context, refused=refused)


async def _settings(visit: Visit, **starts: int) -> AccountContext:
    def place(**other: int) -> str:
        return address("/account", **{**starts, **other})

    kept = await visit.services.preferences.persona(visit.user)
    chosen = await visit.services.preferences.get(visit.user)
    roles = await visit.services.role_defaults.all(visit.user)
    others = [
        one
        for one in await visit.services.accounts.credentials(visit.user)
        if one.key != f"login:{visit.login.login_id}"
    ]
    others.sort(key=lambda one: one.kind == "login")  # they come last: many of one are likeliest, and soonest made anew
    logins, grants = await visit.services.accounts.logins(visit.user), await visit.services.approvals.grants(visit.user)
    return AccountContext(
        chosen=chosen,
        origins=await visit.services.preferences.origins(visit.user),
        zones=places(),
        time_zone=visit.user.time_zone,
        rounds=str(chosen.max_rounds or ""),
        role_names=[
            (one.name, role_title(one.name)) for one in roles if visit.user.is_admin or one.name not in FOR_WORK
        ],
        roles=roles,
        removed=await visit.services.role_library.removed(visit.user),
        default_persona=PERSONA,
        persona=kept.text,
        persona_version=kept.version,
        logins=cut(logins, starts.get("logins", 0), place, by="logins", at="logins"),
        login_id=visit.login.login_id,
        credentials=others[:ENDS],
        unlisted=len(others[ENDS:]),
        became_outside=await visit.services.api_tokens.became_outside(visit.user),
        grants=cut(grants, starts.get("grants", 0), place, by="grants", at="grants"),
        shares_words=await visit.services.learning.shares(visit.user),
    )


async def _refused(visit: Visit, context: AccountContext, status: int = 422) -> Response:
    return await visit.show("account.html", context, status=status)


def _status(refused: CortexError) -> int:
    return 422 if isinstance(refused, NotAllowed) else refused.status
