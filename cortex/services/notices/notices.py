"""Notifies people: a notice and its deliveries, written with what they are about; lists, acknowledging, snoozing.

Sending is `outbox.py`'s. Whoever notifies of something that it commits itself calls `prepare` before, the draft's
`write` inside its transaction and `wake` behind it; `notify` does all three.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.clock import Clock
from cortex.base.errors import UserError
from cortex.base.record import field_names
from cortex.ports.channels import ChannelName, NoticeKind, must_be_ours
from cortex.ports.engine import Hub
from cortex.services.notices.addresses import Addresses
from cortex.services.notices.preferences import Means, NotificationPreferences, ways
from cortex.services.notifier import PendingNotice, notice_id, notices_key, wake
from cortex.storage import notices as rows
from cortex.storage.db import Database
from cortex.storage.deliveries import DeliveriesRepository
from cortex.storage.deliveries import DeliveryRow as DeliveryRow
from cortex.storage.devices import DevicesRepository
from cortex.storage.notices import NoticeFilter as NoticeFilter
from cortex.storage.notices import NoticeRow as NoticeRow
from cortex.storage.notices import NoticeValues

TITLE_CHARACTERS = 200
TEXT_CHARACTERS = 4_000
PAGE = 50
SAY_NOTHING = ("", "/", "/notifications")  # pages where a notice leads for want of one of its own

Listener = Callable[[str, NoticeRow, str], Awaitable[None]]


class NoticeDraft(NoticeValues, frozen=True, kw_only=True):
    """A notice to be written for one person. `key`: of several under the same key one is written.

    `channels`: in place of what the person chose for this kind.
    """

    key: str
    channels: tuple[ChannelName, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a link to elsewhere."""
        must_be_ours(self.path)


class NoticeView(Struct, frozen=True, kw_only=True):
    """A notice with what became of its deliveries."""

    row: NoticeRow
    deliveries: tuple[DeliveryRow, ...]


class NoticePage(Struct, frozen=True, kw_only=True):
    """A stretch of notices, the newest first. `earlier`: pass it as `before_id` for the next stretch, "" at the end."""

    notices: tuple[NoticeView, ...]
    earlier: str


class Notices(Struct, frozen=True, kw_only=True):
    """The notices of people.

    `answered`: kind -> called as `(user_id, notice, choice)` before a notice of this kind counts as acknowledged.
    `choice`: "" for an acknowledgement, else for how long it is snoozed. What it raises goes to the person, and nothing
    is marked.
    """

    db: Database
    hub: Hub
    preferences: NotificationPreferences
    addresses: Addresses
    clock: Clock
    answered: Mapping[NoticeKind, Listener] = field(default_factory=dict)

    # --- notifying

    async def prepare(self, user_id: str, notice: NoticeDraft, *, without: str = "") -> PendingNotice:
        """The notice and its deliveries as the person's choices have them now; `write` it where it belongs.

        `without`: the id of a push device that is left out.
        """
        shared = {name: getattr(notice, name) for name in field_names(NoticeValues)}
        return await self.draft(user_id, notice.key, NoticeValues(**shared), notice.channels, without=without)

    async def draft(
        self,
        user_id: str,
        key: str,
        values: NoticeValues,
        channels: Sequence[ChannelName] | None = None,
        *,
        without: str = "",
    ) -> PendingNotice:
        """The same of values as they are kept: implements `Notifier`."""
        must_be_ours(values.path)
        title = _cut(" ".join(values.title.split()), TITLE_CHARACTERS)
        values = replace(values, title=title, text=_cut(values.text.strip(), TEXT_CHARACTERS))
        async with self.db.one_view():
            preferences, means = await self.preferences.choices_of(user_id), await self.means(user_id, without)
        found = ways(values, preferences, means, self.clock(), only=channels)
        is_muted = values.kind in preferences.muted
        return PendingNotice(id=notice_id(user_id, key), values=values, ways=found, is_muted=is_muted)

    async def notify(self, user_id: str, notice: NoticeDraft) -> str:
        """Write it now, by itself, and send it; the notice's id, also when it was written before."""
        draft = await self.prepare(user_id, notice)
        async with self.db.transaction(user_id) as repository:
            is_new = await draft.write(repository)
        if is_new:
            self.wake(user_id)
        return draft.id

    def wake(self, user_id: str = "") -> None:
        """Something new is committed: wake who sends, and this person's open pages."""
        wake(self.hub, user_id)

    async def means(self, user_id: str, without: str = "") -> Means:
        """By what this person can be notified now; nothing goes to a device whose login ended."""
        channels = self.addresses.channels
        pushes = {name for name, kind in channels.kinds.items() if kind.reaches_devices}
        rows = await self.db.repository(DevicesRepository, user_id).list()
        devices = tuple(row.id for row in rows if row.login_id is not None and row.id != without)
        usable = await self.addresses.named(user_id) | (pushes if devices else set())
        return Means(channels={name: kind for name, kind in channels.kinds.items() if name in usable}, devices=devices)

    # --- lists

    async def page(
        self, user_id: str, wanted: NoticeFilter | None = None, before_id: str = "", most: int = PAGE
    ) -> NoticePage:
        """A stretch of the list; NotFound when `before_id` is no notice of this user."""
        async with self.db.read_transaction(user_id) as repository:
            found = await repository(rows.NoticesRepository).list(wanted, before_id=before_id, limit=most + 1)
            shown = found[:most]
            sent = await repository(DeliveriesRepository).of_notices([row.id for row in shown])
        views = tuple(NoticeView(row=row, deliveries=sent[row.id]) for row in shown)
        return NoticePage(notices=views, earlier=shown[-1].id if len(found) > most else "")

    async def get(self, user_id: str, notice_id: str) -> NoticeView:
        """One of them; NotFound when it is absent or another user's."""
        row = await self._rows(user_id).get(notice_id)
        sent = await self.db.repository(DeliveriesRepository, user_id).of_notices([notice_id])
        return NoticeView(row=row, deliveries=sent[notice_id])

    async def unread(self, user_id: str) -> int:
        """The number on the badge."""
        return await self._rows(user_id).unread()

    async def is_news(self, user_id: str, path: str) -> bool:
        """Tell whether coming to this page is worth a call of `seen`."""
        return path not in SAY_NOTHING and await self._rows(user_id).is_news(path)

    async def changed(self, user_id: str, since: int, timeout_s: float) -> int:
        """Wait until something of this person's notices changed since the counter was `since`; the counter.

        -1 gives it at once. A higher one means that something may have changed, in whatever process.
        """
        return await self.hub.changed(notices_key(user_id), since, timeout_s)

    async def read(self, user_id: str, ids: Sequence[str]) -> int:
        """Mark these as read; how many were not."""
        return self._announced(user_id, await self._rows(user_id).read(ids))

    async def seen(self, user_id: str, path: str, notice_id: str = "") -> int:
        """The person came to this page, perhaps by a notification: read are that notice and all that lead there.

        What leads to a page that says nothing of it stays unread, and a reminder until it is done or put off.
        """
        count = await self._rows(user_id).seen(None if path in SAY_NOTHING else path, notice_id)
        return self._announced(user_id, count)

    async def read_all(self, user_id: str, upto: datetime) -> int:
        """Mark as read what was written until then; how many were not."""
        return self._announced(user_id, await self._rows(user_id).read_all(upto))

    async def send_again(self, user_id: str, delivery_id: str) -> None:
        """Try a failed delivery once more, now; Conflict when it has not failed."""
        await self.db.repository(DeliveriesRepository, user_id).retry(delivery_id)
        self.wake(user_id)

    # --- answers

    async def acknowledge(self, user_id: str, notice_id: str) -> None:
        """The person has seen to it; a second time changes nothing."""
        row = await self._rows(user_id).get(notice_id)
        if row.acknowledged_at is None:
            await self._answered(user_id, row, "")

    async def snooze(self, user_id: str, notice_id: str, choice: str) -> None:
        """Send it again later; UserError for a kind that nobody brings back."""
        row = await self._rows(user_id).get(notice_id)
        if row.kind not in self.answered or not choice:
            raise UserError("This can't be snoozed.")
        if row.acknowledged_at is None:
            await self._answered(user_id, row, choice)

    async def settle(self, user_id: str, subject_id: str) -> None:
        """Send nothing more of what the notices were about, and let none wait: it was answered elsewhere."""
        self._announced(user_id, len(await self._rows(user_id).settle(subject_id)))

    async def _answered(self, user_id: str, row: NoticeRow, choice: str) -> None:
        listener = self.answered.get(row.kind)
        if listener is not None:
            await listener(user_id, row, choice)
        await self._rows(user_id).acknowledge(row.id)
        self.hub.announce(notices_key(user_id))

    def _rows(self, user_id: str) -> rows.NoticesRepository:
        return self.db.repository(rows.NoticesRepository, user_id)

    def _announced(self, user_id: str, count: int) -> int:
        if count:
            self.hub.announce(notices_key(user_id))
        return count


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
