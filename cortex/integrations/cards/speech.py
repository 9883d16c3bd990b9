"""A speech service by OpenAI's API for transcriptions, which whisper.cpp, Speaches, LocalAI and vLLM speak too.

The contract: POST {address}/audio/transcriptions, multipart: `file`, `model`, `response_format=json`; it answers
{"text": …} (https://platform.openai.com/docs/api-reference/audio, read 2026-11).
"""

import io
import json
import wave
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, SecretStr, field_validator

from cortex.base import scan
from cortex.base.address import named
from cortex.base.errors import NotAllowed, ServiceDown, ToolFailed
from cortex.base.web_address import bare_address, web_place
from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind
from cortex.ports.messengers import Speech

if TYPE_CHECKING:  # httpx is read with the first request
    from cortex.base.http import FetchedPage

TOTAL_S = 120.0  # a minute of sound takes a small machine about that long
ANSWER_BYTES = 1_000_000
REFUSED = {
    401: "The speech service does not accept the key. An admin can enter another one under Integrations.",
    404: "The speech service does not know this address or model. An admin can check both under Integrations.",
    413: "This recording is too long for the speech service.",
}


class SpeechForm(BaseModel):
    """The fields that an admin fills in on the card."""

    address: str = Field(
        title="Address",
        description="Up to /v1, such as https://api.openai.com/v1 or http://nas.local:8000/v1. It may be inside your "
        "network.",
        max_length=500,
    )
    model: str = Field("whisper-1", title="Model", description="Its name there.", max_length=200)
    key: SecretStr = Field(SecretStr(""), title="Key", description="Leave it empty where none is needed.")

    @field_validator("address")
    @classmethod
    def _is_address(cls, text: str) -> str:
        return bare_address(text, "https://api.openai.com/v1")


class SpeechService:
    """The service of a card."""

    def __init__(self, form: SpeechForm, *, total_s: float = TOTAL_S) -> None:
        """total_s: how long one recording may take."""
        self._form = form
        self._total_s = total_s

    async def test(self) -> str:
        """Have it hear half a second of silence."""
        await self.transcribe(_silence(), "silence.wav")
        return f"The speech service answers, with the model {self._form.model}."

    async def close(self) -> None:
        """Nothing is held: each request has a connection of its own."""

    async def transcribe(self, sound: bytes, name: str) -> str:
        """The words of a recording."""
        fields = {"model": self._form.model, "response_format": "json"}
        got = await self._post(scan.load("cortex.base.http").form_data(fields, "file", name, sound))
        if got[0] in REFUSED:
            raise (ServiceDown if got[0] == 401 else ToolFailed)(REFUSED[got[0]])
        if got[0] != 200:
            raise ServiceDown(f"The speech service refused this (status {got[0]}).")
        try:
            return str(json.loads(got[1])["text"])
        except (ValueError, KeyError, TypeError):
            raise ServiceDown("Something answers at this address, but not as a speech service does.") from None

    async def _post(self, made: tuple[str, bytes]) -> tuple[int, bytes]:
        http = scan.load("cortex.base.http")
        key = self._form.key.get_secret_value()
        headers = {"Content-Type": made[0], **({"Authorization": f"Bearer {key}"} if key else {})}
        opened = http.open_client(named(web_place(self._form.address)), follow_redirects=False, timeout_s=self._total_s)
        try:
            async with opened as client:
                got: FetchedPage = await http.fetch(
                    client,
                    f"{self._form.address}/audio/transcriptions",
                    method="POST",
                    headers=headers,
                    content=made[1],
                    max_bytes=ANSWER_BYTES,
                    total_s=self._total_s,
                )
        except NotAllowed:
            raise
        except ToolFailed as error:
            raise ServiceDown("The speech service cannot be reached, or takes too long.") from error
        return got.status, got.body


def _silence() -> bytes:
    """Half a second of it."""
    kept = io.BytesIO()
    with wave.open(kept, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(16_000))
    return kept.getvalue()


def integration(_: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="speech",
        title="Speech service",
        about="Hears voice messages that people send by a messenger, and writes them down.",
        order=46,
        opens=(Speech,),
        form=SpeechForm,
        open=lambda form, _: SpeechService(form),
        place=("address",),
        has_roles=False,
    )
