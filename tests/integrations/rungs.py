"""Runs a command in the real sandbox on a chosen rung. Landlock does not bind root, so as root it is run as nobody."""

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cortex
from cortex.base.record import as_dict
from cortex.integrations import landlock
from cortex.integrations.ladder import Level
from cortex.integrations.process import ProcessResult, run
from cortex.integrations.quota import Quota
from cortex.integrations.sandbox import Limits, Sandbox
from tests.patience import PATIENCE_S

NOBODY = 65_534
PYTHON = "/usr/bin/python3"
CHILD = """
import asyncio, json, sys
from pathlib import Path
from cortex.integrations.quota import Quota
from cortex.integrations.sandbox import Limits, Sandbox
order = json.load(sys.stdin)
limits = Limits(**{**order["limits"], "growth": Quota(**order["limits"]["growth"])})
total = Quota(**order["total"]) if order["total"] else None
sandbox = Sandbox(forced=order["level"], home=Path(order["home"]), total=total)
workspace, is_writable = Path(order["files"]), order["is_writable"]
ended = asyncio.run(sandbox.run(order["argv"], workspace=workspace, limits=limits, is_writable=is_writable))
print(json.dumps(vars(ended)))
"""

# In place of msgspec: the system's Python, which nobody may start, has no packages.
RECORDS = """
import sys, types
from dataclasses import dataclass, field, replace

class Struct:
    def __init_subclass__(cls, frozen=False, kw_only=False, eq=True, **_):
        dataclass(frozen=frozen, kw_only=kw_only, eq=eq)(cls)

structs = sys.modules["msgspec.structs"] = types.ModuleType("msgspec.structs")
structs.replace = replace
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A home with a workspace `files` and a file `secret` beside it, and the level that holds a command in there."""

    level: Level
    home: Path

    @property
    def files(self) -> Path:
        """The workspace."""
        return self.home / "files"

    @property
    def secret(self) -> Path:
        """A file of the same owner that no command may reach."""
        return self.home / "secret"

    async def run(
        self, command: str, *, limits: Limits | None = None, total: Quota | None = None, is_writable: bool = True
    ) -> ProcessResult:
        """Run a bash command in the workspace."""
        limits = limits or Limits(timeout_s=PATIENCE_S)
        argv = ["bash", "-c", command]
        if not _is_as_nobody(self.level):
            sandbox = Sandbox(forced=self.level, home=self.home, total=total)
            return await sandbox.run(argv, workspace=self.files, limits=limits, is_writable=is_writable)
        order: dict[str, Any] = {"argv": argv, "limits": as_dict(limits), "total": as_dict(total) if total else None}
        order |= {"home": str(self.home), "files": str(self.files), "level": self.level, "is_writable": is_writable}
        nobody = ["/usr/bin/setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        ended = await run(
            [*nobody, PYTHON, "-c", CHILD],
            cwd=self.home,
            timeout_s=2 * limits.timeout_s,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(self.home / "code"), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=json.dumps(order).encode(),
            output_bytes=1_000_000,
        )
        assert ended.code == 0, ended.err
        return ProcessResult(**json.loads(ended.out))


def _is_as_nobody(level: Level) -> bool:
    return level == "landlock" and os.geteuid() == 0


def lacking(level: Level) -> str:
    """Why this machine cannot run the rung, or ""."""
    if _is_as_nobody(level):
        if not Path(PYTHON).exists() or not shutil.which("setpriv"):
            return f"{PYTHON} and setpriv"
        why = landlock.lacking()
        return "" if "root" in why else why
    probe = asyncio.run(Sandbox(forced=level).probe())
    return "" if probe.level == level else probe.reason


@contextmanager
def rung_on(level: Level) -> Iterator[Rung]:
    """A fresh home; all of it is the user's under whom the command runs."""
    with tempfile.TemporaryDirectory() as name:
        rung = Rung(level=level, home=Path(name).resolve())
        rung.files.mkdir()
        rung.secret.write_text("the-secret-text\n")
        rung.secret.chmod(0o600)
        if _is_as_nobody(level):
            _give_to_nobody(rung.home)
        yield rung


def _give_to_nobody(home: Path) -> None:
    """With a copy of the code, because nobody may not read where ours is."""
    package = Path(cortex.__path__[0])
    for part in ("__init__.py", "base", "integrations"):
        copy = shutil.copytree if (package / part).is_dir() else shutil.copy
        (home / "code" / "cortex").mkdir(parents=True, exist_ok=True)
        copy(package / part, home / "code" / "cortex" / part)
    (home / "code" / "msgspec.py").write_text(RECORDS)
    for path in (home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
