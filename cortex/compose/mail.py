"""Mail. What speaks with servers and reads what they say is loaded by whoever has an account, and by nobody else."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from cortex.base import scan
from cortex.base.web_address import host_ports
from cortex.compose.calendars import CalendarServices
from cortex.ports.mail import Mailboxes
from cortex.services.mail.watch import MailWatch

if TYPE_CHECKING:
    from cortex.services.jobs.mail_triggers import MailTriggers
    from cortex.services.mail.accounts import MailAccounts
    from cortex.services.mail.logins import MailLogins
    from cortex.services.mail.sync import MailSync


class MailServices(CalendarServices):
    """The mail accounts of people, the index of each, and what tools open."""

    @cached_property
    def mail_watch(self) -> MailWatch:
        return MailWatch(
            db=self.runtime.db, clock=self.runtime.clock, opened=lambda: (self.mail_accounts, self.mail_sync)
        )

    @cached_property
    def mail_logins(self) -> "MailLogins":
        oauth = scan.load("cortex.integrations.mail.oauth")
        given = {
            "google": (oauth.GOOGLE, self.settings.google_client_id, self.settings.google_client_secret),
            "microsoft": (oauth.MICROSOFT, self.settings.microsoft_client_id, ""),
        }
        clock = self.runtime.clock
        clients = {
            way: oauth.OAuthClient(provider=provider, id=id, secret=secret, clock=clock)
            for way, (provider, id, secret) in given.items()
            if id
        }
        made = scan.load("cortex.services.mail.logins").MailLogins(
            db=self.runtime.db, vault=self.vault, clock=clock, clients=clients
        )
        return cast("MailLogins", made)

    @cached_property
    def mail_accounts(self) -> "MailAccounts":
        made = scan.load("cortex.services.mail.accounts").MailAccounts(
            db=self.runtime.db,
            vault=self.vault,
            clock=self.runtime.clock,
            door=scan.load("cortex.integrations.mail.client").MailDoor(),
            logins=self.mail_logins,
            inside=lambda: frozenset(host_ports(self.settings.mail_servers)),
            changed=self.mail_watch.wake,
        )
        return cast("MailAccounts", made)

    @cached_property
    def mail_triggers(self) -> "MailTriggers":
        made = scan.load("cortex.services.jobs.mail_triggers").MailTriggers(runtime=self.runtime)
        return cast("MailTriggers", made)

    @cached_property
    def mail_sync(self) -> "MailSync":
        made = scan.load("cortex.services.mail.sync").MailSync(
            db=self.runtime.db,
            foreign=self.foreign,
            clock=self.runtime.clock,
            arrived=lambda owner_id: self.mail_triggers.arrived(owner_id),
        )
        return cast("MailSync", made)

    def mailboxes_of(self, user_id: str) -> Mailboxes:
        """The mail of one person, for tools and pages."""
        made = scan.load("cortex.services.mail.mailboxes").UserMailboxes(
            db=self.runtime.db,
            mail=self.mail_accounts,
            sync=self.mail_sync,
            foreign=self.foreign,
            clock=self.runtime.clock,
            user_id=user_id,
        )
        return cast("Mailboxes", made)

    @property
    def own_ports(self) -> Mapping[type[Any], Callable[[str], Any]]:
        """Return what tools open for a user of what people connect for themselves."""
        return {**super().own_ports, Mailboxes: self.mailboxes_of}
