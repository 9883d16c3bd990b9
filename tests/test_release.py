"""What `make release` refuses, and what it says."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cortex import VERSION

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ".ci/release.py"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with all that the program reads before it builds."""
    for name in (PROGRAM, "pyproject.toml", "cortex/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {VERSION} (2026-12-01)\n\nBetter.\n\n## 0.0.1\n\nOld.\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def told(checkout: Path) -> str:
    done = subprocess.run([sys.executable, PROGRAM], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert not (checkout / "dist").exists() or not list((checkout / "dist").iterdir())
    return done.stderr


def test_nothing_is_made_of_what_is_not_committed(checkout: Path) -> None:
    (checkout / "cortex/new.py").write_text("")
    assert "not committed" in told(checkout)


def test_nothing_is_made_without_words_on_what_is_new(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\nBetter.\n")
    assert f"## {VERSION}" in told(checkout)


def test_nothing_is_made_where_the_two_versions_differ(checkout: Path) -> None:
    (checkout / "cortex/__init__.py").write_text('VERSION = "9.9"\n')
    assert "another version" in told(checkout)


def test_nothing_is_made_where_the_tag_stands_elsewhere(checkout: Path) -> None:
    commit = ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "y", "--allow-empty"]
    for words in (["tag", f"v{VERSION}"], commit):
        subprocess.run(["git", *words], cwd=checkout, check=True)
    assert "another commit" in told(checkout)


def test_its_notes_are_this_versions_part_of_the_changelog_and_its_sums_can_be_checked(checkout: Path) -> None:
    asked = (
        "import runpy, sys, pathlib; made = runpy.run_path('.ci/release.py');"
        f"print(made['notes']('{VERSION}', pathlib.Path('CHANGELOG.md').read_text()), end='');"
        "print(made['sums'](pathlib.Path('cortex')), end='')"
    )
    done = subprocess.run([sys.executable, "-c", asked], cwd=checkout, capture_output=True, text=True, check=True)
    digest = hashlib.sha256((checkout / "cortex/__init__.py").read_bytes()).hexdigest()
    assert done.stdout == f"Better.\n{digest}  __init__.py\n"
