"""Logins by OAuth 2 at doubles of Google and Microsoft that refuse what theirs refuse; the keys open a real Dovecot."""

import asyncio
import base64
import hashlib
import json
import shutil
import ssl
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.structs import replace

from cortex.base.address import named
from cortex.base.errors import ConfigError, NotAllowed, ServiceDown, UserError
from cortex.integrations.mail.oauth import GOOGLE, MICROSOFT, OAuthClient, Tokens
from cortex.services.mail.logins import MailLogins
from cortex.storage.mail import MailAccountsRepository, Way
from cortex.storage.secrets import SecretsRepository
from tests.authority import Authority
from tests.imap_servers import ImapServer, dovecot, mail
from tests.living_house import LivingHouse, living_house
from tests.ports import port_for
from tests.still_clock import StillClock

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
ID, SECRET = "cortex-client", "client-secret"
TRUSTED: dict[int, ssl.SSLContext] = {}


class Double:
    """Gives tokens as RFC 6749, 7636 and 8628 say, for one client; says to Dovecot which are good (RFC 7662)."""

    def __init__(self) -> None:
        self.codes: dict[str, tuple[str, str]] = {}  # code: challenge, redirect
        self.devices: dict[str, str] = {}  # code: pending, ok, denied
        self.refresh: dict[str, str] = {}  # token: "" once it is withdrawn
        self.good: set[str] = set()
        self.count = 0
        self.asked: list[dict[str, str]] = []

    def authorize(self, url: str, person: str = "ann") -> str:
        """Log the person in and allow it; the address that their browser is sent to."""
        given = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert given["client_id"] == ID
        assert given["response_type"] == "code"
        assert given["code_challenge_method"] == "S256"
        assert given["access_type"] == "offline"
        code = f"code-{len(self.codes)}"
        self.codes[code] = given["code_challenge"], given["redirect_uri"]
        return f"{given['redirect_uri']}?state={given['state']}&code={code}&scope=mail"

    def answer(self, path: str, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.asked.append(given)
        if path == "/introspect":
            token = given.get("token", "")
            return 200, {"active": token in self.good, "username": "ann@example.org"}
        if given.get("client_id") != ID or (path != "/device" and given.get("client_secret") not in (SECRET, None)):
            return 401, {"error": "invalid_client"}
        if path == "/device":
            code = f"device-{len(self.devices)}"
            self.devices[code] = "pending"
            return 200, {
                "device_code": code,
                "user_code": "ABCD-EFGH",
                "verification_uri": "https://microsoft.com/devicelogin",
                "interval": 5,
                "expires_in": 900,
            }
        return self._token(given)

    def _token(self, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        kind = given.get("grant_type")
        if kind == "authorization_code":
            challenge, redirect = self.codes.pop(given.get("code", ""), ("", ""))
            digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
            made = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            if not challenge or made != challenge or given.get("redirect_uri") != redirect:
                return 400, {"error": "invalid_grant"}
            return 200, self._given()
        if kind == "urn:ietf:params:oauth:grant-type:device_code":
            state = self.devices.get(given.get("device_code", ""), "gone")
            if state == "ok":
                del self.devices[given["device_code"]]
                return 200, self._given()
            words = {"pending": "authorization_pending", "denied": "access_denied", "gone": "expired_token"}
            return 400, {"error": words[state]}
        if kind == "refresh_token" and given.get("refresh_token") in self.refresh:
            return 200, self._given(given["refresh_token"])
        return 400, {"error": "invalid_grant"}

    def _given(self, refresh: str = "") -> dict[str, Any]:
        self.count += 1
        token = f"access-{self.count}"
        self.good = {token}  # the ones before are good no more
        if not refresh:
            self.refresh[f"refresh-{self.count}"] = "ok"
            return {"access_token": token, "refresh_token": f"refresh-{self.count}", "expires_in": 3600}
        return {"access_token": token, "expires_in": 3600}


@pytest.fixture
def double() -> Iterator[tuple[Double, int]]:
    double = Double()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, said = double.answer(self.path, {k: v[0] for k, v in parse_qs(body).items()})
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", port_for(double)), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield double, server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def server(double: tuple[Double, int]) -> Iterator[ImapServer]:
    authority, folder = Authority(), Path(tempfile.mkdtemp(prefix="tls-"))  # pytest's folders only its own user enters
    folder.chmod(0o755)
    authority.server(folder)
    pem = folder / "server.pem"
    with dovecot(authority=(pem, pem), introspection=f"http://127.0.0.1:{double[1]}/introspect") as running:
        TRUSTED[running.tls_port] = ssl.create_default_context(cadata=authority.pem)
        yield running
    shutil.rmtree(folder)


@pytest.fixture
async def house(server: ImapServer, double: tuple[Double, int], tmp_path: Path) -> AsyncIterator[LivingHouse]:
    clock = StillClock(NOW)
    async with living_house(tmp_path / "home", clock=clock, mail_servers=(f"127.0.0.1:{server.tls_port}",)) as opened:
        opened.cortex.mail_accounts.door._context = TRUSTED[server.tls_port]
        base, policy = f"http://127.0.0.1:{double[1]}", named(("127.0.0.1", double[1]))
        places = {"host": "127.0.0.1", "authorize_url": f"{base}/auth", "token_url": f"{base}/token"}
        google = replace(GOOGLE, **places)
        microsoft = replace(MICROSOFT, **places, device_url=f"{base}/device")
        opened.cortex.mail_logins.clients.update(  # type: ignore[attr-defined]
            google=OAuthClient(provider=google, id=ID, secret=SECRET, clock=clock, policy=policy),
            microsoft=OAuthClient(provider=microsoft, id=ID, secret="", clock=clock, policy=policy),
        )
        yield opened


async def synced(house: LivingHouse, account: str) -> str:
    """Ask the server; why it could not be."""
    await house.cortex.mail_watch.tend(house.admin.id, account, waits=False)
    return (await house.cortex.runtime.db.repository(MailAccountsRepository, house.admin.id).account(account)).failure


async def test_a_login_by_google_opens_the_mailbox(
    house: LivingHouse, server: ImapServer, double: tuple[Double, int]
) -> None:
    logins, accounts = house.cortex.mail_logins, house.cortex.mail_accounts
    server.deliver(mail("Hello"), person="ann")
    begun = await logins.begin(house.admin, "google", "ann@example.org")
    back = double[0].authorize(begun.url)
    for wrong in ("", "http://127.0.0.1/?code=x&state=other", back.replace("state=", "state=x"), "not an address"):
        with pytest.raises(UserError):
            await accounts.finish_login(house.admin, wrong)
    with pytest.raises(UserError, match="No login"):
        await accounts.finish_login(house.member, back)
    account = await accounts.finish_login(house.admin, back)
    assert await synced(house, account) == ""
    with pytest.raises(UserError, match="No login"):  # a code is good once
        await accounts.finish_login(house.admin, back)
    rows = await accounts.list(house.admin)
    assert [(one.address, one.way) for one, _ in rows] == [("ann@example.org", "google")]


async def test_a_code_without_the_verifier_is_of_no_use(house: LivingHouse, double: tuple[Double, int]) -> None:
    client = house.cortex.mail_logins.clients["google"]
    back = double[0].authorize(client.address("http://127.0.0.1/", "state", "verifier", "ann@example.org"))
    code = parse_qs(urlsplit(back).query)["code"][0]
    with pytest.raises(UserError, match="ended or was withdrawn"):
        await client.by_code(code, "http://127.0.0.1/", "another")


async def test_a_login_by_microsoft_waits_for_the_code(house: LivingHouse, double: tuple[Double, int]) -> None:
    logins, accounts = house.cortex.mail_logins, house.cortex.mail_accounts
    begun = await logins.begin(house.admin, "microsoft", "ann@example.org")
    assert (begun.url, begun.user_code) == ("https://microsoft.com/devicelogin", "ABCD-EFGH")
    assert await accounts.finish_login(house.admin) == ""
    double[0].devices["device-0"] = "ok"
    account = await accounts.finish_login(house.admin)
    assert await synced(house, account) == ""
    await logins.begin(house.admin, "microsoft", "ann@example.org")
    double[0].devices["device-0"] = "denied"
    code = next(iter(double[0].devices))
    double[0].devices[code] = "denied"
    with pytest.raises(UserError):
        await accounts.finish_login(house.admin)


async def test_keys_are_renewed_ahead_and_a_withdrawn_login_says_so(
    house: LivingHouse, double: tuple[Double, int]
) -> None:
    begun = await house.cortex.mail_logins.begin(house.admin, "google", "ann@example.org")
    account = await house.cortex.mail_accounts.finish_login(house.admin, double[0].authorize(begun.url))
    assert await synced(house, account) == ""
    given = double[0].count
    assert await synced(house, account) == ""
    assert double[0].count == given  # it is good for an hour
    clock = house.cortex.runtime.clock
    assert isinstance(clock, StillClock)
    clock.at = NOW + timedelta(hours=2)
    assert await synced(house, account) == ""
    assert double[0].count == given + 1
    double[0].refresh.clear()
    clock.at = NOW + timedelta(hours=4)
    assert "Log in there once more" in await synced(house, account)
    again = await house.cortex.mail_logins.begin(house.admin, "google", "ann@example.org")
    same = await house.cortex.mail_accounts.finish_login(house.admin, double[0].authorize(again.url))
    assert same == account
    assert await synced(house, account) == ""


async def test_a_login_that_is_begun_ends_in_ten_minutes(house: LivingHouse, double: tuple[Double, int]) -> None:
    begun = await house.cortex.mail_logins.begin(house.admin, "google", "ann@example.org")
    clock = house.cortex.runtime.clock
    assert isinstance(clock, StillClock)
    clock.at = NOW + timedelta(minutes=11)
    with pytest.raises(UserError, match="No login is under way"):
        await house.cortex.mail_accounts.finish_login(house.admin, double[0].authorize(begun.url))


async def test_a_wrong_client_and_an_answer_that_is_none_are_said(
    house: LivingHouse, double: tuple[Double, int]
) -> None:
    logins = house.cortex.mail_logins
    wrong = replace(logins.clients["microsoft"], id="other")
    with pytest.raises(UserError, match="an admin must check"):
        await wrong.device()
    away = replace(wrong, provider=replace(wrong.provider, device_url="http://127.0.0.1:9/device"))
    with pytest.raises((ServiceDown, NotAllowed)):
        await away.device()


async def test_a_key_that_is_renewed_while_its_account_goes_does_not_come_back(
    house: LivingHouse, double: tuple[Double, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts, logins = house.cortex.mail_accounts, house.cortex.mail_logins
    begun = await logins.begin(house.admin, "google", "ann@example.org")
    account = await accounts.finish_login(house.admin, double[0].authorize(begun.url))
    assert await synced(house, account) == ""
    clock = house.cortex.runtime.clock
    assert isinstance(clock, StillClock)
    clock.at = NOW + timedelta(hours=2)
    row = (await accounts.list(house.admin))[0][0]
    renewed = MailLogins.renewed

    async def meanwhile(self: MailLogins, way: Way, tokens: Tokens) -> Tokens:
        made = await renewed(self, way, tokens)
        await accounts.remove(house.admin, account)
        return made

    monkeypatch.setattr(MailLogins, "renewed", meanwhile)
    with pytest.raises(ConfigError):
        async with accounts.opened(row):
            pass
    assert [name for name in await house.rows(SecretsRepository).names() if name.startswith("mail:")] == []


async def test_of_several_who_find_a_key_old_one_renews_it(house: LivingHouse, double: tuple[Double, int]) -> None:
    accounts, logins = house.cortex.mail_accounts, house.cortex.mail_logins
    begun = await logins.begin(house.admin, "google", "ann@example.org")
    account = await accounts.finish_login(house.admin, double[0].authorize(begun.url))
    assert await synced(house, account) == ""
    clock = house.cortex.runtime.clock
    assert isinstance(clock, StillClock)
    clock.at, given = NOW + timedelta(hours=2), double[0].count
    row = (await accounts.list(house.admin))[0][0]
    await asyncio.gather(*(accounts._server(row) for _ in range(3)))
    assert double[0].count == given + 1


async def test_a_token_that_the_mail_server_refuses_says_to_log_in_again(
    house: LivingHouse, double: tuple[Double, int]
) -> None:
    begun = await house.cortex.mail_logins.begin(house.admin, "google", "ann@example.org")
    account = await house.cortex.mail_accounts.finish_login(house.admin, double[0].authorize(begun.url))
    assert await synced(house, account) == ""
    double[0].good.clear()
    said = await synced(house, account)
    assert "does not take" in said
    assert "Log in there once more" in said
