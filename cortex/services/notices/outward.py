"""The ports `Push` and `Mail` of the tools web_push and email_send, bound to one user each.

A push goes by the outbox like every notice; a mail to others goes out at once, its call alone says how it went.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import cast

from msgspec import Struct

from cortex.base.clock import Clock
from cortex.base.errors import NotFound, ToolFailed, UserError
from cortex.notify.channels.email import Email
from cortex.notify.letter import Letter
from cortex.ports.channels import DeliveryState
from cortex.ports.outgoing import PushCount
from cortex.services.notices.addresses import Addresses
from cortex.services.notices.notices import DeliveryRow, NoticeDraft, Notices
from cortex.services.notifier import plain
from cortex.storage.accounts import AccountsRepository

WAIT_S = 25.0  # a push service is given 20
LOOK_S = 2.0
UNDER_WAY: tuple[DeliveryState, ...] = ("pending", "attempting")


class UserPush(Struct, frozen=True, kw_only=True):
    """Implements `Push` for one user."""

    notices: Notices
    clock: Clock
    user_id: str

    async def push(self, id: str, title: str, text: str) -> PushCount:
        """Hand it to the outbox and wait for the first try of each device; what is held or tried again is `waiting`."""
        preferences = await self.notices.preferences.choices_of(self.user_id)
        if "message" in preferences.muted:
            raise ToolFailed("The user muted messages on their devices; nothing was sent.")
        title, said = await plain(title), await plain(text)
        draft = NoticeDraft(
            key=f"push:{id}", kind="message", title=title, text=said, channels=("web_push",), is_tainted=True
        )
        notice_id = await self.notices.notify(self.user_id, draft)
        try:
            async with asyncio.timeout(WAIT_S):
                await self._tried(notice_id)
        except TimeoutError:
            pass
        rows = await self._pushes(notice_id)
        done = sum(row.state == "delivered" for row in rows)
        waiting = sum(row.state in UNDER_WAY for row in rows)
        return PushCount(devices=done, failed=len(rows) - done - waiting, waiting=waiting)

    async def tell(self, id: str, person_id: str, title: str, text: str) -> None:
        """Notify this other person, in the ways that they chose for messages. NotFound without an open account."""
        if not (await self.notices.db.repository(AccountsRepository).get(person_id)).is_active:
            raise NotFound("Nobody with an open account here has this name.")
        draft = NoticeDraft(
            key=f"told:{id}",
            kind="message",
            title=title,
            text=await plain(text),
            urgency="important",
            is_tainted=True,  # another person's words
        )
        await self.notices.notify(person_id, draft)

    async def _tried(self, notice_id: str) -> None:
        """Until each delivery was tried once or is held back."""
        heard = await self.notices.changed(self.user_id, -1, 0)  # ahead of the look: a change in between is not missed
        while True:
            rows = await self._pushes(notice_id)
            if not any(row.state in UNDER_WAY and not self._is_put_off(row) for row in rows):
                return
            heard = await self.notices.changed(self.user_id, heard, LOOK_S)

    async def _pushes(self, notice_id: str) -> Sequence[DeliveryRow]:
        """Return what goes to devices; another channel may take a notice over that no device took."""
        rows = (await self.notices.get(self.user_id, notice_id)).deliveries
        return [row for row in rows if row.channel == "web_push"]

    def _is_put_off(self, row: DeliveryRow) -> bool:
        return row.state == "pending" and row.next_at is not None and row.next_at > self.clock()


class UserMail(Struct, frozen=True, kw_only=True):
    """Implements `Mail` for one user, through the server's mail server; answers go to the user's own address."""

    addresses: Addresses
    user_id: str

    async def own_address(self) -> str:
        """The address under Notifications, "" when there is none."""
        target = await self.addresses.target(self.user_id, "email")
        return "" if target is None else target.address

    async def send_mail(self, id: str, to: Sequence[str], subject: str, text: str, thread: Mapping[str, str]) -> None:
        """Hand it over, once; ToolFailed says what the server refused."""
        try:
            channel = cast("Email", await self.addresses.channels.channel("email"))
        except UserError as error:
            raise ToolFailed(error.message) from None
        own = await self.own_address()
        await channel.post(Letter(id=id, to=to, subject=subject, text=text, reply_to=own, thread=thread))
