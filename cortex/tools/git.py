"""Reading git repositories in the user's folders. How that is made safe stands in `integrations/git.py`."""

from typing import Annotated

from pydantic import Field

from cortex.base.errors import ToolFailed
from cortex.integrations.files import Files
from cortex.integrations.git import Git
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.stretch import beginning

SUMMARY = "status, history, changes of a repository"
NEEDS = ("Files", "Git")
ROLES = {"coder": ("git",)}
ADMIN_ROLES = {"orchestrator": ("git",)}
TESTED = "real git in the sandbox"
REVISION_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/~^@{}-")


@tool(words="Look at changes in the repository[ {folder}]", effect="read", reads_private=True, reads_untrusted=True)
async def git_status(ctx: Ctx, folder: str = "") -> str:
    """Show branch and uncommitted changes of a git repository.

    Args:
        folder: The repository's folder.
    """
    text = await _git(ctx, folder, "status", "--short", "--branch", "--no-renames")
    lines = text.splitlines()
    return _cut(text) if len(lines) > 1 else f"{text.strip()}\nNothing to commit."


@tool(
    words="Look at commits of the repository[ {folder}][, for {path}]",
    effect="read",
    reads_private=True,
    reads_untrusted=True,
)
async def git_log(
    ctx: Ctx, folder: str = "", count: Annotated[int, Field(ge=1, le=50)] = 10, revision: str = "HEAD", path: str = ""
) -> str:
    """Show the latest commits of a git repository.

    Args:
        folder: The repository's folder.
        count: How many.
        revision: Branch, tag or range.
        path: Only commits that touch it.
    """
    shape = "--format=%h %ad %an: %s"
    options = ("--no-mailmap", "--date=short", shape, f"--max-count={count}")
    return _cut(await _git(ctx, folder, "log", *options, _revision(revision), "--", *_paths(path))) or "No commits."


@tool(
    words="Look at what changed in the repository[ {folder}][, for {path}]",
    effect="read",
    reads_private=True,
    reads_untrusted=True,
)
async def git_diff(ctx: Ctx, folder: str = "", revision: str = "HEAD", path: str = "") -> str:
    """Show what changed in a git repository, line by line.

    Args:
        folder: The repository's folder.
        revision: Compare with it, or a range such as v1..v2.
        path: Only this file or folder.
    """
    options = ("--stat", "--patch", _revision(revision))
    return _cut(await _git(ctx, folder, "diff", *options, "--", *_paths(path))) or "No changes."


async def _git(ctx: Ctx, folder: str, *arguments: str) -> str:
    root, rest = await ctx.use(Files).folder(folder)
    return await ctx.use(Git).read(root.path, rest, *arguments)


def _revision(text: str) -> str:
    """The revision, when it can be nothing but one; ToolFailed for options and other tricks."""
    if not text or text.startswith("-") or not set(text) <= REVISION_SIGNS or len(text) > 200:
        raise ToolFailed(f"{text!r} is not a revision: name a branch, a tag, a hash or a range such as v1..v2.")
    return text


def _paths(path: str) -> tuple[str, ...]:
    if "\0" in path or path.startswith(("/", "~")):
        raise ToolFailed(f"{path!r} must be a path inside the repository.")
    return (path,) if path else ()


def _cut(text: str) -> str:
    return beginning(text.strip(), "narrow it by path")
