"""Where a calendar or contacts server is and by which key it is entered; what of its own answers may lead elsewhere.

Opens nothing.
"""

from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from cortex.base.address import PUBLIC, AddressPolicy, named
from cortex.base.errors import UserError
from cortex.base.record import Veiled
from cortex.base.web_address import web_place

NO_ADDRESS = "This is no address of a calendar server: write it as in a browser, such as https://cloud.example.org."
NO_NAME = "A name without a colon is needed."
READABLE = "Plain http sends the password readably: take the https address."
KEY_CHARACTERS = 500


class DavServer(Veiled, Struct, frozen=True, kw_only=True):
    """One server for one person. `url`: the address that they gave, whole.

    `is_inside`: an admin named this very host and port, which stands in the network; else only public ones are reached.
    """

    VEILED = ("password",)

    url: str
    username: str = ""
    password: str = ""
    is_inside: bool = False

    @property
    def host(self) -> str:
        """Its host in ASCII."""
        return web_place(self.url)[0]

    @property
    def policy(self) -> AddressPolicy:
        """Return what may be reached for it."""
        return named(web_place(self.url)) if self.is_inside else PUBLIC

    def may_have_key(self, url: str) -> bool:
        """Tell whether the key may be sent there: to its own host, or, by TLS, to one of the same two last labels.

        Large providers keep each person's calendars on a numbered host beside the one that people know.
        """
        try:
            host, port = web_place(url)
            own_host, own_port = web_place(self.url)
        except ValueError:
            return False
        if (host, port) == (own_host, own_port):
            return urlsplit(url).scheme == urlsplit(self.url).scheme
        is_tls = urlsplit(url).scheme == "https" == urlsplit(self.url).scheme
        return is_tls and not self.is_inside and _family(host) == _family(own_host) != ""


def server_at(address: str, username: str, password: str, inside: frozenset[tuple[str, int]]) -> DavServer:
    """The server of an address as people write it. `inside`: hosts and ports in the network that an admin named.

    UserError for what is no address, and for a key that cannot be one or would be sent readably over the internet.
    """
    text = address.strip()
    url = text if "://" in text else f"https://{text}"
    try:
        place = web_place(url)
    except ValueError as error:
        raise UserError(NO_ADDRESS, field="address") from error
    parts = urlsplit(url)
    if parts.username is not None or parts.fragment:
        raise UserError(NO_ADDRESS, field="address")
    if not username.isprintable() or ":" in username or len(username) > KEY_CHARACTERS:
        raise UserError(NO_NAME, field="username")
    is_inside = place in inside
    if parts.scheme == "http" and password and not is_inside:
        raise UserError(READABLE, field="address")
    return DavServer(url=url, username=username.strip(), password=password, is_inside=is_inside)


def _family(host: str) -> str:
    """The two last labels of a name; "" for a number."""
    labels = host.split(".")
    return "" if ":" in host or labels[-1].isdecimal() or len(labels) < 2 else ".".join(labels[-2:])


Access = Literal["off", "busy", "read", "write"]  # what Cortex may see of a calendar, and change in it
