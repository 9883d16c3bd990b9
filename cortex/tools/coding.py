"""The coding agent, for admins: give it a task in an allowed repository, follow it, allow a folder.

The program, its key, its work tree and its sandbox are the port's; the page shows the diff before it is merged.
"""

from pathlib import PurePosixPath
from typing import Any

from cortex.base.errors import ToolFailed
from cortex.base.ids import derived_id, is_named, short
from cortex.base.zone import moment
from cortex.ports.agents import AllowedFolders, CodeRepository, CodingAgent, CodingRun, CodingTask
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool

SUMMARY = "coding agent (aider) for repositories"
PREFIXES = ("aider_", "claude_allow_dir")
ROLES = {"coder": ("coding",)}
TESTED = "real aider in the sandbox where it is installed; every day a double of it, on real git"
SAMPLES = {
    "aider_run": {"repository": "cortex", "message": "add a retry", "background": True},
    "claude_allow_dir": {"folder": "/srv/code"},
}
MESSAGE_CHARACTERS = 8_000
FILES_MOST = 20
WAIT_S = 120.0
SAID_CHARACTERS = 1_500
SHOWN = 8


async def _checked_task(ctx: Ctx, repository: str, message: str, files: list[str] | None, notify: bool) -> CodingTask:
    """The task as the agent gets it; ToolFailed for an unknown repository, no words, or a path that leads outside."""
    words = message.strip()
    if not 0 < len(words) <= MESSAGE_CHARACTERS:
        raise ToolFailed(f"A message has 1 to {MESSAGE_CHARACTERS} characters.")
    known = tuple(await ctx.use(CodingAgent).repositories())
    try:
        alias = _alias(known, repository)
    except ToolFailed:
        ctx.note_private("the names of the repositories")
        raise
    return CodingTask(repository=alias, message=words, files=_paths(files or []), is_told=notify)


async def _can_code(
    ctx: Ctx, repository: str, message: str, files: list[str] | None, background: bool, notify: bool
) -> None:
    await _checked_task(ctx, repository, message, files, notify)


@tool(
    words="Have the coding agent work on {repository}: {message}",
    risk="high",
    admin=True,
    idempotent=True,
    reads_untrusted=True,
    needs=("CodingAgent",),
    check=_can_code,
)
async def aider_run(
    ctx: Ctx,
    repository: str,
    message: str,
    files: list[str] | None = None,
    background: bool = False,
    notify: bool = False,
) -> str:
    """Have the coding agent change code in a repository and commit.

    Args:
        repository: Its alias.
        message: The task.
        files: Paths in it to work on.
        background: Return at once.
        notify: Push when it ends.
    """
    coding = ctx.use(CodingAgent)
    task = await _checked_task(ctx, repository, message, files, notify)
    run = await coding.start(derived_id(ctx.call_id, "coding"), task)
    if not background:
        run = await coding.wait(run.id, WAIT_S)
    if run.ended_at is None:
        return f"The coding agent works on it: {_fact(ctx, run)}. Follow it with aider_status."
    return _run_text(ctx, run)


@tool(
    words="Look at the coding agent's runs[: {run}]",
    effect="read",
    admin=True,
    reads_private=True,
    reads_untrusted=True,
    needs=("CodingAgent",),
)
async def aider_status(ctx: Ctx, run: str = "") -> str:
    """Show how the coding agent is getting on, and its repositories.

    Args:
        run: Its id; empty shows the latest.
    """
    coding = ctx.use(CodingAgent)
    runs = await coding.runs(50)
    key = run.strip().casefold().removeprefix("#")
    if key:
        hits = [one for one in runs if is_named(one.id, key)]
        if len(hits) != 1:
            raise ToolFailed(f"There is no run {run!r}. Call aider_status without it.")
        return _run_text(ctx, hits[0])
    known = ", ".join(one.alias for one in await coding.repositories())
    lines = [f"- {_fact(ctx, one)}" for one in runs[:SHOWN]] or ["Nothing has run yet."]
    lines += ["... and older ones: /admin/coding has them."] if len(runs) > SHOWN else []
    return "\n".join([*lines, f"Repositories: {known or 'none'}."])


def _folder(folder: str) -> str:
    path = PurePosixPath(folder.strip())
    if not path.is_absolute() or ".." in path.parts or len(path.parts) < 3 or "\0" in folder:
        raise ToolFailed(f"{folder!r} cannot be allowed: write an absolute path of two parts or more, without '..'.")
    return str(path)


async def _can_allow(ctx: Ctx, folder: str) -> None:
    path = _folder(folder)
    ctx.note_private("which folders the server has")
    await ctx.use(AllowedFolders).must_be_possible(path)


@tool(
    words="Let coding agents work in {folder}",
    risk="high",
    admin=True,
    idempotent=True,
    needs=("AllowedFolders",),
    check=_can_allow,
)
async def claude_allow_dir(ctx: Ctx, folder: str) -> str:
    """Allow a folder for coding agents such as Claude or aider.

    Args:
        folder: Its absolute path.
    """
    path = _folder(folder)
    folders = ctx.use(AllowedFolders)

    async def find() -> dict[str, Any]:
        return {"was_allowed": path in await folders.list()}

    was_allowed = (await ctx.target(find))["was_allowed"]
    await folders.allow(path)
    return f"Coding agents may {'already' if was_allowed else 'now'} work in {path}. The page lists and revokes it."


def _alias(known: tuple[CodeRepository, ...], wanted: str) -> str:
    """The alias that is meant; ToolFailed says which there are."""
    key = wanted.strip().casefold()
    hit = next((one for one in known if one.alias.casefold() == key), None)
    if hit is not None:
        return hit.alias
    ready = ", ".join(one.alias for one in known)
    raise ToolFailed(f"There is no repository {wanted!r}. Ready: {ready or 'none; an admin sets one up'}.")


def _paths(files: list[str]) -> tuple[str, ...]:
    """The files, when each is a plain path inside a repository; ToolFailed when one is not."""
    if len(files) > FILES_MOST:
        raise ToolFailed(f"Name at most {FILES_MOST} files; the agent finds others by itself.")
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or not path.parts or {"..", ".git"} & set(path.parts) or name.startswith(("-", "~")):
            raise ToolFailed(f"{name!r} is not a path inside the repository.")
    return tuple(files)


def _fact(ctx: Ctx, run: CodingRun) -> str:
    """`add a retry (id 1a2b3c, aether_api, running since 2026-11-20 23:30)`."""
    zone = ctx.user.time_zone
    at = f"since {moment(run.started_at, zone)}" if run.ended_at is None else moment(run.ended_at, zone)
    return f"{' '.join(run.message.split())[:80]} (id {short(run.id)}, {run.repository}, {run.state} {at})"


def _run_text(ctx: Ctx, run: CodingRun) -> str:
    """Tell how a run stands: its commit and what changed, or what it said."""
    parts = [_fact(ctx, run)]
    if run.commit:
        parts.append(f"Commit {run.commit[:12]}" + (": its diff waits for approval" if run.state == "waiting" else ""))
    elif run.state == "done":
        parts.append("Nothing was changed.")
    parts += [run.diff_stat[:SAID_CHARACTERS], run.said[-SAID_CHARACTERS:]]
    return "\n".join(part for part in parts if part)
