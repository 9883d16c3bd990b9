"""Hands a mail to the configured server over a connection that the egress rule vetted; its refusals in words.

One connection a mail. The server is reached at exactly the host and port that an admin set.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Mapping, Sequence

import aiosmtplib
from msgspec import Struct

from cortex.base.address import named
from cortex.base.dial import vetted
from cortex.base.errors import DeliveryError, NotAllowed, chain
from cortex.base.server_settings import row_of
from cortex.notify.context import SmtpServer
from cortex.notify.words import cut, one_line

COMMAND_S = 15.0
LEAVE_S = 2.0
SAID_BYTES = 160


async def hand_over(server: SmtpServer, mail: bytes, to: Sequence[str], total_s: float) -> Mapping[str, str]:
    """Send it; for each recipient that the server refused while it took others, its reason.

    DeliveryError when it went to nobody; `is_unknown` when the line died while the server was taking it.
    """
    course = _Course()
    client = aiosmtplib.SMTP(hostname=server.host, timeout=COMMAND_S)
    try:
        async with asyncio.timeout(total_s):
            await _connect(client, server)
            refused = await _give(client, server.sender, mail, to, course)
        with contextlib.suppress(aiosmtplib.SMTPException, OSError):  # the mail is theirs, however they take leave
            await client.quit(timeout=LEAVE_S)
    except NotAllowed as error:
        raise DeliveryError(error.message, fate="refused") from None
    except (aiosmtplib.SMTPException, OSError, ValueError) as error:
        if course.is_given and isinstance(error, OSError):
            text = "The mail server hung up while it took the mail, which may have been sent or not."
            raise DeliveryError(text, fate="later", is_unknown=True) from None
        raise _failure(server, error) from None
    finally:
        client.close()
    return {address: _quoted(server, answer.code, answer.message) for address, answer in refused.items()}


class _Course(Struct):
    """The way of a mail: whether its text was given to the server yet."""

    is_given: bool = False


async def _connect(client: aiosmtplib.SMTP, server: SmtpServer) -> None:
    """Dial, greet, secure the line, log in."""
    context = None if server.security == "none" else await asyncio.to_thread(_trust, server.ca_file)
    line = await _dialled(server)
    await client.connect(
        sock=line,
        local_hostname=_greeting(line),
        username=server.user or None,
        password=server.password if server.user else None,
        use_tls=server.security == "tls",
        start_tls=server.security == "starttls",
        tls_context=context,
    )


async def _give(
    client: aiosmtplib.SMTP, sender: str, mail: bytes, to: Sequence[str], course: _Course
) -> Mapping[str, aiosmtplib.SMTPRecipientRefused]:
    """The envelope, then the mail; the recipients that were refused. SMTPRecipientsRefused when nobody is left."""
    await client.mail(sender)
    refused: dict[str, aiosmtplib.SMTPRecipientRefused] = {}
    for address in to:
        try:
            await client.rcpt(address)
        except aiosmtplib.SMTPRecipientRefused as error:
            refused[address] = error
    if len(refused) == len(to):
        raise aiosmtplib.SMTPRecipientsRefused(list(refused.values()))
    course.is_given = True
    await client.data(mail)
    return refused


async def _dialled(server: SmtpServer) -> socket.socket:
    """A socket connected to the first vetted address that answers."""
    failure: OSError = OSError("no address")
    for address in await vetted(server.host, server.port, named((server.host, server.port))):
        line = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        line.setblocking(False)
        try:
            async with asyncio.timeout(COMMAND_S):
                await asyncio.get_running_loop().sock_connect(line, (address, server.port))
        except OSError as error:
            line.close()
            failure = error
        except asyncio.CancelledError:
            line.close()
            raise
        else:
            return line
    raise failure


def _trust(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except OSError:
            text = f"The certificate file cannot be read. Whoever runs Cortex corrects it in {row_of('smtp_ca_file')}."
            raise DeliveryError(text, fate="refused") from None
    return context


def _greeting(line: socket.socket) -> str:
    """Our own address as EHLO wants it of a machine without a public name (RFC 5321, 4.1.3)."""
    address = str(line.getsockname()[0]).partition("%")[0]
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _failure(server: SmtpServer, error: Exception) -> DeliveryError:
    """The error in words for a person; the server's own stand behind them, never the password."""
    match error:
        case aiosmtplib.SMTPRecipientsRefused():
            answers = [_quoted(server, one.code, one.message) for one in error.recipients]
            is_later = all(400 <= one.code < 500 for one in error.recipients)
            names = ", ".join(one.recipient for one in error.recipients)
            return DeliveryError(
                f"The mail server refuses the recipient {names}: {answers[0]}", fate="later" if is_later else "refused"
            )
        case aiosmtplib.SMTPAuthenticationError():
            text = f"The mail server refuses the login. Whoever runs Cortex checks it in {row_of('smtp_user')}."
            return _answered(server, text, error)
        case aiosmtplib.SMTPSenderRefused():
            text = f"The mail server refuses the sender {server.sender}, which stands in {row_of('smtp_from')}."
            return _answered(server, text, error)
        case aiosmtplib.SMTPResponseException():
            return _answered(server, "The mail server refuses.", error)
    links = list(chain(error))
    if any(isinstance(one, ssl.SSLCertVerificationError) for one in links):
        reason = next(one.verify_message for one in links if isinstance(one, ssl.SSLCertVerificationError))
        hint = f"For a server of your own, whoever runs Cortex names its certificate in {row_of('smtp_ca_file')}."
        return DeliveryError(f"The mail server's certificate cannot be trusted: {reason}. {hint}", fate="later")
    if any(isinstance(one, ssl.SSLError) for one in links):
        text = (
            f"{server.host}:{server.port} does not speak TLS so. Port 465 wants tls, 587 starttls: whoever runs Cortex "
            f"changes it in {row_of('smtp_security')}."
        )
        return DeliveryError(text, fate="refused")
    if any(isinstance(one, TimeoutError) for one in links):
        return DeliveryError(f"The mail server {server.host} did not answer in time.", fate="later")
    if isinstance(error, OSError):
        return DeliveryError(
            f"The mail server {server.host}:{server.port} could not be reached, or hung up.", fate="later"
        )
    if "auth" in str(error).lower():
        text = (
            "The mail server takes no login on this port. Whoever runs Cortex tries 587, or empties "
            f"{row_of('smtp_user')}."
        )
        return DeliveryError(text, fate="refused")
    return DeliveryError(f"The mail could not be handed over: {_plain(server, str(error))}", fate="refused")


def _answered(server: SmtpServer, text: str, error: aiosmtplib.SMTPResponseException) -> DeliveryError:
    said = _quoted(server, error.code, error.message)
    return DeliveryError(f"{text} It said: {said}", fate="later" if 400 <= error.code < 500 else "refused")


def _quoted(server: SmtpServer, code: int, message: str) -> str:
    return f"{code} {_plain(server, message)}"


def _plain(server: SmtpServer, text: str) -> str:
    line = one_line(text)
    return cut(line.replace(server.password, "[secret]") if server.password else line, SAID_BYTES)
