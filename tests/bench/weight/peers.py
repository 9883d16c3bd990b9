"""Public daemons of Cortex's kind: installed by name from PyPI into `build/peers`, spoken to by their own API.

They are given the same scripted model. What cannot be installed or started is said in its column, and fails the run.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.bench.weight.api import MODEL, ApiSubject
from tests.children import ROOT
from tests.scripted_server import ScriptedServer, Use

FOLDER = ROOT / "build" / "peers"
INSTALL_S = 1800
SERVER_KEY = "5d1f0c6a9be84b7783a2e4f60c9d1b27"  # of a server that listens for the time of a measure
OTHER_TOOLS = (
    Use("list_dir", {"path": "."}),
    Use("todo", {"todos": [{"id": "1", "content": "milk", "status": "pending"}]}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One of them: what pip is asked for."""

    name: str
    packages: tuple[str, ...]

    @property
    def python(self) -> Path:
        """Its own environment's."""
        return FOLDER / self.name / "bin" / "python"

    def install(self) -> None:
        """Have it there in just this version. CalledProcessError with what pip said."""
        marker = self.python.parents[1] / "installed"
        if marker.exists() and marker.read_text() == " ".join(self.packages):
            return
        for words in (
            (sys.executable, "-m", "venv", "--clear", str(self.python.parents[1])),
            (str(self.python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *self.packages),
        ):
            subprocess.run(words, check=True, capture_output=True, text=True, timeout=INSTALL_S)
        marker.write_text(" ".join(self.packages))

    def subject(self, folder: Path, model: ScriptedServer) -> ApiSubject:
        """A new home for it, set up for the scripted model as its documents say."""
        home = folder / self.name
        return {"nanobot": _nanobot, "Hermes": _hermes}[self.name](self.python.parent, home, model)


PEERS = (
    Peer(name="nanobot", packages=("nanobot-ai[api]==0.3.5",)),
    Peer(name="Hermes", packages=("hermes-agent==0.19.0", "aiohttp==3.14.1")),
)


def _nanobot(programs: Path, home: Path, model: ScriptedServer) -> ApiSubject:
    config = {
        "agents": {"defaults": {"model": MODEL, "provider": "custom"}},
        "providers": {"custom": {"apiKey": model.api_key, "apiBase": model.base_url}},
    }
    _write(home / ".nanobot" / "config.json", json.dumps(config))
    return ApiSubject(
        name="nanobot",
        home=home,
        command=lambda port: (str(programs / "nanobot"), "serve", "--port", str(port), "--host", "127.0.0.1"),
    )


def _hermes(programs: Path, home: Path, model: ScriptedServer) -> ApiSubject:
    config = {
        "model": {"default": MODEL, "provider": "custom", "base_url": model.base_url, "api_key": model.api_key},
    }
    _write(home / ".hermes" / "config.yaml", json.dumps(config))  # JSON is YAML
    own = {"HERMES_HOME": str(home / ".hermes"), "API_SERVER_ENABLED": "true", "API_SERVER_KEY": SERVER_KEY}
    return ApiSubject(
        name="Hermes",
        home=home,
        command=lambda port: ("env", f"API_SERVER_PORT={port}", str(programs / "hermes"), "gateway", "run"),
        environment=own,
        headers=lambda talk: {"Authorization": f"Bearer {SERVER_KEY}", "X-Hermes-Session-Id": f"talk-{talk}"},
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
