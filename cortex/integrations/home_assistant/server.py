"""Where a Home Assistant is and how it is entered: the address in parts, the token, whether its certificate is checked.

Used by the connection, the history reader and the form; opens nothing.
"""

import ssl
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from cortex.base.address import AddressPolicy, named
from cortex.base.errors import ServiceDown, ToolFailed, UserError
from cortex.base.record import Veiled
from cortex.base.web_address import web_place

TroubleKind = Literal["away", "slow", "refused", "certificate", "not_it", "lost"]
USUAL_PORT = 8123
PLACE = "under Integrations"


class HomeServer(Veiled, Struct, frozen=True, kw_only=True):
    """One Home Assistant. `is_checked`: its certificate must be one that is trusted.

    `ca`: the authority, as PEM, that alone is trusted then; "" = those of this machine.
    """

    VEILED = ("token",)

    host: str
    port: int
    is_tls: bool
    token: str
    is_checked: bool = True
    ca: str = ""

    @property
    def place(self) -> str:
        """Host and port, as a person writes them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Its own address, without a slash at the end."""
        return f"{'https' if self.is_tls else 'http'}://{self.place}"

    @property
    def socket_url(self) -> str:
        """The address of its websocket."""
        return f"{'wss' if self.is_tls else 'ws'}://{self.place}/api/websocket"

    @property
    def policy(self) -> AddressPolicy:
        """Return what may be reached for it: exactly this host and port."""
        return named((self.host, self.port))

    def context(self) -> ssl.SSLContext:
        """Return what TLS accepts here. Reading what this machine trusts takes 30 to 150 ms: once, in a thread."""
        if self.is_checked:
            return ssl.create_default_context(cadata=self.ca or None)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context


def server_at(address: str, token: str, *, is_checked: bool = True, ca: str = "") -> HomeServer:
    """The server of an address as people write or paste it: a bare host, or with scheme, port and the path of a page.

    Raises UserError for what is no address and for a token that can't be one.
    """
    text = address.strip()
    bare = "://" not in text
    try:
        host, _ = web_place(f"http://{text}" if bare else text)
        parts = urlsplit(f"http://{text}" if bare else text)
        port = parts.port
    except ValueError as error:
        raise _no_address() from error
    if parts.username is not None:
        raise _no_address()
    is_tls = parts.scheme == "https"
    usual = USUAL_PORT if bare else 443 if is_tls else 80
    word = token.strip()
    if not word or not word.isascii() or not word.isprintable() or " " in word:
        raise UserError("Enter a long-lived access token: in Home Assistant, your profile, Security.", field="token")
    return HomeServer(host=host, port=port or usual, is_tls=is_tls, token=word, is_checked=is_checked, ca=ca)


def _no_address() -> UserError:
    return UserError("Write the address as http://homeassistant.local:8123.", field="address")


class HomeTrouble(ServiceDown):
    """Home Assistant could not be used. `kind`: what is wrong, in closed words, for retries and for the form."""

    def __init__(self, kind: TroubleKind, message: str) -> None:
        """Keep the kind; the message holds no word of the other side."""
        super().__init__(message)
        self.kind = kind

    def again(self) -> "HomeTrouble":
        """The same, to be raised for somebody else."""
        return HomeTrouble(self.kind, self.message)


class HomeRefusal(ToolFailed):
    """Home Assistant answered a command with an error. `code`: its own word for it, such as unknown_command."""

    def __init__(self, code: str, text: str) -> None:
        """Quote its words, which are from outside."""
        shown = " ".join(text.split())[:300].rstrip(".")
        super().__init__(f"Home Assistant refused: {shown or code}.", is_tainted=True)
        self.code = code


def unanswered(seconds: float) -> HomeTrouble:
    """Return what to say of an answer that did not come in time."""
    return HomeTrouble("slow", f"Home Assistant did not answer within {seconds:g} seconds. Try again in a minute.")
