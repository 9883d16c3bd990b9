"""Hears what people say in voice messages, by the speech service that an admin set up; so much of it and no more."""

from datetime import timedelta

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.ports.messengers import RemoteFile
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.messengers import words
from cortex.storage.accounts import AccountsRepository

SPEECH = "speech"  # the integration
VOICE_S, VOICE_FREE, VOICE_WINDOW = 600, 60, timedelta(hours=1)


class Listener(Struct, frozen=True, kw_only=True):
    """Hears voice messages of people."""

    clients: IntegrationClients

    async def must_hear(self, user: User, file: RemoteFile) -> None:
        """Refuse what nobody listens to: there is no service, or the recording is too long. UserError."""
        if not await self.clients.integrations.names(SPEECH, user.id):
            raise UserError(words.NO_VOICE)
        if file.length_s > VOICE_S:
            raise UserError(words.LONG_VOICE)

    async def heard(self, user: User, sound: bytes, name: str) -> str:
        """The words of a recording. UserError where there are none, or too many were heard; ToolFailed, ServiceDown."""
        async with self.clients.integrations.db.transaction() as repository:
            tries = repository(AccountsRepository)
            if await tries.try_now(f"voice:{user.id}", VOICE_FREE, VOICE_WINDOW, VOICE_WINDOW):
                raise UserError(words.MUCH_VOICE)
        async with self.clients.using(SPEECH, user_id=user.id) as speech:
            heard: str = (await speech.transcribe(sound, name)).strip()
        if not heard:
            raise UserError(words.NO_WORDS)
        return heard
