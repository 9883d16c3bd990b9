"""The build's hook: a wheel or an install from source gets the browser's files before it is packed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]  # hatchling is a build-time package
    """Runs `web/assets.py`, which does nothing when the files are current."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatch before it collects files."""
        subprocess.run([sys.executable, str(Path(self.root) / "web" / "assets.py")], check=True)  # noqa: S603
