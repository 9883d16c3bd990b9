"""Notices in the chats that people linked at messengers: one channel for each."""

from functools import partial

from cortex.base.errors import DeliveryError, UserError
from cortex.notify import ChannelContext, ChannelKind
from cortex.notify.words import cut, label, link, shown
from cortex.ports.channels import Notice, Target

TEXT_BYTES = 3_000


class LinkedChat:
    """Writes to the person's own chat with Cortex at a messenger."""

    def __init__(self, name: str, title: str, context: ChannelContext) -> None:
        self._name, self._title, self._context = name, title, context

    def checked(self, target: Target) -> Target:
        """Refuse any that was typed: the link is the address."""
        if target.address:
            raise UserError(f"Link your {self._title} under Account, Messengers.")
        return target

    async def send(self, notice: Notice, target: Target) -> None:
        """Send it."""
        messengers = self._context.messengers
        if messengers is None:
            raise DeliveryError(_lacking(self._title), fate="refused")
        said, site = shown(notice), self._context.site
        links = [f"{label(action)}: {link(site, action.path)}" for action in said.actions]
        words = [said.title, cut(said.text, TEXT_BYTES), "\n".join([*links, link(site, said.path)])]
        text, is_silent = "\n\n".join(filter(None, words)), said.urgency == "low"
        await messengers.tell(self._name, target.key, text, is_silent=is_silent, once=f"notice:{notice.id}")


def linked_channel(name: str, title: str, *, order: int, tested: str) -> ChannelKind:
    """The channel of a messenger; its name is that of its file."""
    return ChannelKind(
        label=title,
        order=order,
        open=partial(LinkedChat, name, title),
        is_linked=True,
        nowhere=f"Not linked: link your {title} under Account, Messengers.",
        tested=tested,
        lacks_for=partial(_lacks_for, name, title),
        at_once=2,
    )


async def _lacks_for(name: str, title: str, context: ChannelContext, user_id: str) -> str:
    return await context.messengers.lacks(name, user_id) if context.messengers else _lacking(title)


def _lacking(title: str) -> str:
    return f"{title} is not set up on this server."
