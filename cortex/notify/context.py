"""The parts of the server that channels get: its page, where notices may go, the mail server, the keys of push."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from cortex.base.clock import now
from cortex.base.contact import push_subject
from cortex.base.record import Veiled
from cortex.base.settings import Settings
from cortex.ports.channels import LinkedChats, TalkRooms

PORTS = {"starttls": 587, "tls": 465, "none": 25}
# Apple's push service and Mozilla's take no push without a contact whose host has a public name (seen 2026-11). A house
# that has none yet pushes all the same: a name that is kept for examples, where nobody is written to.
STAND_IN = "mailto:nobody@example.org"


class Vapid(Veiled, Struct, frozen=True, kw_only=True):
    """The keys by which push services know this server, newest first, and whom they may write to."""

    VEILED = ("keys",)

    keys: tuple[str, ...]
    subject: str


class SmtpServer(Veiled, Struct, frozen=True, kw_only=True):
    """The mail server and how to speak to it. `sender`: the address that mails come from; `user` "" means no login."""

    VEILED = ("password",)

    host: str
    port: int
    security: Literal["starttls", "tls", "none"]
    sender: str
    user: str = ""
    password: str = ""
    ca_file: str = ""


class ChannelContext(Struct, frozen=True, kw_only=True):
    """The parts of the server that channels need.

    `site`: the page's address as people type it, in which every link begins. `hosts`: servers inside the network that
    notices may go to, all others must be public. `vapid`, `smtp`, `talk`, `messengers`: None where that channel is not
    set up.
    """

    site: str
    hosts: frozenset[tuple[str, int]] = frozenset()
    vapid: Vapid | None = None
    smtp: SmtpServer | None = None
    talk: TalkRooms | None = None
    messengers: LinkedChats | None = None
    clock: Callable[[], datetime] = now
    total_s: float = 20.0


def contact_from(settings: Settings, mails: Sequence[str] = ()) -> str:
    """Whom push services may write to: what is set, else the best that this server is known by; never "".

    That is its public address, another of its names, the sender of its mails, one of `mails`: the admins' addresses.
    """
    names = [f"https://{name}" for name in settings.allowed_hosts]
    writers = [f"mailto:{address}" for address in (settings.smtp_from, *mails) if address]
    for word in (settings.push_subject, settings.public_url, *names, *writers):
        try:
            return push_subject(word)
        except ValueError:
            continue
    return STAND_IN


def smtp_from(settings: Settings) -> SmtpServer | None:
    """The mail server that the settings name, None when none is named."""
    if not settings.smtp_host or not settings.smtp_from:
        return None
    return SmtpServer(
        host=settings.smtp_host,
        port=settings.smtp_port or PORTS[settings.smtp_security],
        security=settings.smtp_security,
        sender=settings.smtp_from,
        user=settings.smtp_user,
        password=settings.smtp_password,
        ca_file=settings.smtp_ca_file,
    )
