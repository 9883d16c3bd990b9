"""The channels as a whole: found by their files, set up by settings, tried by a test notice."""

import ssl
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from msgspec.structs import replace

from cortex.base import scan
from cortex.base.errors import ConfigError, DeliveryError, UserError
from cortex.base.settings import load_settings
from cortex.base.standard_webhooks import new_secret
from cortex.notify import FOLDER, ChannelRegister, trial
from cortex.notify.channels import ntfy, talk, web_push
from cortex.notify.channels.webhook import CHANNEL
from cortex.notify.context import ChannelContext, SmtpServer, Vapid, contact_from, smtp_from
from cortex.notify.push_keys import new_key
from cortex.ports.channels import Target
from tests.children import ROOT
from tests.notify.browser import Browser
from tests.notify.loopback import SITE, Loopback, Reply
from tests.notify.mail_server import Mailbox, mail_server, self_made_certificate


def module(**values: object) -> ModuleType:
    """A channel's module, as a package brings it."""
    made = ModuleType("their_channels.pigeon")
    made.__dict__.update(values)
    return made


def test_the_channels_are_the_files_in_the_order_of_pages() -> None:
    register = ChannelRegister()
    assert {"web_push", "email", "ntfy", "talk", "webhook"} <= set(register.held) == set(scan.modules(FOLDER))
    orders = [kind.order for kind in register.held.values()]
    assert orders == sorted(orders)
    with pytest.raises(UserError, match=r"Unknown channel 'pigeon'. Available: web_push, email, "):
        register.kind("pigeon")


def test_a_channel_from_elsewhere_is_put_beside_ours_and_taken_out_again() -> None:
    register = ChannelRegister()
    shipped = list(register.held)
    register.put({"pigeon": module(CHANNEL=replace(ntfy.CHANNEL, label="Pigeon", order=0))})
    assert list(register.held) == ["pigeon", *shipped]
    assert register.kind("pigeon").label == "Pigeon"
    register.put({})
    assert list(register.held) == shipped


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("ntfy", {"CHANNEL": ntfy.CHANNEL}, "'ntfy' comes with Cortex"),
        ("carrier pigeon", {"CHANNEL": ntfy.CHANNEL}, "'carrier pigeon': use letters"),
        ("pigeon", {"CHANNEL": web_push.CHANNEL}, "'pigeon' needs a field named address"),
        ("pigeon", {}, "'pigeon' has no CHANNEL"),
        ("pigeon", {"CHANNEL": "pigeon"}, "'pigeon' has no CHANNEL"),
    ],
)
def test_what_is_no_channel_of_its_own_is_refused_and_changes_nothing(
    name: str, given: dict[str, object], says: str
) -> None:
    register = ChannelRegister()
    before = register.held
    with pytest.raises(ConfigError, match=says):
        register.put({name: module(**given)})
    assert register.held is before


def test_each_channel_is_whole() -> None:
    """Each has words, a place of its own on pages, an address where it has no link, a tested counterpart."""
    kinds = ChannelRegister().held.values()
    assert len({kind.order for kind in kinds}) == len({kind.label for kind in kinds}) == len(kinds)
    placed = [kind for kind in kinds if not (kind.reaches_devices or kind.is_linked)]
    assert all(kind.fields[0].name == "address" for kind in placed)


@pytest.mark.parametrize("name", ["ntfy", "webhook"])
def test_no_other_file_names_a_channel(name: str) -> None:
    """Push, mail and Talk are more than channels: tools and cards name those too."""
    files = [*(ROOT / "cortex").rglob("*.py"), *(ROOT / "web").rglob("*.py"), *(ROOT / "web" / "templates").iterdir()]
    named = {path.relative_to(ROOT).as_posix() for path in files if f'"{name}"' in path.read_text(encoding="utf-8")}
    assert len(files) > 500
    assert named <= {f"cortex/notify/channels/{name}.py"}


def test_the_register_loads_nothing_heavy() -> None:
    code = "import sys, cortex.notify; cortex.notify.ChannelRegister(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) & {"pywebpush", "aiosmtplib", "aiohttp", "httpx", "cryptography"} == set()


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
                kind = ChannelRegister().kind(name)
                await kind.open(surroundings).send(trial("t-1", kind), target)
    pushed, published, called = (seen.body for seen in server.seen)
    assert "by Push" in browser.decrypted(pushed).decode()
    assert "by ntfy" in published.decode()
    assert "by Webhook" in called.decode()
    assert "by E-mail" in str(mailbox.mails[0].content)


async def test_a_certificate_that_cannot_be_trusted_is_said(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_made_certificate(tmp_path))
    with Loopback(tls=context) as server:
        target = Target(address=f"https://127.0.0.1:{server.place[1]}/hook", secret=new_secret())
        with pytest.raises(DeliveryError, match="certificate that cannot be trusted") as caught:
            await CHANNEL.open(server.surroundings()).send(trial("t-1", CHANNEL), target)
    assert (caught.value.fate, caught.value.is_unknown, server.seen) == ("later", False, [])


async def test_https_to_a_port_that_speaks_plain_is_said() -> None:
    with Loopback() as server:
        target = Target(address=f"https://127.0.0.1:{server.place[1]}/hook", secret=new_secret())
        with pytest.raises(DeliveryError, match="does not speak https there"):
            await CHANNEL.open(server.surroundings()).send(trial("t-1", CHANNEL), target)


@pytest.mark.parametrize(
    ("settings", "contact"),
    [
        ({"push_subject": "mailto:ops@example.org", "public_url": "https://a.example.org"}, "mailto:ops@example.org"),
        ({"public_url": "https://a.example.org", "smtp_from": "b@example.org"}, "https://a.example.org"),
        ({"public_url": "https://localhost:8443", "smtp_from": "b@example.org"}, "mailto:b@example.org"),
        ({"allowed_hosts": "box,box.tail1.ts.net", "smtp_from": "b@example.org"}, "https://box.tail1.ts.net"),
        ({"public_url": "http://a.example.org"}, "mailto:ada@example.org"),
        ({"smtp_from": "root@localhost"}, "mailto:ada@example.org"),
        ({}, "mailto:ada@example.org"),
    ],
    ids=str,
)
def test_the_contact_for_push_services_is_the_best_that_is_known(
    settings: dict[str, str], contact: str, tmp_path: Path
) -> None:
    assert contact_from(load_settings(None, home=tmp_path, **settings), ["ada@home", "ada@example.org"]) == contact


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


def test_a_room_keeps_no_secret_that_was_typed_beside_its_link() -> None:
    link = "https://cloud.example.org/call/abcd1234"
    room = talk.CHANNEL.open(ChannelContext(site=SITE))
    assert room.checked(Target(address=f" {link}/ ", secret="typed")) == Target(address=link)
