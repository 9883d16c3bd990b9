"""The buttons of a notification: single-use links that need the login.

A token is an HMAC under the server's key, the same at each try of a delivery, and kept as its hash alone. Made by
`delivery.py`. The page of a link shows what it would do before it is pressed; where the browser itself shows the
buttons a press does it at once, but for a yes that somebody has to look at.
"""

import base64
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from datetime import timedelta

from msgspec import Struct

from cortex.base.clock import Clock
from cortex.base.errors import Conflict, NotAllowed
from cortex.base.user import User
from cortex.ports.channels import Action, ActionKind
from cortex.services.accounts.accounts import LoginView
from cortex.services.notices.notices import NoticeRow, Notices
from cortex.services.turns.approval_weight import Weighed
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository
from cortex.storage.db import Database
from cortex.storage.devices import ActionLinksRepository

PATH = "/go/"
LINK_LIFE = timedelta(days=7)
FRESH_FOR = timedelta(minutes=5)
SNOOZED = "10min"
_PURPOSE = b"cortex/buttons/1"

Answering = Callable[[User, str, str], Awaitable[None]]


class Pressable(Struct, frozen=True, kw_only=True):
    """The effect of a link, for the page that asks. `needs_password`: the person gives it once more before a yes."""

    notice: NoticeRow
    action: ActionKind
    is_used: bool
    needs_password: bool


class ActionLinks(Struct, frozen=True, kw_only=True):
    """`answering(user, approval_id, choice)`: how a question is answered, once | deny. `weighing`: how heavy it is."""

    db: Database
    notices: Notices
    answering: Answering
    weighing: Callable[[ApprovalRow], Weighed]
    clock: Clock
    secret_key: str

    async def made(self, notice: NoticeRow, delivery_id: str) -> tuple[Action, ...]:
        """The buttons of a delivery, their links kept; made again they are the same."""
        if not notice.actions:
            return ()
        found: list[Action] = []
        until = notice.expires_at or self.clock() + LINK_LIFE
        async with self.db.transaction(notice.owner_id) as repository:
            for kind in notice.actions:
                token = self._token(delivery_id, kind)
                await repository(ActionLinksRepository).add(token, notice.id, kind, until)
                found.append(Action(kind=kind, path=PATH + token))
        return tuple(found)

    async def preview(self, login: LoginView, token: str) -> Pressable:
        """Look at what this link would do, changing nothing. NotFound when it never was, is another's, or too old."""
        link = await self.db.repository(ActionLinksRepository, login.user.id).get(token)
        view = await self.notices.get(login.user.id, link.notice_id)
        needs_password = link.action == "approve" and self._is_stale(view.row) and not login.is_confirmed
        is_used = link.used_at is not None
        return Pressable(notice=view.row, action=link.action, is_used=is_used, needs_password=needs_password)

    async def press_at_once(self, login: LoginView, token: str) -> bool:
        """Do it as the browser's own button does, without its page; False, and nothing done, where that has to ask.

        Such buttons stand on lock screens, where a phone asks nobody who presses them. A yes is given there only to a
        light deed whose words were shown. Raises as `press` does.
        """
        found = await self.preview(login, token)
        if found.needs_password or (found.action == "approve" and not await self._is_light(found.notice)):
            return False
        await self.press(login, token)
        return True

    async def _is_light(self, notice: NoticeRow) -> bool:
        asked = await self.db.repository(ApprovalsRepository, notice.owner_id).get(notice.subject_id)
        shown = (await self.notices.preferences.choices_of(notice.owner_id)).content
        return self.weighing(asked).weight == "low" and not asked.readers and "web_push" in shown

    async def press(self, login: LoginView, token: str, choice: str = SNOOZED) -> str:
        """Do it, once; the path to go on to. `choice`: for how long to snooze.

        Conflict when it was pressed before or the question was answered elsewhere, NotAllowed when the password has to
        be confirmed first (the link is then still good), NotFound like `preview`.
        """
        found = await self.preview(login, token)
        if found.is_used:
            raise Conflict("This button was already used.")
        if found.needs_password:
            raise NotAllowed("This request is older than five minutes. Confirm your password to allow it.")
        # Used up before it acts: of two presses one acts.
        await self.db.repository(ActionLinksRepository, login.user.id).use(token)
        user, notice = login.user, found.notice
        match found.action:
            case "ack":
                await self.notices.acknowledge(user.id, notice.id)
            case "snooze":
                await self.notices.snooze(user.id, notice.id, choice)
            case "approve":
                await self.answering(user, notice.subject_id, "once")
            case "deny":
                await self.answering(user, notice.subject_id, "deny")
        return notice.path

    def _is_stale(self, notice: NoticeRow) -> bool:
        return self.clock() - notice.created_at > FRESH_FOR

    def _token(self, delivery_id: str, kind: ActionKind) -> str:
        keyed = hashlib.sha256(_PURPOSE + b"\0" + self.secret_key.encode()).digest()
        raw = hmac.new(keyed, f"{delivery_id}\0{kind}".encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")
