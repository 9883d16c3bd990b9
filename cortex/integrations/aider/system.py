"""aider as its card set it up: found, tried, and run. Implements `IntegrationClient`."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import ToolFailed
from cortex.integrations.aider.clones import Clones
from cortex.integrations.aider.form import AiderForm
from cortex.integrations.aider.installing import is_complete
from cortex.integrations.aider.runs import LIMITS, AiderInstallation, installation_at
from cortex.integrations.sandbox import Sandbox

PROGRAMS = "programs"
NO_PROGRAM = "aider is not installed. `cortex tools install aider` installs it in its own environment (0.5 GB)."


class AiderHost(Struct, frozen=True, kw_only=True):
    """The parts of this machine that it gets. `home`: Cortex's own folder, in which nobody's repository lies."""

    sandbox: Sandbox
    home: Path


class AiderSystem(Struct, frozen=True):
    """The client of the card."""

    form: AiderForm
    host: AiderHost

    @property
    def clones(self) -> Clones:
        """For git in the sandbox."""
        return Clones(sandbox=self.host.sandbox)

    async def test(self) -> str:
        """Run it for its version, and look at each repository."""
        installation = await self.installation()
        ended = await self.host.sandbox.run(
            [str(installation.program), "--version"],
            workspace=installation.readable[0],
            limits=replace(LIMITS, timeout_s=60.0),
            is_writable=False,
            readable=installation.readable,
        )
        if ended.code != 0:
            raise ToolFailed(f"aider does not run: {(ended.err or ended.out or ended.killed).strip()[-300:]}")
        ready = [alias for alias, folder in self.form.folders.items() if await self._head(folder)]
        told = f"Repositories: {', '.join(ready)}." if ready else "It has no repository yet."
        return f"{ended.out.strip()} runs. {told}"

    async def close(self) -> None:
        """Nothing stays open."""

    async def installation(self) -> AiderInstallation:
        """Where it is; ToolFailed where it is not, or cannot be shut in."""
        probe = await self.host.sandbox.probe()
        if probe.level != "bubblewrap":
            raise ToolFailed(f"The coding agent needs bubblewrap, which does not work on this machine. {probe.reason}")
        return installation_at(_program(self.form, self.host.home))

    async def _head(self, folder: str) -> str:
        return await self.clones.head(Path(folder))


def place_of(home: Path) -> Path:
    """Where Cortex installs it."""
    return home / PROGRAMS / "aider"


def _program(form: AiderForm, home: Path) -> Path:
    """As the card says, on PATH, installed by Cortex, or where uv and pipx put programs."""
    if form.program:
        return Path(form.program)
    found = shutil.which("aider")
    places = [Path(found)] if found else []
    own = place_of(home) / "bin" / "aider"
    places += [*([own] if is_complete(own) else []), Path.home() / ".local" / "bin" / "aider"]
    for place in places:
        if place.exists():
            return place
    raise ToolFailed(NO_PROGRAM)


def repositories_in(folders: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """The repositories of allowed folders, by name: a folder itself, or those right below it. Reads the disk.

    A name that is taken already stays whose it is.
    """
    found = dict(known)
    for folder in map(Path, folders):
        below = [folder] if (folder / ".git").is_dir() else sorted(folder.iterdir())[:200] if folder.is_dir() else []
        for place in below:
            if (place / ".git").is_dir() and not found.get(place.name) and str(place) not in found.values():
                found[place.name] = str(place)
    return found
