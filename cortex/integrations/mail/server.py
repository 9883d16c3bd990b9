"""Where a mail server is and by which key it is entered; what is known of the large ones. Opens nothing."""

from typing import Literal

from msgspec import Struct

from cortex.base.address import PUBLIC, AddressPolicy, named
from cortex.base.errors import UserError
from cortex.base.record import Veiled
from cortex.base.web_address import ascii_host

Security = Literal["tls", "starttls", "none"]
PORTS = {"tls": 993, "starttls": 143, "none": 143}
NO_HOST = "This is no name of a mail server: write it such as imap.example.org."
NO_PORT = "A port is a number from 1 to 65535; mostly 993."
NO_NAME = "Enter the name by which you log in there, mostly your mail address."
NO_KEY = "Enter the password, best an app password, of your account there."
READABLE = "Without TLS the password travels readably: choose TLS or STARTTLS."
KEY_CHARACTERS = 2_000


class MailServer(Veiled, Struct, frozen=True, kw_only=True):
    """One server for one person. `token`: of OAuth 2, in place of a password.

    `is_inside`: an admin named this very host and port, which stands in the network; else only public ones are reached.
    """

    VEILED = ("password", "token")

    host: str
    port: int
    security: Security
    username: str = ""
    password: str = ""
    token: str = ""
    is_inside: bool = False

    @property
    def policy(self) -> AddressPolicy:
        """Return what may be reached for it."""
        return named((self.host, self.port)) if self.is_inside else PUBLIC


class MailProvider(Struct, frozen=True, kw_only=True):
    """A large provider. `domains`: of addresses there; `hint`: what its people need to know; `way`: how they log in."""

    name: str
    host: str
    domains: tuple[str, ...] = ()
    port: int = 993
    security: Security = "tls"
    hint: str = ""
    way: Literal["password", "google", "microsoft"] = "password"


APP_PASSWORD = "Make an app password in the account's security settings there, and enter it here."  # noqa: S105
ALLOW_IMAP = "Allow POP3 and IMAP in the settings of your mail there first."
PROVIDERS = (
    MailProvider(
        name="Gmail",
        host="imap.gmail.com",
        domains=("gmail.com", "googlemail.com"),
        way="google",
        hint="Log in with Google, or make an app password at myaccount.google.com/apppasswords.",
    ),
    MailProvider(
        name="Outlook",
        host="outlook.office365.com",
        domains=("outlook.com", "hotmail.com", "live.com", "msn.com", "outlook.de", "hotmail.de", "hotmail.fr"),
        way="microsoft",
        hint="Log in with Microsoft: it takes no password of mail programs any more.",
    ),
    MailProvider(
        name="iCloud",
        host="imap.mail.me.com",
        domains=("icloud.com", "me.com", "mac.com"),
        hint="Make an app-specific password at account.apple.com, and enter it here.",
    ),
    MailProvider(name="Fastmail", host="imap.fastmail.com", domains=("fastmail.com", "fastmail.fm"), hint=APP_PASSWORD),
    MailProvider(
        name="mailbox.org",
        host="imap.mailbox.org",
        domains=("mailbox.org",),
        hint="Your password there, or an app password where you log in with a second factor.",
    ),
    MailProvider(
        name="GMX",
        host="imap.gmx.net",
        domains=("gmx.de", "gmx.net", "gmx.at", "gmx.ch"),
        hint=ALLOW_IMAP,
    ),
    MailProvider(name="WEB.DE", host="imap.web.de", domains=("web.de",), hint=ALLOW_IMAP),
    MailProvider(
        name="T-Online",
        host="secureimap.t-online.de",
        domains=("t-online.de", "magenta.de"),
        hint="Make a password for mail programs in the settings of your mail there, and enter it here.",
    ),
    MailProvider(
        name="Yahoo",
        host="imap.mail.yahoo.com",
        domains=("yahoo.com", "yahoo.de", "yahoo.fr", "yahoo.it", "yahoo.es", "yahoo.co.uk", "ymail.com"),
        hint=APP_PASSWORD,
    ),
    MailProvider(name="AOL", host="imap.aol.com", domains=("aol.com", "aol.de"), hint=APP_PASSWORD),
    MailProvider(
        name="Posteo",
        host="posteo.de",
        domains=("posteo.de", "posteo.net", "posteo.org", "posteo.eu"),
        hint="Your password there, or an app password where you log in with a second factor.",
    ),
)


def provider_of(address: str) -> MailProvider | None:
    """The large provider of a mail address; None for any other."""
    domain = address.strip().rpartition("@")[2].lower()
    return next((one for one in PROVIDERS if domain in one.domains), None)


def mail_server_at(
    host: str, port: int, security: Security, key: tuple[str, str], inside: frozenset[tuple[str, int]]
) -> MailServer:
    """The server as people write it. `key`: name and password; `inside`: hosts and ports that an admin named.

    UserError for what is no host, and for a key that cannot be one or would be sent readably over the internet.
    """
    username, password = key[0].strip(), key[1]
    try:
        name = ascii_host(host.strip())
    except ValueError as error:
        raise UserError(NO_HOST, field="host") from error
    if not 0 < port < 65_536:
        raise UserError(NO_PORT, field="port")
    if not username or not username.isprintable() or len(username) > KEY_CHARACTERS:
        raise UserError(NO_NAME, field="username")
    if not password or not password.isprintable() or len(password) > KEY_CHARACTERS:  # a line end would be a command
        raise UserError(NO_KEY, field="password")
    is_inside = (name, port) in inside
    if security == "none" and not is_inside:
        raise UserError(READABLE, field="security")
    return MailServer(
        host=name, port=port, security=security, username=username, password=password, is_inside=is_inside
    )
