"""Settings of notifications: quiet hours, digest, channels by kind, what a lock screen may show, addresses."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Form
from fastapi.responses import Response
from msgspec import Struct, field

from cortex.base.errors import UserError
from cortex.ports.channels import ChannelName, NoticeKind
from cortex.services.notices.addresses import ChannelView
from cortex.services.notices.devices import DeviceView
from cortex.services.notices.preferences import KINDS, Choices, usual
from web.deps import Text
from web.render import MORE, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit, UserVisit, Visit

router = PageRouter()
HERE = "/notifications/settings"
NAV = NavEntry(
    title="Notifications",
    href=HERE,
    icon="bell",
    order=40,
    under=MORE,
    about="What you are notified of, how and when.",
)

PUSH_KEYS = "/admin/push-keys"
Words = Annotated[list[str], Form()]
Ticked = Mapping[NoticeKind, tuple[ChannelName, ...]]


class FormOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a form of this page.

    `channel`: whose form, "" for the choices. `about`: the field that is wrong. `tested`: why a test did not go out, ""
    when it did. `secret`: one that was made, to be shown once.
    """

    channel: str = ""
    error: str = ""
    about: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    tested: str | None = None
    secret: str = ""


class SettingsContext(Context, frozen=True, kw_only=True):
    """The page."""

    choices: Choices = described("what the person chose")
    quiet: tuple[str, str] = described("quiet hours, from and to, as typed or kept; empty for none")
    kinds: Sequence[NoticeKind] = described("the kinds of notices")
    digest_hours: Sequence[tuple[str, str]] = described("the hours to choose from: value, words")
    open_channels: Mapping[ChannelName, str] = described("the channels that lead somewhere for this person, with words")
    ticked: Ticked = described("kind -> the ways it goes")
    addresses: Sequence[ChannelView] = described("the channels that take an address, and how they fare")
    has_devices: bool = described("whether a device takes push")
    failing: Sequence[DeviceView] = described("the devices whose newest push failed")
    said: FormOutcome = described("what a form came to", default=FormOutcome())


@router.get(HERE)
async def show(visit: UserVisit) -> Response:
    """All that can be set."""
    return await _page(visit, FormOutcome())


@router.post(HERE)
async def save(
    visit: UserVisit,
    quiet_from: Text = "",
    quiet_to: Text = "",
    digest_hour: Text = "",
    told: Words = [],  # noqa: B006  (FastAPI copies it)
    way: Words = [],  # noqa: B006  (FastAPI copies it)
    content: Words = [],  # noqa: B006  (FastAPI copies it)
) -> Response:
    """Keep the choices. `told`: kinds that go out at all; `way`: kind and channel, such as job.email."""
    try:
        start, end = (visit.services.reminders.read_clock(words, "quiet") for words in (quiet_from, quiet_to))
        quiet = f"{start}-{end}" if start or end else ""
        await visit.services.notification_preferences.change(
            visit.user,
            quiet=quiet,
            digest_hour=digest_hour,
            muted=[kind for kind in KINDS if kind not in told],
            content=content,
            channels=await _chosen(visit, way),
        )
    except UserError as refused:
        typed = {"quiet_from": quiet_from, "quiet_to": quiet_to}
        said = FormOutcome(error=refused.message, about=refused.field, typed=typed)
        return await _page(visit, said, 422)
    return visit.redirect(HERE, "Saved.")


@router.post(HERE + "/usual")
async def usual_again(visit: UserVisit) -> Response:
    """Forget the choices; addresses and devices stay."""
    await visit.services.notification_preferences.usual_again(visit.user)
    return visit.redirect(HERE, "Defaults restored.")


@router.post(HERE + "/address")
async def save_address(
    visit: UserVisit, channel: Text = "", address: Text = "", key: Text = "", secret: Text = ""
) -> Response:
    """Keep an address; a secret that was made for it is shown this once."""
    try:
        made = await visit.services.addresses.put(visit.user, channel, address, secret, key)
    except UserError as refused:
        typed = {"address": address, "key": key}
        said = FormOutcome(channel=channel, error=refused.message, about=refused.field, typed=typed)
        return await _page(visit, said, 422)
    if made:
        return await _page(visit, FormOutcome(channel=channel, secret=made))
    return visit.redirect(f"{HERE}#{channel}", "Saved. Send a test to check that it arrives.")


@router.post(HERE + "/test")
async def try_address(visit: UserVisit, channel: Text = "") -> Response:
    """Send a test there now, and say what came of it."""
    try:
        said = FormOutcome(channel=channel, tested=await visit.services.addresses.test(visit.user, channel))
    except UserError as refused:
        said = FormOutcome(channel=channel, error=refused.message, about=refused.field)
    return await _page(visit, said, 422 if said.error else 200)


@router.post(HERE + "/remove")
async def remove_address(visit: UserVisit, channel: Text = "") -> Response:
    """Forget an address."""
    await visit.services.addresses.remove(visit.user, channel)
    return visit.redirect(f"{HERE}#{channel}", "Removed.")


@router.get(PUSH_KEYS)
async def ask_for_new_keys(visit: ReauthedAdminVisit) -> Response:
    """Asks before push services know this server by another key."""
    return await visit.ask(
        title="Create a new push key?",
        text="Do this if somebody else may have read the key. Each device switches to the new key at its next visit. "
        "The two previous keys keep working until then; devices with older keys have to be added again. This cannot be "
        "undone.",
        action=PUSH_KEYS,
        words="Create key",
        back=f"{HERE}#web_push",
        here=HERE,
    )


@router.post(PUSH_KEYS)
async def make_new_keys(visit: ReauthedAdminVisit) -> Response:
    """Another key for everybody's push."""
    await visit.services.push_keys.rotate(visit.user)
    return visit.redirect(f"{HERE}#web_push", "New push key created. Devices switch to it at their next visit.")


async def _chosen(visit: Visit, ticked: Sequence[str]) -> dict[str, Sequence[str]]:
    """The kinds whose ways differ from the usual ones, or did before; what the form could not show stays."""
    choices, means = (
        await visit.services.notification_preferences.choices_of(visit.user.id),
        await visit.services.notices.means(visit.user.id),
    )
    found: dict[str, Sequence[str]] = {}
    for kind in KINDS:
        now = {name for name in means.channels if f"{kind}.{name}" in ticked}
        kept = choices.channels.get(kind)
        if kept is not None:
            found[kind] = sorted(now | (set(kept) - means.channels.keys()))
        elif now != set(usual(kind, "normal", means)):
            found[kind] = sorted(now)
    return found


async def _page(visit: Visit, said: FormOutcome, status: int = 200) -> Response:
    choices, means = (
        await visit.services.notification_preferences.choices_of(visit.user.id),
        await visit.services.notices.means(visit.user.id),
    )
    start, _, end = choices.quiet.partition("-")
    context = SettingsContext(
        choices=choices,
        quiet=(said.typed.get("quiet_from", start), said.typed.get("quiet_to", end)),
        kinds=KINDS,
        digest_hours=[(str(hour), f"{hour:02}:00") for hour in range(24)],
        open_channels={name: kind.label for name, kind in means.channels.items()},
        ticked={kind: choices.channels.get(kind, tuple(usual(kind, "normal", means))) for kind in KINDS},
        addresses=await visit.services.addresses.views(visit.user),
        has_devices=bool(means.devices),
        failing=[one for one in await visit.services.devices.list(visit.user) if one.state == "failing"],
        said=said,
    )
    return await visit.show("notification_settings.html", context, status=status)
