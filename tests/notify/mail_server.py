"""A real SMTP server on 127.0.0.1: a login, STARTTLS or TLS under a self-made certificate, recipients it refuses."""

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from cortex.notify.context import SmtpServer

USER, PASSWORD = "cortex@example.org", "correct horse"
SENDER = "cortex@example.org"


class Mailbox:
    """What the server took, and what it says no to. `refusals`: recipient or sender -> the server's line."""

    def __init__(self, *, drops_at_data: bool = False, data_answer: str = "250 OK") -> None:
        self.mails: list[Envelope] = []
        self.greetings: list[str] = []
        self.refusals: dict[str, str] = {}
        self.is_secure: list[bool] = []
        self.logins: list[bool] = []
        self._drops_at_data = drops_at_data
        self._data_answer = data_answer

    async def handle_EHLO(self, server: SMTP, session: Session, envelope: Envelope, name: str, lines: list[str]) -> Any:
        session.host_name = name
        self.greetings.append(name)
        return lines

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        self.logins.append(session.authenticated is True)
        return self.refusals.get(address, "250 OK")

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        answer = self.refusals.get(address, "250 OK")
        envelope.rcpt_tos += [address] * answer.startswith("250")
        return answer

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        transport = server.transport
        assert isinstance(transport, asyncio.Transport)
        if self._drops_at_data:
            transport.abort()
        self.mails.append(envelope)
        self.is_secure.append(transport.get_extra_info("sslcontext") is not None)
        return self._data_answer


@asynccontextmanager
async def mail_server(
    mailbox: Mailbox,
    *,
    security: Literal["starttls", "tls", "none"] = "none",
    certificate: Path | None = None,
    offers_login: bool = True,
) -> AsyncIterator[SmtpServer]:
    """The server while it runs, as Cortex's settings would name it."""
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)

    def connected() -> SMTP:
        return SMTP(
            mailbox,
            hostname="mail.test",
            tls_context=context if security == "starttls" else None,
            auth_require_tls=False,
            authenticator=_authenticated if offers_login else None,
            auth_exclude_mechanism=None if offers_login else ["LOGIN", "PLAIN"],
            loop=asyncio.get_running_loop(),
        )

    inner = context if security == "tls" else None
    server = await asyncio.get_running_loop().create_server(connected, "127.0.0.1", 0, ssl=inner)
    try:
        port = server.sockets[0].getsockname()[1]
        login = {"user": USER, "password": PASSWORD} if offers_login else {}
        yield SmtpServer(host="127.0.0.1", port=port, security=security, sender=SENDER, **login)
    finally:
        server.close()
        await server.wait_closed()


def _authenticated(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
    is_right = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_right, handled=False)  # handled, and a wrong password would be taken


def self_made_certificate(folder: Path, host: str = "127.0.0.1") -> Path:
    """A file with a certificate for this host, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail.test")])
    now = datetime.now(UTC)
    subject: x509.GeneralName
    subject = x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([subject]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "mail.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(certificate.public_bytes(Encoding.PEM) + private)
    return path
