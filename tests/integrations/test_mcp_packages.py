"""Packages of servers are installed once, pinned by hashes, and run nothing meanwhile: real pip, real npm."""

import asyncio
import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import DiskFull, UserError
from cortex.integrations.mcp.host import Machine
from cortex.integrations.mcp.packages import install, installed_in, package_of
from tests.listening import listening
from tests.patience import PATIENCE_S
from tests.ports import port_for

NO_NPM = shutil.which("npm") is None


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(home=tmp_path, path=os.environ["PATH"], closed=(tmp_path / "cortex",))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder of packages for pip: a wheel, and one that only comes as a source, which would run its set-up."""
    folder = tmp_path / "index"
    folder.mkdir()
    about = "shop_server-1.2.3.dist-info"
    with zipfile.ZipFile(folder / "shop_server-1.2.3-py3-none-any.whl", "w") as wheel:
        wheel.writestr("shop_server.py", "def main():\n    print('twelve hinges')\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: shop-server\nVersion: 1.2.3\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/entry_points.txt", "[console_scripts]\nshop-server = shop_server:main\n")
        wheel.writestr(f"{about}/RECORD", "")
    with tarfile.open(folder / "source_only-1.0.tar.gz", "w:gz") as source:
        text = f"open({str(tmp_path / 'ran')!r}, 'w')\n".encode()
        member = tarfile.TarInfo("source_only-1.0/setup.py")
        member.size = len(text)
        source.addfile(member, io.BytesIO(text))
    return folder


def for_pip(index: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(index.parent),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PIP_CONFIG_FILE": os.devnull,
        "SECRET_OF_CORTEX": "not-passed-on",
    }


async def test_a_package_of_pypi_is_installed_pinned_and_started(machine: Machine, index: Path, tmp_path: Path) -> None:
    package = package_of(["uvx", "shop-server", "--x"])
    assert package is not None
    folder = tmp_path / "cortex" / "mcp-programs" / "shop"
    made = await install(package, folder, machine, for_pip(index))
    assert made.version == "1.2.3"
    digest = hashlib.sha256((index / "shop_server-1.2.3-py3-none-any.whl").read_bytes()).hexdigest()
    assert (folder / "requirements.lock").read_text() == f"shop-server==1.2.3 --hash=sha256:{digest}\n"
    assert installed_in(folder, package) == made
    other = package_of(["uvx", "shop-server==1.2.2"])
    assert other is not None
    assert installed_in(folder, other) is None
    ran = await asyncio.to_thread(
        subprocess.run, made.argv, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert ran.stdout == "twelve hinges\n"


@pytest.mark.parametrize("name", ["source-only", "not-there"])
async def test_what_would_run_its_set_up_or_is_not_there_leaves_nothing(
    machine: Machine, index: Path, tmp_path: Path, name: str
) -> None:
    package = package_of(["uvx", name])
    assert package is not None
    folder = tmp_path / "cortex" / "mcp-programs" / "shop"
    with pytest.raises(UserError, match=r"The package could not be installed: .*No matching distribution"):
        await install(package, folder, machine, for_pip(index))
    assert not folder.exists()
    assert not (tmp_path / "ran").exists()


async def test_a_full_disk_is_told_as_one_and_leaves_nothing(tmp_path: Path) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error nospc Clear up some disk space and try again.' >&2\nexit 228\n")
    npm.chmod(0o755)
    package = package_of(["npx", "-y", "shop-server"])
    assert package is not None
    folder = tmp_path / "cortex" / "mcp-programs" / "shop"
    with pytest.raises(DiskFull, match="the disk is full"):
        await install(package, folder, Machine(home=tmp_path, path=f"{tmp_path}:{os.environ['PATH']}", closed=()), {})
    assert not folder.exists()


def packed(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()


@pytest.fixture
async def registry(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A registry of npm with the package `shop-mcp`, whose install script would leave a trace."""
    address = f"http://127.0.0.1:{port_for(request.node)}"
    facts = {
        "name": "shop-mcp",
        "version": "1.0.0",
        "bin": {"shop-mcp": "dist/index.js"},
        "scripts": {"postinstall": f"touch {tmp_path / 'ran'}", "preinstall": f"touch {tmp_path / 'ran'}"},
    }
    package = packed({"package.json": json.dumps(facts), "dist/index.js": "console.log('twelve hinges')\n"})
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(package).digest()).decode()}"
    dist = {"tarball": f"{address}/shop-mcp/-/shop-mcp-1.0.0.tgz", "integrity": integrity}
    listed = {
        "name": "shop-mcp",
        "dist-tags": {"latest": "1.0.0"},
        "versions": {"1.0.0": {**facts, "dist": dist, "hasInstallScript": True}},
    }
    answers = {"/shop-mcp": json.dumps(listed).encode(), "/shop-mcp/-/shop-mcp-1.0.0.tgz": package}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = answers.get(scope["path"])
        await send({"type": "http.response.start", "status": 404 if body is None else 200, "headers": []})
        await send({"type": "http.response.body", "body": body or b"{}"})

    port = int(address.rpartition(":")[2])
    async with listening(app, port):
        yield address


@pytest.mark.skipif(NO_NPM, reason="npm is not on this machine")
async def test_a_package_of_npm_is_installed_pinned_and_its_scripts_do_not_run(
    machine: Machine, registry: str, tmp_path: Path
) -> None:
    package = package_of(["npx", "-y", "shop-mcp@latest", "/srv"])
    assert package is not None
    folder = tmp_path / "cortex" / "mcp-programs" / "shop"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NPM_CONFIG_REGISTRY": registry}
    made = await install(package, folder, machine, environment)
    assert made.version == "1.0.0"
    lock = json.loads((folder / "package-lock.json").read_text())
    assert lock["packages"]["node_modules/shop-mcp"]["integrity"].startswith("sha512-")
    assert not (tmp_path / "ran").exists()
    ran = await asyncio.to_thread(
        subprocess.run, made.argv, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert ran.stdout == "twelve hinges\n"
    absent = package_of(["npx", "no-such-mcp"])
    assert absent is not None
    with pytest.raises(UserError, match=r"could not be installed: .*404"):
        await install(absent, tmp_path / "cortex" / "mcp-programs" / "other", machine, environment)
