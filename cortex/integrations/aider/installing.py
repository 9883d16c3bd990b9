"""Installs aider into an environment of its own, never into Cortex's; its packages are pinned by digests."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from cortex.base.errors import UserError

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
PYTHONS = ((3, 10), (3, 12))  # the oldest and newest that aider 0.86 takes
LIMIT_S = 1_800
COMPLETE = "complete"


def install(folder: Path, python: str, say: Callable[[str], None]) -> Path:
    """Make the environment in `folder` in place of what stands there, telling each package; its program.

    python: which one to use; "" = the one of Cortex. UserError says what went wrong; then nothing is left.
    """
    chosen = python or sys.executable
    _must_fit(chosen)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _run([chosen, "-m", "venv", str(folder)], lambda _: None)
        count = sum("==" in line for line in REQUIREMENTS.read_text().splitlines())
        told: list[str] = []

        def line(text: str) -> None:
            if text.startswith("Collecting "):
                told.append(text.split()[1].partition("=")[0])
                say(f"{len(told)} of {count}: {told[-1]}")
            elif text.startswith("Installing"):
                say("Installing them")

        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        _run([*pip, "--no-deps", "--require-hashes", "-r", str(REQUIREMENTS)], line)
        (folder / COMPLETE).touch()
    finally:
        if not (folder / COMPLETE).exists():
            shutil.rmtree(folder, ignore_errors=True)
    return folder / "bin" / "aider"


def is_complete(program: Path) -> bool:
    """Tell whether the installation that this program belongs to came to its end."""
    return (program.parent.parent / COMPLETE).exists()


def _must_fit(python: str) -> None:
    code = "import sys; print(*sys.version_info[:2])"
    try:
        found = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, timeout=30, check=True)  # noqa: S603 - the admin named it
        version = tuple(map(int, found.stdout.split()))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UserError(f"{python} cannot be run: {error}") from error
    if not PYTHONS[0] <= version <= PYTHONS[1]:
        raise UserError(
            f"aider needs Python 3.10 to 3.12, and {python} is {'.'.join(map(str, version))}. "
            "Name another with --python, such as --python python3.12."
        )


def _run(command: list[str], line: Callable[[str], None]) -> None:
    """Run it, a line at a time; UserError with its last words."""
    last = ""
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:  # noqa: S603 - ours
            for text in run.stdout or ():
                last = text.strip() or last
                line(text.strip())
            code = run.wait(LIMIT_S)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be run: {error.strerror or error}") from error
    if code != 0:
        raise UserError(f"The installation failed: {last}")
