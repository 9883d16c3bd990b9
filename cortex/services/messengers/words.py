"""The sentences that people read in a messenger from Cortex itself, and the orders that they can write. Pure."""

from collections.abc import Sequence
from typing import Literal

from cortex.ports.messengers import Incoming

Order = Literal["help", "new", "stop", "model", "last"]
ORDERS: dict[str, Order] = {
    "/start": "help",
    "/help": "help",
    "/new": "new",
    "new": "new",
    "/stop": "stop",
    "stop": "stop",
    "/model": "model",
    "/last": "last",
}
DELETED = "That message was deleted here only. It stays in its chat on the page, where you can delete the chat."
ENTERED = "Write to Cortex here as on its page; it is the same chat."
SEALED = "Cortex cannot read encrypted chats, so it left that one. Write here instead: this chat is not encrypted."
NEW = "This is a new chat. The one before stays on the page."
NOT_RUNNING = "No answer is being written."
STOPPED = "Stopped."
NO_ANSWER = "There is no answer in this chat yet."
NO_CHAT = "Write something first."
CUT = "Cortex was interrupted while it sent a message. If an answer is missing here, write /last."
NOT_SHOWN = "A part of the answer cannot be shown here. Open the chat in Cortex."
NO_VOICE = (
    "Cortex cannot listen to voice messages yet: no speech service is set up. Write your message, or ask your "
    "administrator."
)
NO_WORDS = "Cortex heard no words in this voice message."
EARLIER = "This message belongs to an earlier chat. Change it on the page."
NEWER = "Other messages stand below this one. Change it on the page, or write it anew."
NOT_IN_GROUPS = "Choose the model in your own chat, or on the page."
NOT_OPEN = "Cortex is not open to you here any more. Ask your administrator."
UNREAD = "Cortex cannot read messages of this kind yet. Write it in words."
HALTED = "Work is stopped in Cortex at the moment; your message waits until it goes on."
LONG_VOICE = "Cortex listens to 10 minutes at a time. Send it in shorter parts."
MUCH_VOICE = "Cortex has listened to much of you in this hour. Write your message, or send it later."
EXPIRED = "Nobody answered in time, so it was not done."
ALLOWED, DENIED = "Allowed.", "Denied."
ELSEWHERE = "This can be answered on Cortex's page only."
NOT_YOURS = "This question is not for you."
UNKNOWN_BUTTON = "This button does not work any more."


def strangers_of(messenger: str) -> str:
    """Return the key under which lines to all its strangers are counted."""
    return f"messenger:{messenger}"


def greeting(code: str) -> str:
    """The line for a stranger."""
    return (
        f"This is a private assistant. To use it, log in to its page and enter the code {code[:4]} {code[4:]} under "
        "Account, Messengers, within ten minutes."
    )


def help_of(sign: str) -> str:
    """The orders that there are. `sign`: what stands ahead of them."""
    return (
        f"{ENTERED}\n\n"
        f"- {sign}new begins another chat\n"
        f"- {sign}stop ends the answer that is being written\n"
        f"- {sign}model shows the models, {sign}model NAME chooses one\n"
        f"- {sign}last shows the last answer once more"
    )


def closed_group(chat: str) -> str:
    """The line for a group that no admin allowed."""
    return f"Cortex does not answer in this group. An administrator can allow it under Integrations: its id is {chat}."


def order_of(item: Incoming) -> tuple[Order | None, str]:
    """The order that a message is, and what stands behind it; None for what is said to the model."""
    if item.is_forwarded or item.quoted or item.files:
        return None, ""
    word, _, rest = item.text.strip().partition(" ")
    word = word.casefold()
    word = f"/{word[1:]}" if word.startswith("!") else word  # clients that take /new for an order of their own
    order = ORDERS.get(word)
    if order is None or (rest.strip() and order != "model" and word != "/start"):
        return None, ""
    return order, rest.strip()


def message_of(item: Incoming, spoken: str = "") -> tuple[str, bool]:
    """The words as they are kept, with those of a recording, and whether words of others are among them."""
    text = "\n\n".join(filter(None, (item.text.strip(), spoken.strip())))
    if item.is_forwarded:
        return f"I forward this message of somebody else:\n\n{_quoted(text)}" if text else "", True
    if item.quoted.strip():
        return f"{text}\n\nThis answers the message:\n\n{_quoted(item.quoted)}", True
    return text, False


def models(names: Sequence[str], chosen: str, sign: str) -> str:
    """The models that there are."""
    lines = [f"- {name}{' (chosen)' if name == chosen else ''}" for name in names]
    return "\n".join([*lines, "", f"Write {sign}model and a name, or {sign}model usual for the usual one."])


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.strip().splitlines())
