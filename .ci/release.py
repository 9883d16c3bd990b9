"""A release in `dist/`: wheel, source archive, what the changelog says of it, an image where docker is, checksums.

`make release`. Nothing leaves this machine: the last lines say what is left to do by hand. The same commit gives the
same bytes (image aside); the wheel has been installed by its pinned digests and started before it counts as made.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
LIMIT_S = 900


def main() -> int:
    """Make it; exit code 1 and one line for what is in the way."""
    version = _version()
    told = notes(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    obstacle = _obstacle(version, told)
    if obstacle:
        print(f"no release: {obstacle}", file=sys.stderr)
        return 1
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    _build()
    (DIST / "NOTES.md").write_text(told, encoding="utf-8")
    _try(next(DIST.glob("*.whl")))
    image = _image(version)
    (DIST / "SHA256SUMS").write_text(sums(DIST), encoding="utf-8")
    print(f"Cortex {version} is made:\n\n{sums(DIST)}")
    print(f"Image: {image}")
    print(
        f"Left to do: git tag -s v{version} && git push --tags, then upload what dist/ holds with NOTES.md as its text."
    )
    return 0


def notes(version: str, changelog: str) -> str:
    """What the changelog says of this version; "" where it has no such heading."""
    found = re.search(
        rf"^## \[?{re.escape(version)}\]?(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changelog, flags=re.MULTILINE | re.DOTALL
    )
    return f"{found[1].strip()}\n" if found else ""


def sums(folder: Path) -> str:
    """A line for each file as `sha256sum -c` reads it, by name."""
    files = sorted(one for one in folder.iterdir() if one.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in files)


def _version() -> str:
    found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def _obstacle(version: str, told: str) -> str:
    """Why there can be no release; "" when nothing is in the way."""
    if f'VERSION = "{version}"' not in (ROOT / "cortex" / "__init__.py").read_text(encoding="utf-8"):
        return f"cortex/__init__.py has another version than pyproject.toml ({version})"
    if not told:
        return f"CHANGELOG.md has no text under '## {version}'"
    if _git("status", "--porcelain"):
        return "there are changes that are not committed"
    if _git("tag", "--list", f"v{version}") and _git("rev-list", "-n", "1", f"v{version}") != _git("rev-parse", "HEAD"):
        return f"v{version} is the tag of another commit"
    return ""


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _run(*words: str, **environment: str) -> str:
    """What a program says; its own words and the end where it fails."""
    done = subprocess.run(
        words, cwd=ROOT, env={**os.environ, **environment}, timeout=LIMIT_S, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"no release: {' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def _build() -> None:
    made_at = _git("log", "-1", "--format=%ct")
    for target in ("wheel", "sdist"):
        _run(sys.executable, "-m", "hatchling", "build", "-d", str(DIST), "-t", target, SOURCE_DATE_EPOCH=made_at)


def _try(wheel: Path) -> None:
    """Install it as somebody would who has nothing of ours, and start the program."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = (f"{folder}/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps")
        _run(*pip, "--require-hashes", "-r", "requirements/run.txt")
        _run(*pip, str(wheel))
        _run(f"{folder}/bin/cortex", "tools", "--json", CORTEX_HOME=f"{folder}/home")


def _image(version: str) -> str:
    """Where the image is, or how it is made."""
    name = f"cortex:{version}"
    build = ("docker", "build", "-f", "docker/Dockerfile", "-t", name, ".")
    if not shutil.which("docker") or subprocess.run(("docker", "info"), capture_output=True, timeout=60).returncode:
        return f"no docker runs here; where one does: {' '.join(build)}"
    _run(*build)
    _run("docker", "save", "-o", str(DIST / f"cortex-{version}-image.tar"), name)
    return f"dist/cortex-{version}-image.tar"


if __name__ == "__main__":
    sys.exit(main())
