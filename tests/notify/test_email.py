"""E-mail through a real SMTP server on this machine: what arrives, and every refusal in words."""

import asyncio
import email
import email.policy
import socket
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cortex.base.errors import DeliveryError, ToolFailed, UserError
from cortex.notify import ChannelContext
from cortex.notify.channels.email import CHANNEL, Email
from cortex.notify.context import SmtpServer
from cortex.notify.letter import Letter, message_id, written
from cortex.ports.channels import Target
from tests.notify.loopback import SITE
from tests.notify.mail_server import PASSWORD, SENDER, Mailbox, mail_server, self_made_certificate
from tests.notify.told import CONTENT, PLAIN, PRIVATE
from tests.patience import PATIENCE_S
from tests.still_clock import StillClock

ADA = Target(address="ada@example.org")
HEADERS = ("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Content-Type", "Content-Transfer-Encoding")
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def mailer(server: SmtpServer, *, total_s: float = PATIENCE_S) -> Email:
    """The channel over this server."""
    channel = CHANNEL.open(ChannelContext(site=SITE, smtp=server, clock=StillClock(), total_s=total_s))
    assert isinstance(channel, Email)
    return channel


def read(raw: bytes | str | None) -> EmailMessage:
    """A mail as a mail program reads it."""
    assert isinstance(raw, bytes)
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


async def test_a_notice_arrives_with_its_links_under_the_login() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as server:
        await mailer(server).send(PLAIN, ADA)
    (mail,) = mailbox.mails
    message = read(mail.content)
    assert (mail.mail_from, mail.rcpt_tos) == (SENDER, ["ada@example.org"])
    assert message["Subject"] == "Water the plants"
    assert message.get_content().replace("\r\n", "\n") == (
        f"The fern first.\n\nOpen: {SITE}/reminders#r1\nDone: {SITE}/go/a1\nSnooze 10 min: {SITE}/go/s1\n"
    )
    assert sorted(message.keys()) == sorted([*HEADERS, "MIME-Version"])
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Date"] == "Fri, 20 Nov 2026 09:00:00 +0000"
    assert (mailbox.greetings, mailbox.logins) == (["[127.0.0.1]"], [True])


async def test_a_second_try_bears_the_same_message_id() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as server:
        for id in ("d-1", "d-1", "d-2"):
            await mailer(server).send(replace(PLAIN, id=id), ADA)
    ids = [read(mail.content)["Message-ID"] for mail in mailbox.mails]
    assert ids[0] == ids[1] != ids[2]
    assert ids[0] == message_id("d-1", SENDER)


async def test_a_private_notice_carries_no_content() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as server:
        await mailer(server).send(PRIVATE, ADA)
    whole = str(read(mailbox.mails[0].content))
    assert [word for word in CONTENT if word in whole] == []
    assert "has something" in whole


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_the_line_is_secured_by_a_certificate_that_the_admin_trusts(security: Any, tmp_path: Path) -> None:
    certificate = self_made_certificate(tmp_path)
    mailbox = Mailbox()
    async with mail_server(mailbox, security=security, certificate=certificate) as server:
        await mailer(replace(server, ca_file=str(certificate))).send(PLAIN, ADA)
    assert mailbox.is_secure == [True]


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_certificate_that_nobody_vouches_for_ends_it_before_the_login(security: Any, tmp_path: Path) -> None:
    certificate = self_made_certificate(tmp_path)
    mailbox = Mailbox()
    async with mail_server(mailbox, security=security, certificate=certificate) as server:
        with pytest.raises(DeliveryError, match=r"cannot be trusted: self-signed.*“Certificate file”") as caught:
            await mailer(server).send(PLAIN, ADA)
    assert caught.value.fate == "later"
    assert mailbox.mails == []


async def test_a_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    certificate = self_made_certificate(tmp_path, host="elsewhere.example")
    async with mail_server(Mailbox(), security="starttls", certificate=certificate) as server:
        with pytest.raises(DeliveryError, match="IP address mismatch"):
            await mailer(replace(server, ca_file=str(certificate))).send(PLAIN, ADA)


async def test_starttls_that_the_server_lacks_is_never_passed_over() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as server:
        with pytest.raises(DeliveryError, match="STARTTLS"):
            await mailer(replace(server, security="starttls")).send(PLAIN, ADA)
    assert mailbox.mails == []


async def test_tls_to_a_port_that_speaks_plain_says_which_setting_is_wrong() -> None:
    async with mail_server(Mailbox()) as server:
        with pytest.raises(DeliveryError, match="Settings, E-mail, “Encryption”"):
            await mailer(replace(server, security="tls")).send(PLAIN, ADA)


async def test_a_wrong_password_is_said_and_not_shown() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as server:
        with pytest.raises(DeliveryError, match=r"refuses the login.*“User name”.*535") as caught:
            await mailer(replace(server, password="wrong horse")).send(PLAIN, ADA)
    assert caught.value.fate == "refused"
    assert "wrong horse" not in caught.value.message
    assert PASSWORD not in repr(server)
    assert mailbox.mails == []


async def test_a_server_without_a_login_needs_none_and_refuses_one() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox, offers_login=False) as server:
        await mailer(server).send(PLAIN, ADA)
        with pytest.raises(DeliveryError, match="takes no login on this port"):
            await mailer(replace(server, user="ada", password="pw")).send(PLAIN, ADA)
    assert len(mailbox.mails) == 1


@pytest.mark.parametrize(
    ("answer", "fate"), [("550 no such user here", "refused"), ("451 greylisted, come again", "later")]
)
async def test_a_refused_recipient_is_named(answer: str, fate: str) -> None:
    mailbox = Mailbox()
    mailbox.refusals["ada@example.org"] = answer
    async with mail_server(mailbox) as server:
        with pytest.raises(DeliveryError, match=f"recipient ada@example.org: {answer}") as caught:
            await mailer(server).send(PLAIN, ADA)
    assert caught.value.fate == fate


async def test_a_refused_sender_is_named() -> None:
    mailbox = Mailbox()
    mailbox.refusals[SENDER] = "553 not yours"
    async with mail_server(mailbox) as server:
        with pytest.raises(DeliveryError, match=r"sender cortex@.*“Sender address”.*553 not yours") as caught:
            await mailer(server).send(PLAIN, ADA)
    assert caught.value.fate == "refused"


@pytest.mark.parametrize(("answer", "fate"), [("552 too large", "refused"), ("452 disk full", "later")])
async def test_a_mail_refused_at_its_end_is_told(answer: str, fate: str) -> None:
    async with mail_server(Mailbox(data_answer=answer)) as server:
        with pytest.raises(DeliveryError, match=answer) as caught:
            await mailer(server).send(PLAIN, ADA)
    assert (caught.value.fate, caught.value.is_unknown) == (fate, False)


async def test_a_line_that_dies_while_the_mail_is_taken_leaves_it_unknown() -> None:
    async with mail_server(Mailbox(drops_at_data=True)) as server:
        with pytest.raises(DeliveryError, match="sent or not") as caught:
            await mailer(server).send(PLAIN, ADA)
        with pytest.raises(ToolFailed) as failed:
            await mailer(server).post(Letter(id="c-1", to=["bob@example.org"], subject="Hello", text="Text"))
    assert (caught.value.fate, caught.value.is_unknown) == ("later", True)
    assert "Nothing was sent" not in failed.value.message


async def test_a_server_that_is_down_is_tried_again() -> None:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        server = SmtpServer(host="127.0.0.1", port=line.getsockname()[1], security="none", sender=SENDER)
        with pytest.raises(DeliveryError, match="could not be reached") as caught:
            await mailer(server).send(PLAIN, ADA)
    assert (caught.value.fate, caught.value.is_unknown) == ("later", False)


async def test_a_server_that_never_greets_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as line:
        server = SmtpServer(host="127.0.0.1", port=line.getsockname()[1], security="none", sender=SENDER)
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(DeliveryError, match="did not answer in time") as caught:
                await mailer(server, total_s=0.2).send(PLAIN, ADA)
    assert caught.value.fate == "later"


@pytest.mark.parametrize("address", ["ada", "ada@example.org\r\nRCPT TO:<bob@example.org>", ""])
async def test_what_is_no_address_is_refused_by_its_field(address: str) -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as server:
        with pytest.raises(UserError, match=r"use another|is no e-mail address") as caught:
            mailer(server).checked(Target(address=address))
        with pytest.raises(DeliveryError):
            await mailer(server).send(PLAIN, Target(address=address))
    assert caught.value.field == "address"
    assert mailbox.greetings == []


def test_without_a_server_it_says_what_is_missing() -> None:
    with pytest.raises(UserError, match="settings name no mail server"):
        CHANNEL.open(ChannelContext(site=SITE))


async def test_a_mail_to_others_names_who_writes_and_who_is_meant_by_an_answer() -> None:
    mailbox = Mailbox()
    to = ["bob@example.org", "eve@bücher.example"]
    async with mail_server(mailbox) as server:
        letter = Letter(
            id="c-1", to=to, subject="Grüße", text="Zum Fest:\n.\nalles Gute 🎄", reply_to="ada@example.org"
        )
        await mailer(server).post(letter)
    (mail,) = mailbox.mails
    message = read(mail.content)
    assert mail.rcpt_tos == ["bob@example.org", "eve@xn--bcher-kva.example"]
    assert (message["Subject"], message["Reply-To"], message["From"]) == (
        "Grüße",
        "ada@example.org",
        f"Cortex <{SENDER}>",
    )
    assert message.get_content().replace("\r\n", "\n") == "Zum Fest:\n.\nalles Gute 🎄\n"
    assert "Auto-Submitted" not in message
    assert "References" not in message


async def test_an_answer_names_the_mails_before_it_whole_and_nothing_else() -> None:
    """Mail programs of companies make ids of 100 characters; a folded one would be none."""
    long = f"<{'AM0PR01MB' * 12}@eurprd01.prod.example.com>"
    thread = {
        "In-Reply-To": long,
        "References": f"<one@example.org> {long} <no id>\r\nBcc: <all@example.org>",
        "Bcc": "x",
    }
    mailbox = Mailbox()
    async with mail_server(mailbox) as server:
        await mailer(server).post(Letter(id="c-1", to=["bob@example.org"], subject="Re: s", text="t", thread=thread))
    raw = mailbox.mails[0].content
    assert isinstance(raw, bytes)
    assert f"In-Reply-To: {long}\r\n".encode() in raw
    assert f"References: <one@example.org>\r\n {long}\r\n <all@example.org>\r\n".encode() in raw
    assert b"Bcc" not in raw


async def test_a_partial_refusal_says_who_got_it_and_who_did_not() -> None:
    mailbox = Mailbox()
    mailbox.refusals["bob@example.org"] = "550 unknown"
    async with mail_server(mailbox) as server:
        with pytest.raises(
            ToolFailed, match=r"Sent to ada@.*, but .* refuses bob@example.org \(550 unknown\)"
        ) as caught:
            await mailer(server).post(
                Letter(id="c-1", to=["ada@example.org", "bob@example.org"], subject="Hello", text="Text")
            )
        with pytest.raises(ToolFailed, match=r"refuses the recipient bob@example.org: .* Nothing was sent\."):
            await mailer(server).post(Letter(id="c-2", to=["bob@example.org"], subject="Hello", text="Text"))
        with pytest.raises(ToolFailed, match="is no e-mail address"):
            await mailer(server).post(Letter(id="c-3", to=["bob"], subject="Hello", text="Text"))
    assert [mail.rcpt_tos for mail in mailbox.mails] == [["ada@example.org"]]
    assert caught.value.is_tainted


@given(subject=ANY_TEXT, text=ANY_TEXT, id=st.text())
def test_no_words_become_a_header_and_every_mail_is_plain_ascii_lines(subject: str, text: str, id: str) -> None:
    letter = Letter(id=id, to=("ada@example.org",), subject=subject + "\r\nBcc: all@example.org", text=text)
    raw = written(letter, SENDER, StillClock()())
    message = read(raw)
    assert raw.isascii()
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert raw.replace(b"\r\n", b"").count(b"\n") == 0
    assert message["Bcc"] is None
    assert message["To"] == "ada@example.org"
    assert not set(message.keys()) - {*HEADERS, "MIME-Version"}


def test_a_long_domain_leaves_the_message_id_whole() -> None:
    sender = "cortex@" + ".".join(["a" * 60] * 3) + ".org"
    raw = written(Letter(id="d-1", to=("ada@example.org",), subject="s", text="t"), sender, StillClock()())
    assert f"Message-ID: {message_id('d-1', sender)}\r\n".encode() in raw
