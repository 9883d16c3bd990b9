"""Reads a git repository that may be hostile: nothing that its configuration names is ever run.

In the sandbox, read-only, with every hook, pager, filter, monitor and external program overridden on the command line.
"""

from pathlib import Path

from cortex.base.errors import ToolFailed
from cortex.integrations.process import ProcessResult
from cortex.integrations.quota import MB
from cortex.integrations.sandbox import Limits, Sandbox

LIMITS = Limits(timeout_s=20.0, cpu_s=15, address_bytes=4_000 * MB, processes=16, output_bytes=60_000)
ENV = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    "GIT_LITERAL_PATHSPECS": "1",
}
OVERRIDES = (
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.pager=cat",
    "core.editor=false",
    "core.sshCommand=false",
    "core.askPass=",
    "core.alternateRefsCommand=",
    "core.attributesFile=/dev/null",
    "log.showSignature=false",
    "gpg.program=false",
    "credential.helper=",
    "protocol.allow=never",
    "status.submoduleSummary=false",
    "color.ui=false",
)
ALWAYS = {
    "status": ("--ignore-submodules=all",),
    "log": ("--no-show-signature", "--no-ext-diff", "--no-textconv"),
    "diff": ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all"),
}
FILTER_PARTS = ("clean", "smudge", "process")


class Git:
    """git on one machine; a repository is given to each call as root folder and subfolder."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def read(self, root: Path, folder: str, command: str, *arguments: str) -> str:
        """Give what `status`, `log` or `diff` prints; ToolFailed with git's own words when it fails or is too slow."""
        overrides = [*OVERRIDES, *await self._filters(root, folder)]
        ended = await self._run(root, folder, overrides, command, *ALWAYS[command], *arguments)
        if ended.killed:
            raise ToolFailed(f"git was ended: {ended.killed}.")
        if ended.code != 0:
            words = (ended.err.strip() or f"exit code {ended.code}").splitlines()[0]
            if "not a git repository" in words:
                raise ToolFailed(f"{folder!r} is not in a git repository. Name a folder that is.")
            raise ToolFailed(f"git could not: {words.removeprefix('fatal: ')}")
        return ended.out

    async def _filters(self, root: Path, folder: str) -> list[str]:
        """Overrides for the content filters that this repository defines: their names are its own choice."""
        ended = await self._run(root, folder, OVERRIDES, "config", "--name-only", "-z", "--get-regexp", r"^filter\.")
        names = {key.partition(".")[2].rpartition(".")[0] for key in ended.out.split("\0") if key.count(".") >= 2}
        if ended.code not in (0, 1) or any("=" in name or "\n" in name for name in names):
            if "not a git repository" in ended.err or ended.code == 128:
                return []
            raise ToolFailed("This repository's configuration names filters that cannot be switched off.")
        made = [f"filter.{name}.{part}=" for name in sorted(names) for part in FILTER_PARTS]
        return made + [f"filter.{name}.required=false" for name in sorted(names)]

    async def _run(
        self, root: Path, folder: str, overrides: "tuple[str, ...] | list[str]", *arguments: str
    ) -> ProcessResult:
        command = ["git", "--no-pager"]
        for override in overrides:
            command += ["-c", override]
        return await self._sandbox.run(
            [*command, *arguments], workspace=root, folder=folder, env=ENV, is_writable=False, limits=LIMITS
        )
