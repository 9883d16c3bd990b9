"""Notification channels, a file each, loaded when the first notice goes that way. Senders only: no table, no retry.

`open_channel` is the door for services. A channel is a module of this package with `open_channel(surroundings)`;
modules that begin with an underscore are what channels share. Nothing heavy is imported with this package.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, cast

from cortex.base import scan
from cortex.base.clock import now
from cortex.base.contact import push_subject
from cortex.base.errors import DeliveryError, UserError
from cortex.base.settings import Settings
from cortex.ports.channels import Channel, Notice, TalkRooms, Target

_KEYS = "cortex.notify._keys"  # cryptography weighs 7 MB
FORMER_KEYS = 2
PORTS = {"starttls": 587, "tls": 465, "none": 25}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vapid:
    """The keys by which push services know this server, newest first, and whom they may write to."""

    keys: tuple[str, ...] = field(repr=False)
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    """The mail server and how to speak to it. `sender`: the address that mails come from; `user` "" means no login."""

    host: str
    port: int
    security: Literal["starttls", "tls", "none"]
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelContext:
    """What channels need from the server.

    `site`: the page's address as people type it, in which every link begins. `hosts`: servers inside the network that
    notices may go to, all others must be public. `vapid`, `smtp`, `talk`: None where that channel is not set up.
    """

    site: str
    hosts: frozenset[tuple[str, int]] = frozenset()
    vapid: Vapid | None = None
    smtp: SmtpServer | None = None
    talk: TalkRooms | None = None
    clock: Callable[[], datetime] = now
    total_s: float = 20.0


def names() -> tuple[str, ...]:
    """The channels that there are, set up or not."""
    return scan.modules(__name__)


def open_channel(name: str, surroundings: ChannelContext) -> Channel:
    """The channel of this name; UserError when there is none, or says what an administrator has to set up first.

    The first one of a name reads its libraries (0.2 to 0.6 s, 2026-11-21): call it off the loop.
    """
    if name not in names():
        raise UserError(f"Unknown channel {name!r}. Available: {', '.join(names())}.")
    return cast("Channel", scan.load(f"{__name__}.{name}").open_channel(surroundings))


def ready(channel: Channel, target: Target) -> Target:
    """The target as the channel checked it again before a send; DeliveryError when it would not be kept today."""
    try:
        return channel.checked(target)
    except UserError as error:
        raise DeliveryError(error.message, fate="refused") from None


def trial(id: str, channel: str) -> Notice:
    """Return what "send a test" sends: nothing private, so that the whole way is seen."""
    text = f"Notifications by {channel.replace('_', ' ')} arrive here."
    return Notice(id=id, kind="test", title="Cortex: test", text=text, tag="test", ttl_s=300, is_private=False)


def new_key() -> str:
    """A fresh private VAPID key (P-256): 32 bytes in base64url. Keep it sealed."""
    return cast("str", scan.load(_KEYS).new_key())


def public_key(key: str) -> str:
    """The public half as a browser wants it for `applicationServerKey`: the point of 65 bytes in base64url."""
    return cast("str", scan.load(_KEYS).public_key(key))


def new_secret() -> str:
    """A secret for a webhook, which both sides need to know."""
    return cast("str", scan.load(f"{__name__}.webhook").new_secret())


def rotated(keys: tuple[str, ...]) -> tuple[str, ...]:
    """A new key in front; former ones sign on for devices that have not subscribed anew yet."""
    return (new_key(), *keys[:FORMER_KEYS])


def contact_from(settings: Settings) -> str:
    """Whom push services may write to: what is set, else the page's public address, else the mail sender; or ""."""
    if settings.push_subject:
        return settings.push_subject
    sender = f"mailto:{settings.smtp_from}" if settings.smtp_from else ""
    for word in (settings.public_url, sender):
        try:
            return push_subject(word)
        except ValueError:
            continue
    return ""


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
