"""Nextcloud Talk: a notice as a post in a room that the person chose, by the account of the integrations page."""

import re
from dataclasses import replace

from cortex.base.errors import DeliveryError, ServiceDown, ToolFailed, UserError
from cortex.notify import ChannelContext, ready
from cortex.notify._words import cut, label, link, shown
from cortex.ports.channels import Notice, Target

TEXT_BYTES = 16_000
_LINK = re.compile(r"https?://[\x21-\x7e]{1,400}/call/[A-Za-z0-9]{4,32}/?")

_CALL = re.compile(r"(?<!\w)@(?=[\w\"])")


def open_channel(surroundings: ChannelContext) -> "TalkRoom":
    """The channel."""
    return TalkRoom(surroundings)


class TalkRoom:
    """Posts in one room. Talk tells its members, but for the account that posts: it is Cortex's own."""

    def __init__(self, surroundings: ChannelContext) -> None:
        self._surroundings = surroundings

    def checked(self, target: Target) -> Target:
        """A room's link, as Talk copies it."""
        address = target.address.strip()
        if not _LINK.fullmatch(address):
            raise UserError(
                "Paste the room's link: in Talk, the room's menu, Copy link. It ends with /call/ and some letters.",
                field="address",
            )
        return replace(target, address=address.rstrip("/"), secret="")

    async def send(self, notice: Notice, target: Target) -> None:
        """Post it; a second try finds the first one's post."""
        target = ready(self, target)
        rooms = self._surroundings.talk
        if rooms is None:
            raise DeliveryError("Nextcloud Talk is not set up on this server.", fate="refused")
        try:
            await rooms.post(target.key, target.address, notice.id, self._text(shown(notice)))
        except ServiceDown as error:
            raise DeliveryError(error.message, fate="later") from None
        except ToolFailed as error:
            raise DeliveryError(error.message, fate="refused") from None

    def _text(self, notice: Notice) -> str:
        site = self._surroundings.site
        links = [f"{label(action)}: {link(site, action.path)}" for action in notice.actions]
        words = [notice.title, cut(notice.text, TEXT_BYTES), *links, link(site, notice.path)]
        return _quiet("\n".join(filter(None, words)))


def _quiet(text: str) -> str:
    """The text without calls on people: a word of a notice must not ring everybody in the room."""
    return _CALL.sub("@\u200b", text)
