"""The checkout that an installation runs from, and what its remote has that is newer.

Git runs as the admin set it up (its keys, its proxies), but asks nothing, runs no hook, and moves no branch: what is
fetched stands under a name of our own.
"""

import os
import re
from pathlib import Path

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.integrations.process import run

REF = "refs/cortex/update"
FETCH_S, LOOK_S = 120.0, 30.0
OUTPUT_BYTES = 200_000
SUBJECTS = 200
VERSION = re.compile(r'^VERSION = "([^"\n]{1,40})"$', re.MULTILINE)
QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_SSH_COMMAND": "ssh -o BatchMode=yes", "LC_ALL": "C"}


class Newer(Struct, frozen=True, kw_only=True):
    """The newer state of the remote: its commit and version, a line a change (newest first), the new migrations."""

    commit: str
    version: str
    changes: tuple[str, ...]
    migrations: int


class Checkout(Struct, frozen=True, kw_only=True):
    """A git checkout of Cortex."""

    root: Path

    async def head(self) -> str:
        """The commit that is checked out."""
        return await self._git("rev-parse", "HEAD")

    async def must_be_clean(self) -> None:
        """UserError, with their names, where tracked files were changed: a new version would not have the changes."""
        changed = (await self._git("status", "--porcelain", "--untracked-files=no")).splitlines()
        if changed:
            names = ", ".join(line[2:].strip() for line in changed[:3])
            raise UserError(f"{str(self.root)!r} has uncommitted changes ({names}): commit or revert them.")

    async def newer_than(self, commit: str) -> Newer | None:
        """Ask what the branch's remote has beyond this commit; None for nothing. UserError where it fails."""
        branch = await self._git("symbolic-ref", "--quiet", "--short", "HEAD", otherwise="")
        remote = branch and await self._git("config", f"branch.{branch}.remote", otherwise="")
        merges = branch and await self._git("config", f"branch.{branch}.merge", otherwise="")
        if not (remote and merges):
            raise UserError(
                f"The checkout in {str(self.root)!r} tracks no remote branch: set one with "
                "git branch --set-upstream-to."
            )
        fetch = (
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--refmap=",
            "--",
            remote,
            f"+{merges}:{REF}",
        )
        await self._git(*fetch, timeout_s=FETCH_S)
        newest = await self._git("rev-parse", f"{REF}^{{commit}}")
        if newest == commit or await self._contains(commit, newest):
            return None
        if not await self._contains(newest, commit):
            raise UserError(
                f"The checkout in {str(self.root)!r} has commits that {remote} lacks: merge or rebase first."
            )
        return await self._newer(commit, newest)

    async def export(self, commit: str, file: Path) -> None:
        """Write the commit's files as a new tar."""
        await self._git("archive", "--format=tar", f"--output={file}", commit, timeout_s=FETCH_S)

    async def version_of(self, commit: str) -> str:
        """The version that a commit calls itself. UserError where it is no Cortex."""
        found = VERSION.search(await self._git("show", f"{commit}:cortex/__init__.py"))
        if found is None:
            raise UserError(f"The commit {commit[:12]} does not say which version of Cortex it is.")
        return found[1]

    async def _newer(self, commit: str, newest: str) -> Newer:
        subjects = await self._git("log", f"--max-count={SUBJECTS}", "--format=%s", f"{commit}..{newest}")
        added = ("diff", "--name-only", "--diff-filter=A", commit, newest, "--", "migrations/versions/")
        return Newer(
            commit=newest,
            version=await self.version_of(newest),
            changes=tuple(subjects.splitlines()),
            migrations=len((await self._git(*added)).splitlines()),
        )

    async def _contains(self, commit: str, earlier: str) -> bool:
        bases = await self._git("merge-base", "--all", earlier, commit, otherwise="")
        return earlier in bases.splitlines()

    async def _git(self, *words: str, timeout_s: float = LOOK_S, otherwise: str | None = None) -> str:
        """Return what git prints; `otherwise` where it refuses, and that is no error. UserError with its own words."""
        argv = ["git", "-C", str(self.root), "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", *words]
        ended = await run(
            argv, cwd=self.root, timeout_s=timeout_s, env=QUIET | own_environment(), output_bytes=OUTPUT_BYTES
        )
        if ended.code == 0 and not ended.killed:
            return ended.out.strip()
        if otherwise is not None and not ended.killed:
            return otherwise
        words_of_git = (ended.killed or ended.err or f"it ended with {ended.code}").strip()[-400:]
        raise UserError(f"git {words[0]} failed: {words_of_git}")


def own_environment() -> dict[str, str]:
    """Return what Cortex was started with, less its settings: keys and passwords are nothing to git and pip."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CORTEX_")}
