"""Journals kept on an Aether server, by the contract of `docs/aether.md`, which is Cortex's own.

Each person has a space there under the id of their account. Every request has limits of time and size; whatever goes
wrong is one sentence, and the next request tries again by itself.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode, urlsplit

from pydantic import BaseModel, Field, SecretStr, TypeAdapter, ValidationError, field_validator

from cortex.base import scan
from cortex.base.address import named
from cortex.base.clock import ticks_s
from cortex.base.errors import Conflict, NotFound, ServiceDown, ToolFailed, UserError
from cortex.base.journal_rules import full
from cortex.base.web_address import bare_address, web_place
from cortex.integrations.aether_journals import AetherJournals, read
from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind

if TYPE_CHECKING:  # httpx is read with the first request
    from cortex.base.http import FetchedPage

TOTAL_S = 10.0  # one request
WAIT_MOST_S = 5.0  # what a server that has too many requests may ask for before the person is told
PAGE_BYTES = 8_000_000
_VISIBLE = re.compile(r"[\x21-\x7e]+")


class AetherForm(BaseModel):
    """The fields that an admin fills in on the card."""

    address: str = Field(
        title="Address",
        description="Such as https://aether.example.org. It may be inside your network. docs/aether.md says what "
        "the server must do.",
        max_length=500,
    )
    token: SecretStr = Field(
        title="Token", description="One for the whole server. It gives access to everybody's journals."
    )

    @field_validator("address")
    @classmethod
    def _is_address(cls, text: str) -> str:
        return bare_address(text, "https://aether.example.org")

    @field_validator("token")
    @classmethod
    def _is_token(cls, token: SecretStr) -> SecretStr:
        if not _VISIBLE.fullmatch(token.get_secret_value()):
            raise ValueError("a token is letters, digits and signs, without spaces")
        return token


class _Hello(BaseModel):
    name: Literal["aether"]
    contract: Literal[1]


class AetherServer:
    """The server of a card. `sleep`: tests have their own."""

    def __init__(
        self,
        form: AetherForm,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        total_s: float = TOTAL_S,
    ) -> None:
        """total_s: how long one request may take."""
        self.total_s = total_s
        self.host = urlsplit(form.address).netloc.lower()
        self._root = f"{form.address}/v1"
        self._token = form.token.get_secret_value()
        self._place = web_place(form.address)
        self._sleep = sleep

    async def test(self) -> str:
        """Reach it now: what answered, in a sentence. ToolFailed says what is wrong."""
        begun_s = ticks_s()
        got = await self.send("GET", "")
        read(_Hello, got)
        return f"An Aether server answered in {(ticks_s() - begun_s) * 1000:.0f} ms and takes the token."

    async def close(self) -> None:
        """Nothing is held: each call has connections of its own."""

    def journals(self, user_id: str, time_zone: str, by: str) -> AetherJournals:
        """The journals of one account; `by` is who acts."""
        return AetherJournals(server=self, user_id=user_id, time_zone=time_zone, by=by)

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        version: int | None = None,
    ) -> "FetchedPage":
        """The answer, a good one; NotFound, Conflict, UserError and ToolFailed for the others.

        One that has too many requests is asked once more when it says how soon.
        """
        for is_last in (False, True):
            got = await self._fetch(method, path, query or {}, body, version)
            wait_s = _retry_after_s(got.headers.get("retry-after", ""))
            if got.status != 429 or is_last or wait_s is None or wait_s > WAIT_MOST_S:
                break
            await self._sleep(wait_s)
        if not 200 <= got.status < 300:
            raise self._refused(got)
        return got

    async def _fetch(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None, version: int | None
    ) -> "FetchedPage":
        http = scan.load("cortex.base.http")
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        if version is not None:
            headers["If-Match"] = f'"{version}"'
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = _JSON.dump_json(body)
        asked = f"?{urlencode(query, errors='replace')}" if query else ""
        try:
            async with http.open_client(named(self._place), follow_redirects=False) as client:
                got: FetchedPage = await http.fetch(
                    client,
                    f"{self._root}{path}{asked}",
                    method=method,
                    headers=headers,
                    content=content,
                    max_bytes=PAGE_BYTES,
                    total_s=self.total_s,
                )
        except ToolFailed as error:  # its words show the whole address
            if isinstance(error.__cause__, TimeoutError) or "Timeout" in type(error.__cause__).__name__:
                raise ServiceDown(f"The Aether server did not answer within {self.total_s:g} seconds.") from None
            raise ServiceDown("The Aether server could not be reached; what is kept there stays there.") from None
        if got.is_cut:
            raise ServiceDown("The Aether server sent more than one page may hold.")
        return got

    def _refused(self, got: "FetchedPage") -> Exception:
        """Say what an answer that is no yes means, without the server's own words: nobody vouches for them."""
        code = ""
        with suppress(ValidationError):
            code = _Refusal.model_validate_json(got.body).error.code
        match got.status:
            case 401 | 403:
                return ServiceDown(
                    "The Aether server does not accept its token any more. An admin can enter a new one under "
                    "Integrations."
                )
            case 404:
                return NotFound("This journal or entry does not exist.")
            case 409 if code == "too_many":
                return full()
            case 409:
                return UserError("There is a journal of this name already. Choose another name.", field="name")
            case 410:
                return NotFound("This page of entries no longer exists. Start with the newest.")
            case 412:
                return Conflict("It was changed in the meantime. Check it again.")
            case 429:
                return ServiceDown("The Aether server has too many requests. Try again in a minute.")
            case status if status >= 500:
                return ServiceDown(f"The Aether server has a problem (status {status}). Try again later.")
            case status:
                return ServiceDown(f"The Aether server refused this (status {status}).")


class _Code(BaseModel):
    code: str = Field(default="", max_length=80)


class _Refusal(BaseModel):
    error: _Code


_JSON: TypeAdapter[Any] = TypeAdapter(dict[str, Any])


def _retry_after_s(header: str) -> float | None:
    return float(header) if re.fullmatch(r"\d{1,6}", header.strip()) else None


def integration(_: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="aether",
        title="Aether server",
        about="Keeps everybody's journals on another server instead of here.",
        order=30,
        form=AetherForm,
        open=lambda form, _: AetherServer(form),
        place=("address",),
        has_roles=False,
        note="docs/aether.md says what such a server must do. Journals written here before stay here and are "
        "shown again when the server is switched off. Access is per person, not per role: all journals of a "
        "person are in one place.",
    )
