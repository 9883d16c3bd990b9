"""Keys by OAuth 2 for mail servers that take no passwords: Google's and Microsoft's, by a client id of one's own.

Google: a code with PKCE (RFC 7636), brought back to an address of ours or pasted, since its device flow gives no mail.
Microsoft: a code that the person enters on a page there (device flow, RFC 8628).
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from cortex.base.address import PUBLIC, AddressPolicy
from cortex.base.clock import Clock
from cortex.base.errors import ServiceDown, ToolFailed, UserError
from cortex.base.http import fetch, open_client
from cortex.base.record import Veiled

ANSWER_BYTES = 100_000
TOKEN_CHARACTERS = 20_000
WAITS = ("authorization_pending", "slow_down")
ENDED = "The login at {name} has ended or was withdrawn. Log in there once more."
EXPIRED = "The code was not entered in time. Begin the login once more."


class OAuthProvider(Struct, frozen=True, kw_only=True):
    """Where a provider gives keys. `device_url`: "" where it gives none so; `host`: its mail server."""

    name: str
    host: str
    authorize_url: str
    token_url: str
    scope: str
    device_url: str = ""


GOOGLE = OAuthProvider(
    name="Google",
    host="imap.gmail.com",
    authorize_url="https://accounts.google.com/o/oauth2/v2/auth",
    token_url="https://oauth2.googleapis.com/token",  # noqa: S106 - an address
    scope="https://mail.google.com/",
)
MICROSOFT = OAuthProvider(
    name="Microsoft",
    host="outlook.office365.com",
    authorize_url="https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
    token_url="https://login.microsoftonline.com/common/oauth2/v2.0/token",  # noqa: S106 - an address
    device_url="https://login.microsoftonline.com/common/oauth2/v2.0/devicecode",
    scope="https://outlook.office.com/IMAP.AccessAsUser.All offline_access",
)


class Tokens(Veiled, Struct, frozen=True, kw_only=True):
    """Keys. `access`: sent to the mail server until `until`; `refresh`: by which another one is had."""

    VEILED = ("access", "refresh")

    access: str
    refresh: str
    until: datetime

    @property
    def kept(self) -> dict[str, Any]:
        """Return what is sealed of them."""
        return {"access": self.access, "refresh": self.refresh, "until": self.until.isoformat()}

    @classmethod
    def from_kept(cls, kept: Mapping[str, Any]) -> "Tokens":
        """Return them as they were sealed."""
        return cls(
            access=str(kept["access"]), refresh=str(kept["refresh"]), until=datetime.fromisoformat(str(kept["until"]))
        )


class DeviceCode(Veiled, Struct, frozen=True, kw_only=True):
    """A code that a person enters at `url`; `code` is ours, by which is asked whether they did."""

    VEILED = ("code",)

    url: str
    user_code: str
    code: str
    every_s: int
    until: datetime


class OAuthClient(Struct, frozen=True, kw_only=True):
    """A client of one provider. `secret`: "" where its kind has none; `policy`: where its addresses may lead."""

    provider: OAuthProvider
    id: str
    secret: str
    clock: Clock
    policy: AddressPolicy = PUBLIC

    def address(self, redirect: str, state: str, verifier: str, login: str) -> str:
        """Where the person logs in. `verifier`: kept here, so that the code is of use to nobody else."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        given = {
            "client_id": self.id,
            "redirect_uri": redirect,
            "response_type": "code",
            "scope": self.provider.scope,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "login_hint": login,
            "access_type": "offline",
            "prompt": "consent",
        }
        return f"{self.provider.authorize_url}?{urlencode(given)}"

    async def by_code(self, code: str, redirect: str, verifier: str) -> Tokens:
        """The keys for a code that came back. UserError where it is of no use any more."""
        given = {"code": code, "redirect_uri": redirect, "code_verifier": verifier, "grant_type": "authorization_code"}
        return self._tokens(await self._asked(self.provider.token_url, given), "")

    async def device(self) -> DeviceCode:
        """A code for a person to enter there."""
        got = await self._asked(self.provider.device_url, {"scope": self.provider.scope})
        url, shown, code = (_text(got.get(name)) for name in ("verification_uri", "user_code", "device_code"))
        if not (url.startswith("https://") and shown and code):
            raise ServiceDown(f"{self.provider.name} gave no code.")
        until = self.clock() + timedelta(seconds=_number(got.get("expires_in"), 900))
        return DeviceCode(url=url, user_code=shown, code=code, every_s=_number(got.get("interval"), 5), until=until)

    async def by_device(self, code: str) -> Tokens | None:
        """The keys once the person entered the code; None until then. UserError where they refused, or too late."""
        given = {"device_code": code, "grant_type": "urn:ietf:params:oauth:grant-type:device_code"}
        got = await self._asked(self.provider.token_url, given, taken=WAITS)
        return None if got.get("error") in WAITS else self._tokens(got, "")

    async def renewed(self, tokens: Tokens) -> Tokens:
        """New keys for these. UserError where the login has ended."""
        given = {"refresh_token": tokens.refresh, "grant_type": "refresh_token", "scope": self.provider.scope}
        return self._tokens(await self._asked(self.provider.token_url, given), tokens.refresh)

    async def _asked(self, url: str, given: Mapping[str, str], taken: tuple[str, ...] = ()) -> Mapping[str, Any]:
        fields = {**given, "client_id": self.id, **({"client_secret": self.secret} if self.secret else {})}
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        name = self.provider.name
        async with open_client(self.policy, follow_redirects=False) as client:
            try:
                got = await fetch(
                    client,
                    url,
                    method="POST",
                    headers=headers,
                    content=urlencode(fields).encode(),
                    max_bytes=ANSWER_BYTES,
                )
            except ToolFailed:
                raise ServiceDown(f"{name} could not be reached for the login.") from None
        try:
            said = json.loads(got.text)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict) or got.is_cut:
            raise ServiceDown(f"{name} gave no answer to the login that can be read (HTTP {got.status}).")
        error = _text(said.get("error"))
        if got.status == 200 or error in taken:
            return said
        if error in ("invalid_grant", "access_denied", "interaction_required"):
            raise UserError(ENDED.format(name=name))
        if error in ("expired_token", "code_expired"):
            raise UserError(EXPIRED)
        if error in ("invalid_client", "unauthorized_client"):
            raise UserError(f"{name} does not know this client: an admin must check its id and secret in Settings.")
        raise ServiceDown(f"{name} refused the login (HTTP {got.status}).")

    def _tokens(self, got: Mapping[str, Any], refresh: str) -> Tokens:
        access, new = _text(got.get("access_token")), _text(got.get("refresh_token")) or refresh
        if not access or not access.isascii() or not access.isprintable() or not new:
            raise ServiceDown(f"{self.provider.name} gave no key for mail.")
        return Tokens(
            access=access, refresh=new, until=self.clock() + timedelta(seconds=_number(got.get("expires_in"), 3_600))
        )


def new_verifier() -> str:
    """A secret of one login (RFC 7636)."""
    return secrets.token_urlsafe(48)


def _text(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= TOKEN_CHARACTERS else ""


def _number(value: Any, otherwise: int) -> int:
    text = str(value)
    return min(max(int(text), 1), 86_400) if text.isdecimal() and len(text) < 9 else otherwise
