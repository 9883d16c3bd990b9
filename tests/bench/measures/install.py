"""What an installation takes on disk: a fresh environment with the run requirements, and the project's own files."""

import importlib.metadata
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.bench.figure import Bench, Figure, Unmeasured
from tests.bench.processes import MB

ROOT = Path(__file__).parents[3]
OWN = ("cortex", "web", "migrations")
PATIENCE_S = 600
LISTED = 11


def measure(bench: Bench) -> list[Figure]:
    """Two lines: the whole, and how much of it the largest package takes, with the next ones beside it."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        raise Unmeasured("needs uv, to install from its cache")
    venv = bench.folder / "venv"
    _run(uv, "venv", "-q", "--python", sys.executable, str(venv))
    install = (uv, "pip", "install", "-q", "--link-mode", "copy", "--python", str(venv / "bin" / "python"))
    _run(*install, "--no-deps", "--require-hashes", "-r", str(ROOT / "requirements" / "run.txt"))
    packages = next((venv / "lib").glob("python*/site-packages"))
    own_files = (path for room in OWN for path in (ROOT / room).rglob("*"))
    own = _size_mb(p for p in own_files if not {"node_modules", "__pycache__"} & set(p.parts))
    each = _by_package(packages)
    largest, *others = sorted(each, key=lambda name: -each[name])
    rest = ", ".join(f"{name} {each[name]:.1f}" for name in others[:LISTED])
    how = "blocks of site-packages with requirements/run.txt in it, plus our own files; without bytecode"
    total = _size_mb(packages.rglob("*")) + own
    return [
        Figure(what="installed", value=total, unit="MB", how=how, goal=200),
        Figure(
            what=f"of that the largest, {largest}",
            value=each[largest],
            unit="MB",
            how=f"the same way; own files {own:.1f}, {rest}",
        ),
    ]


def _by_package(packages: Path) -> dict[str, float]:
    """MB of each by its name in an index, by the files that it says are its own."""
    found = importlib.metadata.distributions(path=[str(packages)])
    return {one.name: _size_mb(Path(str(file.locate())) for file in one.files or ()) for one in found}


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if done.returncode:
        raise Unmeasured(f"`{words[0]} {words[1]}` failed: {done.stderr.strip()[-300:]}")


def _size_mb(paths: Iterable[Path]) -> float:
    return sum(path.lstat().st_blocks * 512 for path in paths) / MB
