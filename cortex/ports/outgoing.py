"""The sockets that carry words away from here: push to the user's own devices, mail, Nextcloud Talk, open pages.

Each is opened for one user, sends once per id (an outbox row), and keeps its own time limits.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct


class PushCount(Struct, frozen=True, kw_only=True):
    """The number of the user's devices that the push service took it for, and how many it could not reach.

    `waiting`: those it goes to later, when quiet hours end or the service answers again.
    """

    devices: int
    failed: int
    waiting: int = 0


class Housemates(Protocol):
    """The people of this house, besides the user."""

    async def others(self) -> Mapping[str, str]:
        """Everybody else with an open account: id to name."""
        ...


class Push(Protocol):
    """Web Push to the user's own devices, and a message to another person of the house."""

    async def push(self, id: str, title: str, text: str) -> PushCount:
        """Push it now. No device at all is 0 and 0."""
        ...

    async def tell(self, id: str, person_id: str, title: str, text: str) -> None:
        """Notify this other person, in the ways that they chose for messages. NotFound without an open account."""
        ...


class Mail(Protocol):
    """The configured mail server."""

    async def own_address(self) -> str:
        """The user's own address, or "" when none is set."""
        ...

    async def send_mail(self, id: str, to: Sequence[str], subject: str, text: str, thread: Mapping[str, str]) -> None:
        """Hand the mail to the server; ToolFailed says what the server refused.

        `thread`: In-Reply-To and References of an answer, nothing for a mail that answers none.
        """
        ...


class Room(Struct, frozen=True, kw_only=True):
    """A Talk conversation of the user."""

    token: str
    name: str
    unread: int


class Post(Struct, frozen=True, kw_only=True):
    """A message in a room."""

    id: int
    author: str
    text: str
    at: datetime


class Talk(Protocol):
    """The user's Nextcloud Talk. ToolFailed for a room that is read only, in the lobby or gone, and for rate limits."""

    async def rooms(self) -> Sequence[Room]:
        """The rooms, the latest first."""
        ...

    async def post(self, id: str, token: str, text: str) -> None:
        """Post it; `id` becomes the reference that tells a repeat."""
        ...

    async def history(self, token: str, most: int, before: int | None) -> Sequence[Post]:
        """The newest posts, oldest first; `before`: only those ahead of this id."""
        ...


class ListSignal(Protocol):
    """The signal of task lists, as one user gives it who changed something: open pages of all who see them look."""

    async def tell_readers(self, *places: tuple[str, str], is_shared: bool = True) -> None:
        """Something on these lists (owner's id, name) is committed: let the open pages of all who see them look.

        is_shared: False where the caller has just seen that nobody else does; that spares looking who they are.
        """
        ...
