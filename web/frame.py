"""Gathers what stands around a page: sidebar, theme, shortcuts. Called once for a page, by `web/visit.py`.

No rule of its own: the conversations come grouped from their service, the preferences from theirs.
"""

from collections.abc import Mapping, Sequence

from fastapi import Request
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.settings import Settings
from cortex.base.user import User
from cortex.services.chat.conversations import DayGroup
from web.figures import clock
from web.render import Frame, NavEntry, SideGroup, SideItem, zone_of
from web.toast import take

CHAT = NavEntry(title="Chat", href="/c", icon="chat", order=0)  # the newest one
TABS = ("/today", CHAT.href, "/tasks", "/calendar", "/more")


async def frame_of(
    request: Request,
    services: Cortex,
    user: User,
    *,
    here: str = "",
    conversation_id: str = "",
) -> Frame:
    """The frame of a logged-in user's page. `here`: the address of the page, or one below it; "" opens none."""
    nav = await entries_for(request, services, user)
    below = [entry for entry in nav if f"{here}/".startswith(f"{entry.href}/")]
    open_page = max(below, key=lambda entry: len(entry.href), default=None)
    by_address = {entry.href: entry for entry in nav}
    chosen = await services.preferences.get(user)
    warnings = (
        lasting_warning(services.settings),
        _trial(services, user, request.url.path),
        *await services.doctor.slips(user),
    )
    unread = await services.notices.unread(user.id)
    status = await status_frame(services, user)
    return replace(
        status,
        theme=chosen.theme,
        density=chosen.density,
        text_size=chosen.text_size,
        follows=chosen.follows,
        keys=chosen.keys,
        here=open_page.href if open_page else here,
        path=request.url.path,
        nav=tuple(entry for entry in nav if not entry.under),
        up=by_address.get(open_page.under) if open_page else None,
        top=_top(open_page, by_address),
        tabs=tuple(
            CHAT if href == CHAT.href else by_address[href] for href in TABS if href in (CHAT.href, *by_address)
        ),
        conversation_id=conversation_id,
        unread=unread,
        is_news=bool(unread) and await services.notices.is_news(user.id, request.url.path),
        warning=" ".join(filter(None, warnings)),
        halts=tuple(await services.stop_all.shown(user)),
        toast=take(request),
    )


async def work_frame(services: Cortex, user: User) -> Frame:
    """A frame with no more than the person's conversations: which of them work, and which wait."""
    return Frame(
        user=user,
        groups=side_groups(await services.conversations.list(user)),
        waiting=tuple(dict.fromkeys(one.conversation_id for one in await services.approvals.pending(user))),
    )


async def status_frame(services: Cortex, user: User) -> Frame:
    """A frame with no more than the word near the person's name is made of."""
    is_well = await services.doctor.is_well() and not await services.doctor.failing_model(user)
    return replace(
        await work_frame(services, user),
        is_well=is_well,
        first_steps=await services.first_steps.left(user) if is_well else None,
    )


def lasting_warning(settings: Settings) -> str:
    """Return what stands in red above every page, or ""."""
    if settings.allow_plain_http == "lan" and not settings.is_loopback and not settings.public_url.startswith("https"):
        return "This page is served without https: whoever can listen on this network can read passwords and answers."
    return ""


def _top(entry: NavEntry | None, by_address: Mapping[str, NavEntry]) -> str:
    """Return the address of the sidebar's line by whose cards this page is reached."""
    while entry and entry.under:
        entry = by_address.get(entry.under)
    return entry.href if entry else ""


async def entries_for(request: Request, services: Cortex, user: User) -> tuple[NavEntry, ...]:
    """All pages that this user may open and links lead to, in order."""
    nav: tuple[NavEntry, ...] = getattr(request.app.state, "nav", ())
    ports = (await services.tool_settings.in_force()).access.ports(user)
    return tuple(entry for entry in nav if _is_shown(entry, user, ports))


def _trial(services: Cortex, user: User, path: str) -> str:
    """Remind an admin of settings on trial on pages that have no button to keep them, perhaps at the new address."""
    ends = services.server_settings.trial_ends_at
    if ends is None or not user.is_admin or path.startswith(("/start", "/admin/settings")):
        return ""
    at = clock(ends, zone_of(user))
    return f"New settings are on trial until {at}: keep them in Settings (Admin), or they go back."


def _is_shown(entry: NavEntry, user: User, ports: frozenset[str]) -> bool:
    return (user.is_admin or not entry.is_admin_only) and (not entry.port or entry.port in ports)


def side_groups(groups: Sequence[DayGroup]) -> tuple[SideGroup, ...]:
    """The service's day groups as the sidebar shows them."""
    return tuple(
        SideGroup(
            label=group.label,
            items=tuple(
                SideItem(id=c.id, title=c.title, running_turn=c.running_turn, source=c.source, pinned=c.is_pinned)
                for c in group.conversations
            ),
        )
        for group in groups
    )
