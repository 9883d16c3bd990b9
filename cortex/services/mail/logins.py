"""Logins at providers whose mail servers take keys by OAuth 2: begun, brought to an end, renewed.

What is under way is sealed among the person's secrets, so that it outlives a restart; it ends in ten minutes.
"""

import asyncio
import hmac
import json
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from cortex.base.clock import Clock
from cortex.base.crypto import Vault
from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.integrations.mail.oauth import OAuthClient, Tokens, new_verifier
from cortex.integrations.mail.server import MailServer
from cortex.storage.db import Database
from cortex.storage.mail import Way
from cortex.storage.secrets import SecretsRepository

UNDER_WAY = "mail-login"
ENDS = timedelta(minutes=10)
NONE_BEGUN = "No login is under way, or it took too long. Begin it once more."
NOT_OURS = "This address does not belong to the login that was begun last. Paste the whole of it."
LOOPBACK = "http://127.0.0.1/"
NO_CLIENT = "Logins by {name} need a client id of your own, which an admin enters in Settings: see the guide Mail."


class LoginBegun(Struct, frozen=True, kw_only=True):
    """A login. `url`: where the person logs in; `user_code`: what they enter there, "" where they bring one back."""

    way: Way
    url: str
    user_code: str = ""
    every_s: int = 5


class LoggedIn(Struct, frozen=True, kw_only=True):
    """A login that has come to its end."""

    way: Way
    address: str
    tokens: Tokens


class MailLogins(Struct, frozen=True, kw_only=True):
    """The logins of people. `clients`: of the providers for which an admin entered one."""

    db: Database
    vault: Vault
    clock: Clock
    clients: Mapping[Way, OAuthClient]

    def server(self, way: Way, inside: frozenset[tuple[str, int]]) -> MailServer:
        """The mail server of a provider."""
        host = self._client(way).provider.host
        port = next((port for name, port in inside if name == host), 993)
        return MailServer(host=host, port=port, security="tls", is_inside=(host, port) in inside)

    async def begin(self, user: User, way: Way, address: str) -> LoginBegun:
        """Begin a login, at whose end the person enters a code there, or pastes the address that they are sent to.

        UserError where no client is set up, ServiceDown where the provider gives no code.
        """
        client = self._client(way)
        if client.provider.device_url:
            code = await client.device()
            held = {"device": code.code}
            begun = LoginBegun(way=way, url=code.url, user_code=code.user_code, every_s=code.every_s)
            await self._hold(user, way, address, held, code.until)
            return begun
        state, verifier = secrets.token_urlsafe(24), new_verifier()
        held = {"state": state, "verifier": verifier}
        await self._hold(user, way, address, held, self.clock() + ENDS)
        return LoginBegun(way=way, url=client.address(LOOPBACK, state, verifier, address))

    async def finish(self, user: User, pasted: str = "") -> LoggedIn | None:
        """The keys of the login that is under way; None where the person has not entered the code yet.

        `pasted`: the address to which the provider sent them back. UserError where there is none, or of another login.
        """
        held = await self._held(user)
        client = self._client(held["way"])
        if "device" in held:
            tokens = await client.by_device(held["device"])
        else:
            tokens = await client.by_code(_code(pasted, held["state"]), LOOPBACK, held["verifier"])
        if tokens is None:
            return None
        await self.db.repository(SecretsRepository, user.id).remove(UNDER_WAY)
        return LoggedIn(way=held["way"], address=held["address"], tokens=tokens)

    async def renewed(self, way: Way, tokens: Tokens) -> Tokens:
        """New keys for these; UserError where the login has ended."""
        return await self._client(way).renewed(tokens)

    def _client(self, way: Way) -> OAuthClient:
        if way not in self.clients:
            raise UserError(NO_CLIENT.format(name=way.capitalize()))
        return self.clients[way]

    async def _hold(self, user: User, way: Way, address: str, held: Mapping[str, str], until: datetime) -> None:
        text = json.dumps({**held, "way": way, "address": address.strip(), "until": until.isoformat()})
        sealed = await asyncio.to_thread(self.vault.seal, text)
        await self.db.repository(SecretsRepository, user.id).put(UNDER_WAY, sealed)

    async def _held(self, user: User) -> dict[str, Any]:
        sealed = await self.db.repository(SecretsRepository, user.id).get(UNDER_WAY)
        if sealed is None:
            raise UserError(NONE_BEGUN)
        held: dict[str, Any] = json.loads(await asyncio.to_thread(self.vault.unseal, sealed))
        if datetime.fromisoformat(held["until"]) <= self.clock():
            raise UserError(NONE_BEGUN)
        return held


def _code(pasted: str, state: str) -> str:
    """The code in an address that a provider sent a person back to."""
    given = parse_qs(urlsplit(pasted.strip()).query, max_num_fields=20) if len(pasted) < 10_000 else {}
    came = given.get("state", [""])[0]
    if not hmac.compare_digest(came.encode(), state.encode()):
        raise UserError(NOT_OURS)
    if given.get("error"):
        raise UserError("The login was refused there. Begin it once more.")
    if not given.get("code"):
        raise UserError(NOT_OURS)
    return given["code"][0]
