"""A real Synapse in a process of its own, from the environment that `make synapse` makes (AGPL: a program apart)."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.patience import PATIENCE_S
from tests.ports import port_for

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cortex" / "synapse"
PYTHON = CACHE / "bin" / "python"
MISSING = "Synapse is not here: run `make synapse`"
SERVER = "house.test"
OPEN = {"per_second": 10_000, "burst_count": 10_000}
PASSWORD = "tulip-quarry-lantern"


class Synapse:
    """A homeserver on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = port_for(self)
        self.url = f"http://127.0.0.1:{self.port}"

    def register(self, name: str, shown: str = "") -> str:
        """A new account; its token."""
        body = {"username": name, "password": PASSWORD, "auth": {"type": "m.login.dummy"}}
        made = httpx.post(f"{self.url}/_matrix/client/v3/register", json=body, timeout=PATIENCE_S)
        assert made.status_code == 200, made.text
        token = str(made.json()["access_token"])
        if shown:
            path = f"{self.url}/_matrix/client/v3/profile/{made.json()['user_id']}/displayname"
            keys = {"Authorization": f"Bearer {token}"}
            httpx.put(path, json={"displayname": shown}, headers=keys, timeout=PATIENCE_S)
        return token


@contextmanager
def synapse(folder: Path, **more: Any) -> Iterator[Synapse]:
    """It, running. `more`: of its configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    server = Synapse(folder)
    config = {
        "server_name": SERVER,
        "signing_key_path": str(folder / "signing.key"),
        "media_store_path": str(folder / "media"),
        "pid_file": str(folder / "pid"),
        "database": {"name": "sqlite3", "args": {"database": str(folder / "rows.db")}},
        "listeners": [
            {
                "port": server.port,
                "bind_addresses": ["127.0.0.1"],
                "type": "http",
                "tls": False,
                "resources": [{"names": ["client", "media"]}],
            }
        ],
        "report_stats": False,
        "trusted_key_servers": [],
        "registration_shared_secret": "a",
        "macaroon_secret_key": "b",
        "form_secret": "c",
        "bcrypt_rounds": 4,
        "enable_registration": True,
        "enable_registration_without_verification": True,
        "rc_message": OPEN,
        "rc_registration": OPEN,
        "rc_login": {name: OPEN for name in ("address", "account", "failed_attempts")},
        "rc_joins": {"local": OPEN, "remote": OPEN},
        "rc_joins_per_room": OPEN,
        "rc_invites": {name: OPEN for name in ("per_room", "per_user", "per_issuer")},
        "rc_room_creation": OPEN,
        "caches": {"sync_response_cache_duration": 0},  # people of tests look anew each time
        **more,
    }
    (folder / "hs.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    argv = [str(PYTHON), "-m", "synapse.app.homeserver", "-c", str(folder / "hs.yaml")]
    with (folder / "log").open("wb") as output:
        subprocess.run([*argv, "--generate-keys"], check=True, cwd=folder, stdout=output, stderr=output)
        process = subprocess.Popen(argv, cwd=folder, stdout=output, stderr=output)
        try:
            _answers(server, process)
            yield server
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _answers(server: Synapse, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + 2 * PATIENCE_S
    while True:
        assert process.poll() is None, (server.folder / "log").read_text(errors="replace")[-3000:]
        assert time.monotonic() < until, (server.folder / "log").read_text(errors="replace")[-3000:]
        try:
            if httpx.get(f"{server.url}/_matrix/client/versions", timeout=PATIENCE_S).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
