"""Telegram: a notice as a message in the chat that its person linked under Account, Messengers."""

from cortex.base.errors import DeliveryError, UserError
from cortex.notify import ChannelContext, ChannelKind
from cortex.notify.words import cut, label, link, shown
from cortex.ports.channels import Notice, Target

MESSENGER = "telegram"
LACKS = "Telegram is not set up on this server."
TEXT_BYTES = 3_000


class LinkedChat:
    """Writes to the person's own chat with the bot."""

    def __init__(self, context: ChannelContext) -> None:
        self._context = context

    def checked(self, target: Target) -> Target:
        """Refuse any that was typed: the link is the address."""
        if target.address:
            raise UserError("Link your Telegram under Account, Messengers.")
        return target

    async def send(self, notice: Notice, target: Target) -> None:
        """Send it."""
        messengers = self._context.messengers
        if messengers is None:
            raise DeliveryError(LACKS, fate="refused")
        said, site = shown(notice), self._context.site
        links = [f"{label(action)}: {link(site, action.path)}" for action in said.actions]
        words = [said.title, cut(said.text, TEXT_BYTES), "\n".join([*links, link(site, said.path)])]
        is_silent = said.urgency == "low"
        await messengers.tell(MESSENGER, target.key, "\n\n".join(filter(None, words)), is_silent=is_silent)


async def _lacks_for(context: ChannelContext, user_id: str) -> str:
    return await context.messengers.lacks(MESSENGER, user_id) if context.messengers else LACKS


CHANNEL = ChannelKind(
    label="Telegram",
    order=35,
    open=LinkedChat,
    is_linked=True,
    nowhere="Not linked: link your Telegram under Account, Messengers.",
    tested="a double of its documented API",
    lacks_for=_lacks_for,
    at_once=2,
)
