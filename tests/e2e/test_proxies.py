"""What docs/proxies.md gives for nginx and Caddy, on the real servers, and what the doctor says without it."""

import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from cortex.base import trust
from tests.authority import Authority
from tests.front_servers import FrontServer
from tests.living_house import PASSWORD, LivingHouse
from tests.patience import PATIENCE_S
from tests.served_house import served_house

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = (DOCS / "proxies.md").read_text()
LARGE = b"a line of notes\n" * 200_000


def snippet(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1]


def certified(front: FrontServer) -> None:
    """A certificate for the server, and the authority that signed it."""
    authority = Authority()
    authority.server(front.folder)
    (front.folder / "authority.pem").write_text(authority.pem)


def nginx(front: FrontServer, target: str, *without: str) -> list[str]:
    """The guide's settings for this page, without the lines that hold these words."""
    lines = [line for line in snippet("nginx").splitlines() if not any(word in line for word in without)]
    certified(front)
    server = "\n".join(lines).replace("listen 443 ssl", f"listen 127.0.0.1:{front.port} ssl")
    server = re.sub(r"/etc/letsencrypt/\S+\.pem", str(front.folder / "server.pem"), server)
    server = server.replace("http://127.0.0.1:8484", target)
    path = front.folder / "nginx.conf"
    path.write_text(
        f"daemon off;\npid {front.folder}/pid;\nerror_log {front.folder}/errors;\nevents {{}}\nhttp {{\n"
        f"access_log off;\nclient_body_temp_path {front.folder}/bodies;\nproxy_temp_path {front.folder}/answers;\n"
        f"fastcgi_temp_path {front.folder}/f;\nuwsgi_temp_path {front.folder}/u;\nscgi_temp_path {front.folder}/s;\n"
        f"{server}\n}}\n"
    )
    return ["nginx", "-p", str(front.folder), "-c", str(path)]


def caddy(front: FrontServer, target: str) -> list[str]:
    certified(front)
    pem = front.folder / "server.pem"
    site = snippet("caddy").replace("cortex.example.org {", f"https://127.0.0.1:{front.port} {{\n    tls {pem} {pem}")
    path = front.folder / "Caddyfile"
    options = "{\n    admin off\n    auto_https off\n    default_sni 127.0.0.1\n}\n"
    path.write_text(options + site.replace("127.0.0.1:8484", target.removeprefix("http://")))
    return ["caddy", "run", "--config", str(path), "--adapter", "caddyfile"]


@asynccontextmanager
async def behind(
    home: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[FrontServer, str], list[str]]
) -> AsyncIterator[tuple[LivingHouse, str]]:
    """A house behind this server, which browsers reach by https; its certificate is trusted."""
    front = FrontServer()
    public = f"https://127.0.0.1:{front.port}"
    async with served_house(home, public_url=public, trusted_proxies="127.0.0.1") as (house, origin):
        command = made(front, origin)
        monkeypatch.setenv("SSL_CERT_FILE", str(front.folder / "authority.pem"))  # as an administrator may
        trust.certificates.cache_clear()
        try:
            with front.running(*command):
                yield house, public
        finally:
            trust.certificates.cache_clear()


@pytest.mark.parametrize("made", [nginx, caddy], ids=["nginx", "caddy"])
async def test_the_guides_settings_let_a_login_a_large_file_and_a_live_answer_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[FrontServer, str], list[str]]
) -> None:
    async with behind(tmp_path, monkeypatch, made) as (house, public):
        trusted, own = trust.certificates(), {"Origin": public}
        async with httpx.AsyncClient(base_url=public, verify=trusted, headers=own, timeout=PATIENCE_S) as browser:
            entered = await browser.post("/login", data={"name": "ada", "password": PASSWORD})
            assert (entered.status_code, "__Host-cortex" in browser.cookies) == (303, True)
            added = await browser.post("/files", files={"files": ("notes.txt", LARGE, "text/plain")})
            assert added.status_code < 400
        assert [one.text for one in [await house.cortex.live_health.proxy()] if one.state != "good"] == []


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ("client_max_body_size", "client_max_body_size"),
        ("proxy_set_header Host", "proxy_set_header Host $http_host"),
        ("X-Forwarded-Proto", "X-Forwarded-Proto"),
        ("proxy_buffering", "proxy_buffering off"),
    ],
)
async def test_the_doctor_names_what_a_proxy_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str, said: str
) -> None:
    async with behind(tmp_path, monkeypatch, lambda front, target: nginx(front, target, without)) as (house, _):
        found = await house.cortex.live_health.proxy()
    assert (found.state, said in found.text) == ("bad", True), found.text


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze: not on this machine")
    unit = tmp_path / "cortex.service"
    unit.write_text((DOCS / "cortex.service").read_text().replace("/opt/cortex/.venv/bin/cortex", "/bin/true"))
    done = subprocess.run([program, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
