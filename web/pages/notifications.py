"""Notifications: what you were told, how it went out, and the answers to it. `/notifications` and its live bell."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import cast, get_args
from urllib.parse import urlencode

from fastapi.responses import RedirectResponse, Response

from cortex.base.errors import UserError
from cortex.ports.channels import NoticeKind
from cortex.services.notices.notices import NoticeFilter, NoticeView
from cortex.services.reminders.reminders import SNOOZES
from web.deps import Number, Text
from web.live import LivePages
from web.render import Context, described, wants_fragment
from web.routes import PageRouter
from web.security import local_path
from web.sse import LiveStream
from web.visit import UserVisit

router = PageRouter()

KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)
IN_PANEL = 8


class NotificationsContext(Context, frozen=True, kw_only=True):
    """The list."""

    notices: Sequence[NoticeView] = described("this page's notices, the newest first, with their deliveries")
    kinds: Sequence[NoticeKind] = described("the kinds there are, to filter by")
    kind: str = described("the kind shown, empty for all")
    is_unread: bool = described("whether only unread ones are shown")
    unread: int = described("how many are unread, of every kind")
    muted: Sequence[NoticeKind] = described("the kinds that stand in the list alone, without a number on the bell")
    devices: dict[str, str] = described("push device's id -> its name")
    label_of: Callable[[str], str] = described("a channel's name in words")
    snoozes: dict[str, str] = described("for how long something can be put off: value, words")
    put_off: dict[str, datetime] = described("id of a reminder that was put off -> until when")
    upto: str = described("the moment of the newest one shown: 'all read' goes so far")
    here: str = described("this page's own address, for forms to come back to and to look again")
    newest: str = described("address of the first page, or empty there")
    older: str = described("address of the ones before, or empty")


class PanelContext(Context, frozen=True, kw_only=True):
    """The bell's panel."""

    notices: Sequence[NoticeView] = described("the newest notices")
    unread: int = described("how many are unread")
    upto: str = described("the moment of the newest one shown: 'all read' goes so far")


@router.get("/notifications")
async def show(visit: UserVisit, show: str = "", kind: str = "", before: str = "") -> Response:
    """All of them, or the unread ones, or one kind."""
    chosen = cast("tuple[NoticeKind, ...]", (kind,) if kind in KINDS else ())
    wanted = NoticeFilter(kinds=chosen, is_unread=show == "unread")
    found = await visit.services.notices.page(visit.user.id, wanted, before)

    def place(before: str) -> str:
        asked = {"show": "unread" if wanted.is_unread else "", "kind": "".join(chosen), "before": before}
        query = urlencode({name: value for name, value in asked.items() if value})
        return "/notifications" + (f"?{query}" if query else "")

    context = NotificationsContext(
        notices=found.notices,
        kinds=KINDS,
        kind="".join(chosen),
        is_unread=wanted.is_unread,
        unread=await visit.services.notices.unread(visit.user.id),
        muted=(await visit.services.notification_preferences.choices_of(visit.user.id)).muted,
        devices={one.id: one.name for one in await visit.services.devices.list(visit.user)},
        label_of=visit.services.channels.label,
        snoozes={str(value): words for value, words in SNOOZES.items()},
        put_off=await visit.services.reminders.put_off(visit.user),
        upto=found.notices[0].row.created_at.isoformat() if found.notices else "",
        here=place(before),
        newest=place("") if before else "",
        older=place(found.earlier) if found.earlier else "",
    )
    return await visit.show("notifications.html", context)


@router.get("/notifications/panel")
async def panel(visit: UserVisit) -> Response:
    """The newest of them for the bell's panel, a fragment; a page's visit is led to the list."""
    if not wants_fragment(visit.request):
        return RedirectResponse("/notifications", 303)
    found = (await visit.services.notices.page(visit.user.id, most=IN_PANEL)).notices
    context = PanelContext(
        notices=found,
        unread=await visit.services.notices.unread(visit.user.id),
        upto=found[0].row.created_at.isoformat() if found else "",
    )
    return await visit.show("notifications_panel.html", context, block="lines")


@router.get("/notifications/events")
async def events(visit: UserVisit, shown: Number = -1) -> Response:
    """The number on the bell, as it changes."""
    live: LivePages = visit.request.app.state.live
    return LiveStream(visit.services, visit.user, live.bell(visit.user, shown))


@router.post("/notifications/read")
async def read_all(visit: UserVisit, upto: Text = "", back: Text = "") -> Response:
    """Everything that was told until then counts as read."""
    try:
        moment = datetime.fromisoformat(upto)
    except ValueError as error:
        raise UserError("Choose until when.") from error
    if moment.tzinfo is None:
        raise UserError("Choose until when, with a time zone.")
    await visit.services.notices.read_all(visit.user.id, moment)
    return visit.redirect(_back(back))


@router.post("/notifications/seen")
async def seen(visit: UserVisit, path: Text = "", notice: Text = "") -> Response:
    """A browser shows the page at `path`, to which it perhaps came by a `notice`: what leads there is read."""
    await visit.services.notices.seen(visit.user.id, path, notice)
    return Response(status_code=204)


@router.post("/notifications/mute")
async def mute(visit: UserVisit, kind: Text = "", on: Text = "", back: Text = "") -> Response:
    """From now on this kind is told on the page only; or by every way again."""
    muted = [
        one for one in (await visit.services.notification_preferences.choices_of(visit.user.id)).muted if one != kind
    ]
    await visit.services.notification_preferences.change(visit.user, muted=[*muted, kind] if on else muted)
    told = "Muted: only shown in this list." if on else "Unmuted."
    return visit.redirect(_back(back), told)


@router.post("/notifications/deliveries/{delivery_id}/again")
async def send_again(visit: UserVisit, delivery_id: str, back: Text = "") -> Response:
    """Try a delivery that failed once more."""
    await visit.services.notices.send_again(visit.user.id, delivery_id)
    return visit.redirect(_back(back), "Sending again.")


@router.post("/notifications/{notice_id}/open")
async def open_it(visit: UserVisit, notice_id: str) -> Response:
    """It is seen, and on to what it is about."""
    notice = (await visit.services.notices.get(visit.user.id, notice_id)).row
    await visit.services.notices.seen(visit.user.id, notice.path, notice_id)
    return visit.redirect(local_path(notice.path))


@router.post("/notifications/{notice_id}/read")
async def read(visit: UserVisit, notice_id: str, back: Text = "") -> Response:
    """It is read."""
    await visit.services.notices.get(visit.user.id, notice_id)
    await visit.services.notices.read(visit.user.id, [notice_id])
    return visit.redirect(_back(back))


@router.post("/notifications/{notice_id}/ack")
async def acknowledge(visit: UserVisit, notice_id: str, back: Text = "") -> Response:
    """It is seen to: nothing more of it is sent."""
    await visit.services.notices.acknowledge(visit.user.id, notice_id)
    return visit.redirect(_back(back))


@router.post("/notifications/{notice_id}/snooze")
async def snooze(visit: UserVisit, notice_id: str, choice: Text = "10min", back: Text = "") -> Response:
    """Snoozed."""
    await visit.services.notices.snooze(visit.user.id, notice_id, choice)
    words = SNOOZES.get(choice, choice)  # type: ignore[call-overload]  # what the form said may be no choice at all
    return visit.redirect(_back(back), f"Snoozed: {words}.")


def _back(place: str) -> str:
    return local_path(place, "/notifications")
