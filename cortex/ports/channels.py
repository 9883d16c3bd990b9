"""The notice that a notification channel sends, the place it goes to, and the socket that every channel fills.

A channel sends once and keeps nothing: the outbox decides who is told when, tries again and counts.
"""

import re
from typing import Literal, Protocol

from msgspec import Struct

from cortex.base.record import Veiled

Urgency = Literal["low", "normal", "important", "high"]
ActionKind = Literal["approve", "deny", "ack", "snooze"]
NoticeKind = Literal["job", "reminder", "approval", "agent", "system", "message", "digest"]
ChannelName = str  # of a file in notify/channels, or of another package; rows in homes hold it
DeliveryState = Literal["pending", "attempting", "delivered", "failed", "dropped"]

PRIVATE_TITLE = "Cortex"
PRIVATE_TEXT = "Cortex has something for you."
DAY_S = 86_400
_PATH = re.compile(r"/(?!/)[\x21-\x5b\x5d-\x7e]*")  # no second slash in front, no backslash: both lead elsewhere


class Action(Struct, frozen=True, kw_only=True):
    """A button of a notification. `path`: the single-use link that it opens; `title`: "" takes the kind's own word."""

    kind: ActionKind
    path: str
    title: str = ""

    def __post_init__(self) -> None:
        """Refuse a link to elsewhere."""
        must_be_ours(self.path)


class Notice(Struct, frozen=True, kw_only=True):
    """A notice to one person by one channel.

    `id`: of the delivery; a second try bears the same one. `kind`: its category, such as reminder or approval.
    `path`: the page that it opens, from "/" on. `tag`: a later notice of the same tag takes the place of this one.
    `urgency`: low for what may wait for the digest, such as a missed run; normal waits while the person's quiet hours
    hold; important comes through them, for somebody chose the time or waits for an answer; high, called urgent, is
    something that harms if nobody sees to it: it goes by every channel and stays on the screen until it is answered.
    `ttl_s`: how long a device that is off may still be told. `badge`: the number on the app's icon.
    `is_private`: no word of title, text or kind leaves the server, only that there is something; the person may choose
    otherwise.
    """

    id: str
    kind: str
    title: str
    text: str
    path: str = "/"
    tag: str = ""
    actions: tuple[Action, ...] = ()
    urgency: Urgency = "normal"
    ttl_s: int = DAY_S
    badge: int | None = None
    is_private: bool = True

    def __post_init__(self) -> None:
        """Refuse a link to elsewhere."""
        must_be_ours(self.path)


class Target(Veiled, Struct, frozen=True, kw_only=True):
    """The place that a channel sends to. Never shown: an address may be a secret by itself.

    The fields of a channel say what `address`, `key` and `secret` are; one without a field `key` finds there the
    account whose notices these are. A push device: `address` is the subscription's endpoint, `key` its p256dh, `secret`
    its auth, `signed_for` the public VAPID key under which it subscribed ("" takes the newest).
    """

    address: str
    key: str = ""
    secret: str = ""
    signed_for: str = ""


class TalkRooms(Protocol):
    """Nextcloud Talk, as the channel `talk` reaches it: set up on a card, and open to some accounts perhaps."""

    async def lacks(self, user_id: str) -> str:
        """Return what must be done before anything of this account can go there; "" when nothing."""
        ...

    async def post(self, user_id: str, link: str, id: str, text: str) -> None:
        """Post it in the room of this link, once per id. ToolFailed says why not, ServiceDown that it may pass."""
        ...


class LinkedChats(Protocol):
    """The chats that people linked at messengers, as notification channels reach them."""

    async def lacks(self, messenger: str, user_id: str) -> str:
        """Return what must be done before anything of this account can go there; "" when nothing."""
        ...

    async def tell(self, messenger: str, user_id: str, text: str, *, is_silent: bool, once: str) -> None:
        """Send this text there, as it is. `once`: a word that a second try repeats. DeliveryError."""
        ...


class Channel(Protocol):
    """A way to reach a person, such as web_push or ntfy."""

    def checked(self, target: Target) -> Target:
        """The target as it is kept, tidied; UserError names the field that is wrong and says how to mend it."""
        ...

    async def send(self, notice: Notice, target: Target) -> None:
        """Hand the notice over, once; DeliveryError says in words for a person why not, and whether to try again."""
        ...


def must_be_ours(path: str) -> None:
    """ValueError for a path that leads elsewhere than to a page of ours."""
    if not _PATH.fullmatch(path):
        raise ValueError(f"{path!r} is no path of a page of ours")
