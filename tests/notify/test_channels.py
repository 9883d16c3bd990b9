"""The channels as a whole: found by their files, set up by settings, tried by a test notice."""

import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from cortex import notify
from cortex.base.errors import DeliveryError, UserError
from cortex.base.settings import load_settings
from cortex.notify import ChannelContext, SmtpServer, Vapid, contact_from, new_key, open_channel, smtp_from, trial
from cortex.notify.webhook import new_secret
from cortex.ports.channels import Target
from tests.notify.browser import Browser
from tests.notify.loopback import SITE, Loopback, Reply
from tests.notify.mail_server import Mailbox, mail_server, self_made_certificate


def test_the_channels_are_the_files() -> None:
    assert notify.names() == ("email", "ntfy", "talk", "web_push", "webhook")
    with pytest.raises(UserError, match=r"Unknown channel 'pigeon'. Available: email, ntfy, talk, web_push, webhook"):
        open_channel("pigeon", ChannelContext(site=SITE))


def test_the_room_alone_loads_nothing_heavy() -> None:
    code = "import sys, cortex.notify; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) & {"pywebpush", "aiosmtplib", "aiohttp", "httpx", "cryptography", "regex"} == set()


async def test_a_test_notice_goes_by_every_channel() -> None:
    browser, mailbox = Browser(), Mailbox()
    vapid = Vapid(keys=(new_key(),), subject="mailto:ada@example.org")
    with Loopback(Reply(), Reply(status=200, body=b'{"id":"1"}'), Reply(status=204)) as server:
        async with mail_server(mailbox) as smtp:
            surroundings = ChannelContext(site=SITE, hosts=frozenset({server.place}), vapid=vapid, smtp=smtp)
            for name, target in {
                "web_push": browser.target(f"{server.origin}/push"),
                "ntfy": Target(address=f"{server.origin}/topic"),
                "webhook": Target(address=f"{server.origin}/hook", secret=new_secret()),
                "email": Target(address="ada@example.org"),
            }.items():
                await open_channel(name, surroundings).send(trial("t-1", name), target)
    pushed, published, called = (seen.body for seen in server.seen)
    assert "Notifications by web push arrive here." in browser.decrypted(pushed).decode()
    assert "Notifications by ntfy arrive here." in published.decode()
    assert "Notifications by webhook arrive here." in called.decode()
    assert "Notifications by email arrive here." in str(mailbox.mails[0].content)


async def test_a_certificate_that_cannot_be_trusted_is_said(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_made_certificate(tmp_path))
    with Loopback(tls=context) as server:
        target = Target(address=f"https://127.0.0.1:{server.place[1]}/hook", secret=new_secret())
        with pytest.raises(DeliveryError, match="certificate that cannot be trusted") as caught:
            await open_channel("webhook", server.surroundings()).send(trial("t-1", "webhook"), target)
    assert (caught.value.fate, caught.value.is_unknown, server.seen) == ("later", False, [])


async def test_https_to_a_port_that_speaks_plain_is_said() -> None:
    with Loopback() as server:
        target = Target(address=f"https://127.0.0.1:{server.place[1]}/hook", secret=new_secret())
        with pytest.raises(DeliveryError, match="does not speak https there"):
            await open_channel("webhook", server.surroundings()).send(trial("t-1", "webhook"), target)


@pytest.mark.parametrize(
    ("settings", "contact"),
    [
        ({"push_subject": "mailto:ops@example.org", "public_url": "https://a.example.org"}, "mailto:ops@example.org"),
        ({"public_url": "https://a.example.org", "smtp_from": "b@example.org"}, "https://a.example.org"),
        ({"public_url": "https://localhost:8443", "smtp_from": "b@example.org"}, "mailto:b@example.org"),
        ({"public_url": "http://a.example.org"}, ""),
        ({"smtp_from": "root@localhost"}, ""),
        ({}, ""),
    ],
    ids=str,
)
def test_the_contact_for_push_services_is_the_best_that_is_known(
    settings: dict[str, str], contact: str, tmp_path: Path
) -> None:
    assert contact_from(load_settings(None, home=tmp_path, **settings)) == contact


@pytest.mark.parametrize(("security", "port"), [("starttls", 587), ("tls", 465), ("none", 25)])
def test_the_mail_server_s_port_follows_how_it_is_secured(security: str, port: int, tmp_path: Path) -> None:
    given = {"smtp_host": "Mail.example.org", "smtp_from": "a@example.org", "smtp_security": security}
    server = smtp_from(load_settings(None, home=tmp_path, **given))
    assert isinstance(server, SmtpServer)
    assert (server.host, server.port, server.security) == ("mail.example.org", port, security)
    assert smtp_from(load_settings(None, home=tmp_path)) is None


def test_places_inside_are_named_by_host_and_port(tmp_path: Path) -> None:
    settings = load_settings(None, home=tmp_path, notify_hosts="Box.lan:80, 10.0.0.5:8080")
    assert settings.notify_places == {("box.lan", 80), ("10.0.0.5", 8080)}
