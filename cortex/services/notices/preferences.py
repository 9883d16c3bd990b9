"""The ways a person wants to be notified: quiet hours, muted kinds, channels for each kind, digest, content outside.

Kept in the preferences; where the channels lead to is `addresses.py`. `ways` turns it into deliveries and is pure.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any, cast, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.errors import UserError
from cortex.base.numbers import whole_number
from cortex.base.record import as_dict
from cortex.base.user import User
from cortex.base.zone import local
from cortex.notify import ChannelKind
from cortex.ports.channels import ChannelName, NoticeKind, Urgency
from cortex.ports.engine import Hub
from cortex.schedule.policies import quiet_hours, quiet_until
from cortex.services.notices.channels import Channels
from cortex.services.notifier import notices_key
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.notices import NoticesRepository, NoticeValues, Way
from cortex.storage.preferences import PreferencesRepository

KEY = "reach"
KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)


class Choices(Struct, frozen=True, kw_only=True):
    """The choices that are in force for a person.

    `quiet`: such as 22:00-07:00, in the person's zone, "" for none. `muted`: kinds that stand in the list, go nowhere
    and raise no number. `channels`: for the kinds where it was chosen; the
    others go their usual ways. `digest_hour`: what is of low urgency waits until then, None sends it at once.
    `content`: channels on which title and text may stand; on the others stands only that there is something.
    """

    quiet: str = ""
    muted: tuple[NoticeKind, ...] = ()
    channels: Mapping[NoticeKind, tuple[ChannelName, ...]] = field(default_factory=dict)
    digest_hour: int | None = None
    content: tuple[ChannelName, ...] = ()
    time_zone: str = "UTC"

    def quiet_until(self, at: datetime) -> datetime | None:
        """Return when the quiet that holds at this moment ends; None when it is not quiet."""
        return quiet_until(quiet_hours(self.quiet, self.time_zone), at)

    def last_digest(self, at: datetime) -> datetime | None:
        """The latest moment up to this one at which a digest was due; None for who wants none."""
        if self.digest_hour is None:
            return None
        there = local(at, self.time_zone)
        today = datetime.combine(there.date(), time(self.digest_hour), there.tzinfo).astimezone(UTC)
        if today <= at:
            return today
        yesterday = there.date() - timedelta(days=1)
        return datetime.combine(yesterday, time(self.digest_hour), there.tzinfo).astimezone(UTC)


class Means(Struct, frozen=True, kw_only=True):
    """By what a person can be notified now: channels that lead somewhere, as pages list them, and push devices."""

    channels: Mapping[ChannelName, ChannelKind] = field(default_factory=dict)
    devices: tuple[str, ...] = ()


def ways(
    values: NoticeValues, preferences: Choices, means: Means, at: datetime, *, only: Sequence[ChannelName] | None = None
) -> tuple[Way, ...]:
    """The deliveries of a notice. `only`: the caller's channels in place of the person's; mutes and quiet hold.

    What is of low urgency goes nowhere by itself where a digest is wanted. Quiet hours hold back all but what is
    important or urgent and what would be over before they are.
    """
    waits_for_digest = values.urgency == "low" and preferences.digest_hour is not None and only is None
    if values.kind in preferences.muted or waits_for_digest:
        return ()
    wanted = preferences.channels.get(values.kind) if only is None else only
    names = (
        usual(values.kind, values.urgency, means)
        if wanted is None
        else [name for name in means.channels if name in wanted]
    )
    quiet = held_until(values, preferences, at)
    found: list[Way] = []
    for name in names:
        devices = means.devices if means.channels[name].reaches_devices else ("",)
        found += [Way(channel=name, device_id=device, not_before=quiet) for device in devices]
    return tuple(found)


def spare(
    values: NoticeValues, preferences: Choices, means: Means, at: datetime, tried: Collection[ChannelName]
) -> tuple[Way, ...]:
    """The ways by one more channel, for a notice that arrived by none of those that were `tried`; often ().

    Taken are only channels on which the person wants any notices, and none for a muted kind.
    """
    kinds = [kind for kind in KINDS if kind not in preferences.muted]
    wanted = {name for kind in kinds for name in preferences.channels.get(kind, means.channels)}
    left = [name for name in means.channels if name in wanted and name not in tried]
    return ways(values, preferences, means, at, only=left[:1])


def held_until(values: NoticeValues, preferences: Choices, at: datetime) -> datetime | None:
    """Until when quiet hours hold this back; None when they don't."""
    quiet = None if values.urgency in ("important", "high") else preferences.quiet_until(at)
    is_over_first = quiet is not None and values.expires_at is not None and values.expires_at <= quiet
    return None if is_over_first else quiet


def usual(kind: NoticeKind, urgency: Urgency, means: Means) -> Sequence[ChannelName]:
    """Return where a notice goes when nothing was chosen: everywhere but to channels that have what is urgent alone.

    Those get digests too, and all where there is no other way.
    """
    quick = [name for name, one in means.channels.items() if not one.is_for_urgent]
    return tuple(means.channels) if kind == "digest" or urgency == "high" or not quick else quick


class NotificationPreferences:
    """Reads and writes what people chose."""

    def __init__(self, db: Database, hub: Hub, channels: Channels) -> None:
        self._db = db
        self._hub = hub
        self._channels = channels

    async def choices_of(self, user_id: str) -> Choices:
        """Return what is in force for this person. NotFound without such an account."""
        zone = (await self._db.repository(AccountsRepository).get(user_id)).time_zone
        kept: dict[str, Any] = await self._db.repository(PreferencesRepository, user_id).get(
            KEY, {}
        )  # Any: JSON that `change` wrote
        named = {name: tuple(kept.get(name, ())) for name in ("muted", "content")}
        channels = {kind: tuple(names) for kind, names in kept.get("channels", {}).items()}
        return Choices(
            quiet=kept.get("quiet", ""),
            muted=cast("tuple[NoticeKind, ...]", named["muted"]),
            content=named["content"],
            channels=channels,
            digest_hour=kept.get("digest_hour"),
            time_zone=zone,
        )

    async def change(
        self,
        user: User,
        *,
        quiet: str | None = None,
        muted: Sequence[str] | None = None,
        channels: Mapping[str, Sequence[str]] | None = None,
        digest_hour: str | None = None,
        content: Sequence[str] | None = None,
    ) -> Choices:
        """Keep what a form says; None leaves as it is. UserError names the field that is wrong.

        `channels`: the kinds that are named; an empty list keeps them to the page. `digest_hour`: "" ends the digest.
        `muted`: what is unread of them counts as read.
        """
        before = preferences = await self.choices_of(user.id)
        if quiet is not None:
            preferences = replace(preferences, quiet=_quiet(quiet))
        if muted is not None:
            preferences = replace(preferences, muted=_kinds("muted", muted))
        if content is not None:
            preferences = replace(preferences, content=self._names("content", content, before))
        if channels is not None:
            kinds = _kinds("channels", list(channels))
            chosen = {kind: self._names("channels", channels[kind], before) for kind in kinds}
            preferences = replace(preferences, channels={**preferences.channels, **chosen})
        if digest_hour is not None:
            preferences = replace(preferences, digest_hour=_hour(digest_hour))
        kept = as_dict(preferences)
        del kept["time_zone"]
        async with self._db.transaction(user.id) as repository:
            await repository(PreferencesRepository).set(KEY, kept)
            fallen_silent = [kind for kind in preferences.muted if kind not in before.muted]
            if await repository(NoticesRepository).read_kinds(fallen_silent):
                self._hub.announce(notices_key(user.id))
        return preferences

    def _names(self, field_name: str, names: Sequence[str], before: Choices) -> tuple[ChannelName, ...]:
        """The channels of these names. One that was kept and is gone stays: its package may come back."""
        kept = {*before.content, *(name for chosen in before.channels.values() for name in chosen)}
        return _known(field_name, names, (*self._channels.kinds, *sorted(kept - self._channels.kinds.keys())))

    async def usual_again(self, user: User) -> None:
        """Forget what was chosen; addresses and devices stay."""
        await self._db.repository(PreferencesRepository, user.id).unset(KEY)


def _quiet(text: str) -> str:
    """The span as it is kept."""
    try:
        found = quiet_hours(text, "UTC")
    except UserError as error:
        raise UserError(error.message, field="quiet") from None
    return "" if found is None else f"{found.start:%H:%M}-{found.end:%H:%M}"


def _kinds(field_name: str, names: Sequence[str]) -> tuple[NoticeKind, ...]:
    return cast("tuple[NoticeKind, ...]", _known(field_name, names, KINDS))


def _known(field_name: str, names: Sequence[str], known: tuple[str, ...]) -> tuple[str, ...]:
    wrong = [name for name in names if name not in known]
    if wrong:
        raise UserError(f"There is no {wrong[0]!r}; choose from {', '.join(known)}.", field=field_name)
    return tuple(name for name in known if name in names)


def _hour(text: str) -> int | None:
    if not text.strip():
        return None
    hour = whole_number(text)
    if hour is None or hour > 23:
        raise UserError("The hour of the digest is a number from 0 to 23.", field="digest_hour")
    return hour
