"""Repositories for coding agents: looked at, cloned for a run, and what came of it fetched and merged back.

All of it by git in the sandbox, where nothing that a repository names is run: no hooks, no filters, no editors. A run
works in a clone of what is committed; what lies about uncommitted in the person's folder is neither seen nor touched.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cortex.base.errors import ToolFailed
from cortex.integrations.git import ENV, FILTER_PARTS, OVERRIDES
from cortex.integrations.process import ProcessResult
from cortex.integrations.quota import MB, Quota
from cortex.integrations.sandbox import Limits, Sandbox

LIMITS = Limits(
    timeout_s=120.0,
    cpu_s=100,
    address_bytes=4_000 * MB,
    processes=32,
    file_bytes=500 * MB,
    output_bytes=400_000,
    growth=Quota(most_bytes=2_000 * MB, most_files=200_000),
)
TREE = "tree"
LOCAL = ("protocol.file.allow=always", "safe.directory=*", "gc.auto=0", "maintenance.auto=false")
AUTHOR = {
    "GIT_AUTHOR_NAME": "Cortex",
    "GIT_AUTHOR_EMAIL": "cortex@localhost",
    "GIT_COMMITTER_NAME": "Cortex",
    "GIT_COMMITTER_EMAIL": "cortex@localhost",
}


class Changes(Struct, frozen=True, kw_only=True):
    """The changes in a clone since it began: the newest commit ("" = none), its diff, the figures of that."""

    commit: str = ""
    diff: str = ""
    stat: str = ""


class Clones(Struct, frozen=True, kw_only=True):
    """git for runs of coding agents."""

    sandbox: Sandbox

    async def head(self, repository: Path) -> str:
        """The commit that a run would begin at; ToolFailed for what is no repository of its own, or has no commit."""
        if not (repository / ".git").is_dir():
            raise ToolFailed(f"{repository} is not a git repository. Create one there (git init) and commit.")
        ended = await self._git(repository, "rev-parse", "--verify", "HEAD^{commit}", is_writable=False)
        if ended.code != 0:
            raise ToolFailed(f"{repository} has no commit yet. Commit once, and try again.")
        return ended.out.strip()

    async def clone(self, repository: Path, folder: Path, head: str) -> None:
        """A clone of the repository in `folder`/tree, at this commit on a branch of its own."""
        await self._done(
            folder, "clone", "--no-hardlinks", "--no-checkout", "--quiet", str(repository), TREE, near=repository
        )
        await self._done(folder / TREE, "checkout", "--quiet", "-B", "cortex", head)

    async def changes(self, tree: Path, base: str) -> Changes:
        """Return what was done in the clone; what is not committed yet is committed first."""
        if (await self._done(tree, "status", "--porcelain")).strip():
            await self._done(tree, "add", "--all")
            await self._done(
                tree, "commit", "--quiet", "--no-verify", "--message", "Leave no change of a coding agent behind"
            )
        commit = (await self._done(tree, "rev-parse", "HEAD")).strip()
        if commit == base:
            return Changes()
        plain = ("--no-ext-diff", "--no-textconv", "--no-color")
        diff = await self._done(tree, "diff", *plain, base, commit)
        stat = await self._done(tree, "diff", *plain, "--stat=90", base, commit)
        return Changes(commit=commit, diff=diff, stat=stat)

    async def merge(self, repository: Path, tree: Path, commit: str, branch: str) -> None:
        """Bring the commit into the repository: as `branch`, and onto what is checked out, where nothing is in its way.

        Again, it changes nothing. ToolFailed says why it was not merged, and that the branch is there.
        """
        if (await self._git(repository, "merge-base", "--is-ancestor", commit, "HEAD", is_writable=False)).code == 0:
            return
        await self._done(
            repository, "fetch", "--no-tags", "--quiet", str(tree), f"+cortex:refs/heads/{branch}", near=tree
        )
        ended = await self._git(repository, "merge", "--ff-only", "--quiet", commit)
        if ended.code != 0:
            words = (ended.err.strip() or ended.killed or "it does not fit").splitlines()
            raise ToolFailed(f"Not merged: {words[0].removeprefix('fatal: ')} The work is on the branch {branch}.")

    async def _done(self, workspace: Path, *arguments: str, near: Path | None = None) -> str:
        ended = await self._git(workspace, *arguments, near=near)
        if ended.code != 0:
            words = (ended.err.strip() or ended.killed or f"exit code {ended.code}").splitlines()[0]
            raise ToolFailed(f"git could not {arguments[0]}: {words.removeprefix('fatal: ')}")
        return ended.out

    async def _git(
        self, workspace: Path, *arguments: str, near: Path | None = None, is_writable: bool = True
    ) -> ProcessResult:
        filters = await self._run(
            workspace, ("config", "--name-only", "-z", "--get-regexp", r"^filter\."), (), None, False
        )
        names = {key.partition(".")[2].rpartition(".")[0] for key in filters.out.split("\0") if key.count(".") >= 2}
        off = [f"filter.{name}.{part}=" for name in sorted(names) if "=" not in name for part in FILTER_PARTS]
        off += [f"filter.{name}.required=false" for name in sorted(names) if "=" not in name]
        return await self._run(workspace, arguments, off, near, is_writable)

    async def _run(
        self, workspace: Path, arguments: Sequence[str], off: Sequence[str], near: Path | None, is_writable: bool
    ) -> ProcessResult:
        """Run git with every override in its environment, so that the programs that it starts itself have them too."""
        settings = [*OVERRIDES, *LOCAL, *off]
        told = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, setting in enumerate(settings):
            name, _, value = setting.partition("=")
            told |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return await self.sandbox.run(
            ["git", "--no-pager", *arguments],
            workspace=workspace,
            env={**ENV, **AUTHOR, **told},
            is_writable=is_writable,
            limits=LIMITS,
            readable=(near,) if near else (),
        )
