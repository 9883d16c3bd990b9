"""Nextcloud Talk as tools and notifications use it, by the account that an admin set up on its card."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cortex.ports.outgoing import Post, Room
from cortex.services.integrations.clients import IntegrationClients

KIND = "talk"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTalk:
    """Implements `Talk` for one user; each call asks anew whether it is set up and open to this account."""

    clients: IntegrationClients
    user_id: str

    async def rooms(self) -> Sequence[Room]:
        """The rooms, the latest first."""
        async with self.clients.using(KIND, user_id=self.user_id) as talk:
            found: Sequence[Room] = await talk.rooms()
            return found

    async def post(self, id: str, token: str, text: str) -> None:
        """Post it, once per id."""
        async with self.clients.using(KIND, user_id=self.user_id) as talk:
            await talk.post(id, token, text)

    async def history(self, token: str, most: int, before: int | None) -> Sequence[Post]:
        """The newest posts, oldest first."""
        async with self.clients.using(KIND, user_id=self.user_id) as talk:
            found: Sequence[Post] = await talk.history(token, most, before)
            return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkNotices:
    """Implements `TalkRooms` of `ports/channels.py`. clients: asked for at the first need, as it stands above."""

    clients: Callable[[], IntegrationClients]

    async def lacks(self, user_id: str) -> str:
        """Return what must be done before anything of this account can go there; "" when nothing."""
        integrations = self.clients().integrations
        if await integrations.names(KIND, user_id):
            return ""
        return "An administrator sets Nextcloud Talk up under Integrations, for this account too."

    async def post(self, user_id: str, link: str, id: str, text: str) -> None:
        """Post it in the room of this link, once per id. ToolFailed."""
        async with self.clients().using(KIND, user_id=user_id) as talk:
            await talk.post_at(link, id, text)
