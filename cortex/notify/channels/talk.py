"""Nextcloud Talk: a notice as a post in a room that the person chose, by the account of the integrations page."""

import re

from msgspec.structs import replace

from cortex.base.errors import DeliveryError, ServiceDown, ToolFailed, UserError
from cortex.notify import ChannelContext, ChannelField, ChannelKind, ready
from cortex.notify.words import cut, label, link, shown
from cortex.ports.channels import Notice, Target

LACKS = "Nextcloud Talk is not set up on this server."
TEXT_BYTES = 16_000
_LINK = re.compile(r"https?://[\x21-\x7e]{1,400}/call/[A-Za-z0-9]{4,32}/?")

_CALL = re.compile(r"(?<!\w)@(?=[\w\"])")


class TalkRoom:
    """Posts in one room. Talk tells its members, but for the account that posts: it is Cortex's own."""

    def __init__(self, context: ChannelContext) -> None:
        self._context = context

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
        rooms = self._context.talk
        if rooms is None:
            raise DeliveryError(LACKS, fate="refused")
        try:
            await rooms.post(target.key, target.address, notice.id, self._text(shown(notice)))
        except ServiceDown as error:
            raise DeliveryError(error.message, fate="later") from None
        except ToolFailed as error:
            raise DeliveryError(error.message, fate="refused") from None

    def _text(self, notice: Notice) -> str:
        site = self._context.site
        links = [f"{label(action)}: {link(site, action.path)}" for action in notice.actions]
        words = [notice.title, cut(notice.text, TEXT_BYTES), *links, link(site, notice.path)]
        return _quiet("\n".join(filter(None, words)))


def _quiet(text: str) -> str:
    """The text without calls on people: a word of a notice must not ring everybody in the room."""
    return _CALL.sub("@\u200b", text)


async def _lacks_for(context: ChannelContext, user_id: str) -> str:
    return await context.talk.lacks(user_id) if context.talk else LACKS


CHANNEL = ChannelKind(
    label="Nextcloud Talk",
    order=40,
    open=TalkRoom,
    tested="a double of its documented API",
    lacks_for=_lacks_for,
    at_once=2,
    fields=(ChannelField(name="address", label="Link to the room", placeholder="https://cloud.example.org/call/…"),),
)
