"""An installation of Cortex from a checkout with a remote, and a newer version of it, made for tests.

The version before is the tree as it stands here, without its history; the newer one adds a migration and calls itself
otherwise. Both stand in a bare repository, which is the remote.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cortex.storage import revisions
from tests.children import ROOT
from tests.patience import PATIENCE_S

NEWER = "9.1.0"
MIGRATION = '''"""A table that only the newer version knows."""

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{before}"


def upgrade() -> None:
    op.create_table("trials", sa.Column("id", sa.String(36), primary_key=True))
    op.execute("INSERT INTO trials (id) VALUES ('one')")


def downgrade() -> None:
    op.drop_table("trials")
'''
SHIPPED = ("cortex/", "web/", "migrations/", "requirements/run.txt", "pyproject.toml", "README", "LICENSE", "hatch")
WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """A checkout with an environment of its own, and its remote."""

    root: Path
    remote: Path
    python: Path

    def publish(self, version: str = NEWER, files: Mapping[str, str] | None = None) -> str:
        """Have the remote hold a newer version, with these files besides; its commit."""
        work = self.root.with_name("work")
        if not work.exists():
            git(self.root.parent, "clone", "-q", str(self.remote), str(work))
        text = (work / "cortex" / "__init__.py").read_text(encoding="utf-8")
        head, _, _ = text.partition("VERSION = ")
        (work / "cortex" / "__init__.py").write_text(f'{head}VERSION = "{version}"\n', encoding="utf-8")
        for name, content in (files or {}).items():
            (work / name).write_text(content, encoding="utf-8")
        git(work, "add", "-A")
        git(work, *WHO, "commit", "-q", "-m", f"Bring version {version}")
        git(work, "push", "-q", "origin", "HEAD:main")
        return git(work, "rev-parse", "HEAD")

    def wheel(self, folder: Path) -> Path:
        """A wheel of the checkout as it stands."""
        build = [str(self.python), "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(build, cwd=self.root, check=True, timeout=PATIENCE_S, capture_output=True)
        return next(folder.glob("*.whl"))

    def run(self, home: Path, words: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
        """`cortex <words>` of this installation, to its end."""
        return subprocess.run(
            [str(self.python), "-m", "web", *words],
            cwd=self.root,
            env=environment(home, **more),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S * 4,
            check=False,
            stdin=subprocess.DEVNULL,
        )


def migration() -> dict[str, str]:
    """The newer version's migration, by its name."""
    before = revisions.newest()
    after = f"{int(before) + 1:04d}"
    return {f"migrations/versions/{after}_trials.py": MIGRATION.format(revision=after, before=before)}


def environment(home: Path, **more: str) -> dict[str, str]:
    """What an installation is started with."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CORTEX_", "PYTHON"))}
    return clean | {"CORTEX_HOME": str(home), "CORTEX_OFFLINE_DELAY_MS": "2"} | more


def install(folder: Path) -> Installation:
    """Install the tree as it stands: a checkout that follows `main` of a bare repository."""
    remote, root = folder / "remote.git", folder / "checkout"
    source = folder / "source"
    names = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for name in names:
        if name.startswith(SHIPPED):
            path = source / name
            if (ROOT / name).is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, path)
    (source / ".gitignore").write_text("__pycache__/\nweb/static/vendor/\n", encoding="utf-8")
    git(source, "init", "-q", "-b", "main")
    git(source, "add", "-A")
    git(source, *WHO, "commit", "-q", "-m", "Bring the first version")
    git(folder, "clone", "-q", "--bare", str(source), str(remote))
    git(folder, "clone", "-q", str(remote), str(root))
    shutil.copytree(ROOT / "web" / "static" / "vendor", root / "web" / "static" / "vendor")
    place = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=PATIENCE_S)
    site = next(place.glob("lib/python*/site-packages"))
    packages = sysconfig.get_paths()["purelib"]
    (site / "installation.pth").write_text(f"{root}\nimport site; site.addsitedir({packages!r})\n", encoding="utf-8")
    return Installation(root=root, remote=remote, python=place / "bin" / "python")


def git(folder: Path, *words: str) -> str:
    """What git prints there."""
    ended = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    return ended.stdout.strip()
