"""Everything by which people are reached, over the runtime: what they chose, what they are told, what sends it.

`app.py` makes it once, lets `run` go on beside the rest, and wires the tools' ports; pages take its parts.
"""

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Self

from sqlalchemy.exc import SQLAlchemyError

from cortex.base.background import background_tasks
from cortex.base.crypto import Vault
from cortex.ports.outgoing import Mail, Push
from cortex.services.notices.action_links import Buttons
from cortex.services.notices.addresses import Addresses
from cortex.services.notices.channels import Channels
from cortex.services.notices.delivery import Delivery
from cortex.services.notices.devices import DevicesService
from cortex.services.notices.digests import Digests
from cortex.services.notices.notices import Notices
from cortex.services.notices.outbox import Outbox
from cortex.services.notices.outward import UserMail, UserPush
from cortex.services.notices.preferences import NotificationPreferences
from cortex.services.notices.push_keys import PushKeys
from cortex.services.runtime import Runtime
from cortex.services.scope import ToolScope
from cortex.services.turns.approvals import ApprovalsService
from cortex.storage.devices import AllActionLinksRepository
from cortex.storage.notices import AllNoticesRepository

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationStack:
    """The doors. `desk`: asks people for a yes, and tells them of it; `watched`: user -> conversation -> streams."""

    runtime: Runtime
    keys: PushKeys
    preferences: NotificationPreferences
    addresses: Addresses
    notices: Notices
    devices: DevicesService
    action_links: Buttons
    outbox: Outbox
    digests: Digests
    approvals: ApprovalsService
    watched: dict[str, Counter[str]]

    @classmethod
    def over(cls, runtime: Runtime, scope: ToolScope) -> Self:
        """All of it; what can work here is opened to the tools by `scope`."""
        db, clock, vault = runtime.db, runtime.clock, Vault(runtime.settings.secret_key)
        watched: dict[str, Counter[str]] = {}
        keys, preferences = PushKeys(db, vault), NotificationPreferences(db, runtime.hub)
        channels = Channels(settings=runtime.settings, keys=keys, clock=clock)
        addresses = Addresses(db=db, vault=vault, channels=channels)
        notices = Notices(db=db, hub=runtime.hub, preferences=preferences, addresses=addresses, clock=clock)

        def is_watched(user_id: str, conversation_id: str) -> bool:
            is_here = watched.get(user_id, Counter())[conversation_id] > 0
            return is_here or runtime.hub.is_watched_elsewhere(conversation_id)

        approvals = ApprovalsService(runtime=runtime, notifier=notices, is_watched=is_watched)
        secret = runtime.settings.secret_key
        action_links = Buttons(db=db, notices=notices, answering=approvals.answer, clock=clock, secret_key=secret)
        delivery = Delivery(db=db, notices=notices, channels=channels, action_links=action_links, clock=clock)
        if not channels.lacks("web_push"):
            scope.add(Push, lambda user_id: UserPush(notices=notices, clock=clock, user_id=user_id))
        if not channels.lacks("email"):
            scope.add(Mail, lambda user_id: UserMail(addresses=addresses, user_id=user_id))
        return cls(
            runtime=runtime,
            keys=keys,
            preferences=preferences,
            addresses=addresses,
            notices=notices,
            devices=DevicesService(db=db, channels=channels, clock=clock),
            action_links=action_links,
            outbox=Outbox(db=db, hub=runtime.hub, delivery=delivery, clock=clock),
            digests=Digests(db=db, notices=notices, clock=clock),
            approvals=approvals,
            watched=watched,
        )

    async def deliver_notices(self) -> None:
        """For ever: make the keys of push where there are none, then send what is due."""
        try:
            await self.keys.ensure()
        except SQLAlchemyError as error:
            log.warning("the keys of push are made with the first device: %s", error)
        async with background_tasks(self.digests.send_digests()):
            await self.outbox.send_due()

    async def sweep(self) -> None:
        """Forget old notices and links whose time is up."""
        await self.runtime.db.repository(AllActionLinksRepository).prune()
        await self.runtime.db.repository(AllNoticesRepository).prune()
