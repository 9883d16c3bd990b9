"""My account in sections, an address each: me, the look, chats, notifications, keys and apps, my data.

How I sign in is in `sign_in.py`. What is changed saves itself: with the script its section comes back with *Saved*,
without it a button leads back to the section.
"""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Form
from fastapi.responses import Response
from msgspec.structs import replace
from pydantic import BaseModel

from cortex.base.errors import Conflict, UserError
from cortex.services.chat.composer import FOR_WORK
from cortex.services.roles.preferences import Origin, Preferences
from cortex.services.roles.roles import PERSONA
from cortex.services.roles.settings import RoleSettings
from cortex.services.turns.approvals import GrantRow
from cortex.services.zones import places
from web.bodies import TEXT_BYTES, takes
from web.chat_view import back_to
from web.deps import Number, Text
from web.errors import page_in_sight
from web.render import MORE, NavEntry, address, described
from web.routes import PageRouter
from web.sections import HERE, ROWS, SectionContext, saved, shown
from web.stretch import Stretch, cut
from web.visit import UserVisit, Visit
from web.words import role_title

router = PageRouter()
NAV = NavEntry(
    title="Account",
    href=HERE,
    icon="user",
    order=48,
    under=MORE,
    about="Theme, time zone, password, roles and where you are logged in.",
)


class YouContext(SectionContext, frozen=True, kw_only=True):
    """Me, as I am here."""

    zones: Sequence[str] = described("the time zones there are, to choose from while typing")
    time_zone: str = described("the time zone as typed or as kept")


class LookContext(SectionContext, frozen=True, kw_only=True):
    """The look of the pages."""

    chosen: Preferences = described("the preferences in force")


class NewChatsContext(SectionContext, frozen=True, kw_only=True):
    """The start of a new chat, and how Cortex talks to me."""

    chosen: Preferences = described("the preferences in force")
    origins: dict[str, Origin] = described("name -> default or yours")
    rounds: str = described("the rounds of a new chat, as typed or as kept")
    role_names: Sequence[tuple[str, str]] = described("roles to choose from: value, words")
    roles: int = described("how many roles there are")
    default_persona: str = described("the words in force while the person has none of their own")
    persona: str = described("the person's own persona, empty for the shipped one")
    persona_version: str = described("its tag, given back when saving")


class OwnRolesContext(SectionContext, frozen=True, kw_only=True):
    """The roles, with what holds for each."""

    roles: Sequence[RoleSettings] = described("the roles with what holds for each")
    removed: Sequence[str] = described("roles that were deleted lately and can be brought back")


class ToldContext(SectionContext, frozen=True, kw_only=True):
    """The ways I am notified, in short."""

    quiet: str = described("quiet hours, such as 22:00-07:00, empty for none")
    devices: int = described("how many devices take push")
    channels: Sequence[str] = described("what the ways are called that lead to the person")


class KeysContext(SectionContext, frozen=True, kw_only=True):
    """All that acts in my name: tokens, models of my own, what I allowed."""

    tokens: int = described("how many tokens there are")
    models: int = described("how many models the person set up")
    became_outside: bool = described("whether to say that text of older tokens counts as external content now")
    grants: Stretch[GrantRow] = described("what was allowed for a whole conversation and still holds")


class DataContext(SectionContext, frozen=True, kw_only=True):
    """All that is kept of me, in and out."""

    shares_words: bool = described("whether admins may read messages of this person that lacked a tool")


class LookForm(BaseModel):
    """The look as its form sends it; what is not ticked is not there."""

    theme: str = ""
    density: str = ""
    text_size: str = ""
    first_day: str = ""
    keys: str = ""
    engine: str = ""
    follows: str = ""


@router.get(HERE)
async def show(visit: UserVisit) -> Response:
    """The sections; beside their list, where there is room, the first of them."""
    return await shown(visit, replace(_you(visit), is_list=True))


@router.get(HERE + "/you")
async def show_you(visit: UserVisit) -> Response:
    """Me, as I am here."""
    return await shown(visit, _you(visit))


@router.post(HERE + "/you")
async def save_you(visit: UserVisit, time_zone: Text = "") -> Response:
    """Take another time zone."""
    try:
        await visit.services.accounts.set_time_zone(visit.user, time_zone.strip())
    except UserError as refused:
        return await shown(visit, replace(_you(visit), time_zone=time_zone), refused=refused)
    named = await visit.services.accounts.user(visit.user.id)
    return await saved(visit, replace(_you(visit), time_zone=named.time_zone))


@router.get(HERE + "/look")
async def show_look(visit: UserVisit) -> Response:
    """The look of the pages."""
    return await shown(visit, await _look(visit))


@router.post(HERE + "/look")
async def save_look(visit: UserVisit, look: Annotated[LookForm, Form()]) -> Response:
    """Return how the page looks and behaves; an empty value returns to the default."""
    try:
        await visit.services.preferences.change(visit.user, look.model_dump())
    except UserError as refused:
        return await shown(visit, await _look(visit), refused=refused)
    return await saved(visit, await _look(visit))


@router.post(HERE + "/engine")
async def show_engine(visit: UserVisit, on: Text = "") -> Response:
    """Show tools, tokens and rounds under answers, or no more."""
    await visit.services.preferences.change(visit.user, {"engine": on})
    words = "Tools, tokens, rounds and price stand under each answer now." if on else "They are behind why again."
    return visit.redirect(back_to(page_in_sight(visit.request, is_htmx=False)), words)


@router.get(HERE + "/chats")
async def show_chats(visit: UserVisit) -> Response:
    """The start of a new chat, and how Cortex talks to me."""
    return await shown(visit, await _chats(visit))


@router.post(HERE + "/chats")
async def save_chats(visit: UserVisit, role: Text = "", mode: Text = "", max_rounds: Text = "") -> Response:
    """Return what a new chat starts with; an empty value returns to the default."""
    values = {"role": role, "mode": mode, "max_rounds": max_rounds}
    try:
        await visit.services.preferences.change(visit.user, values, roles=await visit.services.roles.names(visit.user))
    except UserError as refused:
        return await shown(visit, replace(await _chats(visit), rounds=max_rounds), refused=refused)
    return await saved(visit, await _chats(visit))


@router.post(HERE + "/persona")
@takes(TEXT_BYTES)
async def save_persona(visit: UserVisit, persona: Text = "", version: Text = "") -> Response:
    """Keep it for the next message."""
    try:
        await visit.services.preferences.save_persona(visit.user, persona, version)
    except (UserError, Conflict) as refused:
        context = replace(await _chats(visit), persona=persona, error_field="persona")
        return await shown(visit, context, refused=refused)
    return await saved(visit, await _chats(visit))


@router.get(HERE + "/roles")
async def show_roles(visit: UserVisit) -> Response:
    """Every role with what holds for me."""
    context = OwnRolesContext(
        section="chats",
        roles=await visit.services.role_defaults.all(visit.user),
        removed=await visit.services.role_library.removed(visit.user),
    )
    return await visit.show("account_roles.html", context, block="section")


@router.get(HERE + "/notifications")
async def show_notifications(visit: UserVisit) -> Response:
    """The ways I am notified, and the ways to change it."""
    choices, means = (
        await visit.services.notification_preferences.choices_of(visit.user.id),
        await visit.services.notices.means(visit.user.id),
    )
    context = ToldContext(
        section="notifications",
        quiet=choices.quiet,
        devices=len(await visit.services.devices.list(visit.user)),
        channels=[kind.label for kind in means.channels.values()],
    )
    return await shown(visit, context)


@router.get(HERE + "/keys")
async def show_keys(visit: UserVisit, grants: Number = 0) -> Response:
    """All that acts in my name; of the permissions those from `grants` on."""
    kept = await visit.services.approvals.grants(visit.user)
    registry = await visit.services.models.shown(visit.user)
    context = KeysContext(
        section="keys",
        tokens=len(await visit.services.api_tokens.list(visit.user)),
        models=len(registry.own),
        became_outside=await visit.services.api_tokens.became_outside(visit.user),
        grants=cut(kept, grants, lambda **at: address(HERE + "/keys", **at), most=ROWS, by="grants", at="grants"),
    )
    return await shown(visit, context)


@router.post(HERE + "/grants/{grant_id}/revoke")
async def revoke_grant(visit: UserVisit, grant_id: str) -> Response:
    """Take back what I allowed for a whole conversation."""
    await visit.services.approvals.revoke(visit.user, grant_id)
    return visit.redirect(HERE + "/keys#grants", "Revoked. You will be asked again.")


@router.get(HERE + "/data")
async def show_data(visit: UserVisit) -> Response:
    """All that is kept of me, in and out."""
    return await shown(visit, await _data(visit))


@router.post(HERE + "/data")
async def save_data(visit: UserVisit, shares: Text = "") -> Response:
    """Tell whether admins may read messages that lacked a tool."""
    await visit.services.learning.share(visit.user, is_shared=bool(shares))
    return await saved(visit, await _data(visit))


def _you(visit: Visit) -> YouContext:
    return YouContext(section="you", zones=places(), time_zone=visit.user.time_zone)


async def _look(visit: Visit) -> LookContext:
    return LookContext(section="look", chosen=await visit.services.preferences.get(visit.user))


async def _chats(visit: Visit) -> NewChatsContext:
    kept = await visit.services.preferences.persona(visit.user)
    chosen = await visit.services.preferences.get(visit.user)
    roles = await visit.services.roles.names(visit.user)
    return NewChatsContext(
        section="chats",
        chosen=chosen,
        origins=await visit.services.preferences.origins(visit.user),
        rounds=str(chosen.max_rounds or ""),
        role_names=[(one, role_title(one)) for one in roles if visit.user.is_admin or one not in FOR_WORK],
        roles=len(roles),
        default_persona=PERSONA,
        persona=kept.text,
        persona_version=kept.version,
    )


async def _data(visit: Visit) -> DataContext:
    return DataContext(section="data", shares_words=await visit.services.learning.shares(visit.user))
