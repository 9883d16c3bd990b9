"""Messengers. What speaks with one is loaded where one is set up, and nowhere else."""

from functools import cached_property
from typing import TYPE_CHECKING, cast

from cortex.base import scan
from cortex.base.ids import new_id
from cortex.compose.turns import TurnServices
from cortex.services.messengers.watch import MessengerWatch

if TYPE_CHECKING:
    from cortex.services.messengers.door import MessengerDoor
    from cortex.services.messengers.links import MessengerLinks

ALONE = "daemon"  # there is one on a SQLite home: after a kill it goes on at once


class MessengerServices(TurnServices):
    """The people who are linked, and what goes in and out."""

    @cached_property
    def messenger_watch(self) -> MessengerWatch:
        return MessengerWatch(integrations=self.integrations, opened=self.messenger_door)

    @cached_property
    def messenger_links(self) -> "MessengerLinks":
        made = scan.load("cortex.services.messengers.links").MessengerLinks(
            runtime=self.runtime,
            clients=self.integration_clients,
            notifier=self.notices,
            changed=self.messenger_watch.wake,
        )
        return cast("MessengerLinks", made)

    def messenger_door(self, name: str) -> "MessengerDoor":
        """All that one messenger needs."""
        room, clients = "cortex.services.messengers", self.integration_clients
        holder = new_id() if self.settings.is_postgresql else ALONE
        receiver = scan.load(f"{room}.receiving").Receiver(
            runtime=self.runtime, clients=clients, name=name, holder=holder
        )
        places = scan.load(f"{room}.places").Places(
            runtime=self.runtime, conversations=self.conversations, begun=self.messenger_watch.wake
        )
        conversing = scan.load(f"{room}.conversing").Conversing(
            runtime=self.runtime,
            name=name,
            accounts=self.accounts,
            chat=self.chat,
            places=places,
            orders=scan.load(f"{room}.orders").Orders(chat=self.chat, places=places),
            documents=self.documents,
            approvals=self.approvals,
            listener=scan.load(f"{room}.listening").Listener(clients=clients),
        )
        following = scan.load(f"{room}.following").Following(
            runtime=self.runtime,
            clients=clients,
            streams=self.streams,
            name=name,
            site=self.channels.site,
            homes=self.homes,
            holder=holder,
        )
        door = scan.load(f"{room}.door").MessengerDoor(
            receiver=receiver, conversing=conversing, following=following, names=self.messenger_watch.names
        )
        return cast("MessengerDoor", door)
