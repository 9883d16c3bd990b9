"""A messenger that people write to Cortex by: what comes in, what goes out. Filled by clients of integrations' cards.

A client keeps nothing: what came is confirmed by asking for what is behind it, and who is told what is decided by
`services/messengers`. Text goes out as Markdown; how a messenger draws it is its own matter.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from cortex.base.errors import ServiceDown

IncomingKind = Literal["message", "edit", "press", "invite", "delete"]


class NotSent(ServiceDown):
    """It surely did not go out, and may be tried again, after `wait_s` seconds. Any other error: nobody knows."""

    def __init__(self, message: str, *, wait_s: float = 0.0) -> None:
        """Keep the waiting time."""
        super().__init__(message)
        self.wait_s = wait_s


class ChatClosed(ServiceDown):
    """It will never go out: the person blocked Cortex there, left, or deleted the chat."""


class RemoteFile(Struct, frozen=True, kw_only=True):
    """A file that stays there until it is asked for. `is_voice`: spoken to be read as words; `length_s`: how long."""

    id: str
    name: str
    size_bytes: int = 0
    length_s: int = 0
    is_voice: bool = False


class Incoming(Struct, frozen=True, kw_only=True):
    """One thing that came. `position`: its number, by which it is known again and which says the order.

    `sender`, `chat`, `message`: ids there. `name`: of the sender, as others see it. `group`: the name of a group's
    chat, "" for one of their own; `place`: its id on the card, "" where that is `chat`, which may be a part of it.
    `is_addressed`: it speaks to Cortex. `is_forwarded`: its words are another's; `quoted`: words of another that it
    quotes. `files`: what comes with it; `batch`: those sent at once share it; `goes_on`: its text is so long that the
    next one may be the rest; `is_unread`: it is of a kind that a client cannot read, so that nothing else is here.
    A press of a button: `press` is its id, `choice` what the button bears. `is_own`: nobody but the sender reads this
    chat. An invite asks Cortex to `enter` a chat, or to find another one in place of one that it cannot read; a delete
    takes back `message`.
    """

    position: int
    kind: IncomingKind
    sender: str
    chat: str
    message: str = ""
    name: str = ""
    group: str = ""
    place: str = ""
    is_addressed: bool = True
    text: str = ""
    is_forwarded: bool = False
    quoted: str = ""
    files: tuple[RemoteFile, ...] = ()
    batch: str = ""
    goes_on: bool = False
    is_unread: bool = False
    press: str = ""
    choice: str = ""
    is_own: bool = False


class Received(Struct, frozen=True, kw_only=True):
    """The things that came behind a position. `upto`: the last position that was seen, with all that is passed over.

    `cursor`: the messenger's own word for where that is, where positions are only counted here.
    """

    items: tuple[Incoming, ...] = ()
    upto: int
    cursor: str = ""


class Button(Struct, frozen=True, kw_only=True):
    """A button below a message: its words, and what a press of it brings back, at most 60 bytes."""

    words: str
    choice: str


class Messenger(Protocol):
    """The account of Cortex at a messenger. Every request has limits of time and size."""

    @property
    def handle(self) -> str:
        """Return the name by which people find it there; "" until it was asked for."""
        ...

    @property
    def groups(self) -> frozenset[str]:
        """Return the groups in which an admin lets it answer."""
        ...

    @property
    def is_repeatable(self) -> bool:
        """Tell whether what is sent again under the same `once` arrives once."""
        ...

    @property
    def sign(self) -> str:
        """Return what stands ahead of orders there, such as the slash of /new."""
        ...

    async def account(self) -> str:
        """The id of Cortex's own account there, under which positions count."""
        ...

    async def receive(self, after: int, wait_s: float, cursor: str = "") -> Received:
        """Return what came behind this position, as soon as there is something; all up to it is confirmed thereby.

        `cursor`: of what was received last.
        """
        ...

    def parts(self, markdown: str) -> Sequence[str]:
        """The text as it goes out, in as many messages as it needs; the same text always gives the same ones."""
        ...

    async def send(
        self, chat: str, part: str, *, buttons: Sequence[Button] = (), is_silent: bool = False, once: str = ""
    ) -> str:
        """Send one of `parts`, once; its id there. NotSent, ChatClosed; ServiceDown where nobody knows whether it went.

        `once`: its own word, under which a messenger that is repeatable knows it again.
        """
        ...

    async def enter(self, chat: str) -> str:
        """Go into a chat to which Cortex was asked; the chat in which it can be read there. NotSent, ChatClosed."""
        ...

    async def seen(self, item: Incoming) -> None:
        """Show that it was read."""
        ...

    async def send_picture(
        self, chat: str, name: str, content: bytes, *, is_silent: bool = False, once: str = ""
    ) -> str:
        """Send a picture, once; its id, and the same errors. ToolFailed where it is taken by no way that there is."""
        ...

    async def typing(self, chat: str) -> None:
        """Show for some seconds that Cortex writes."""
        ...

    async def settle(self, item: Incoming, words: str, *, is_over: bool) -> None:
        """Answer a press with these words; with `is_over` the buttons go. Of an old press the words are a message.

        Without a press the buttons of `item.message` go, and nothing is said: it was answered elsewhere.
        """
        ...

    async def fetch(self, file: RemoteFile, most_bytes: int) -> bytes:
        """The file; ToolFailed where it is larger, or gone."""
        ...


class Speech(Protocol):
    """A service that hears, set up by an admin."""

    async def transcribe(self, sound: bytes, name: str) -> str:
        """The words of a recording; "" for none. `name`: with the ending of its kind, such as voice.ogg."""
        ...
