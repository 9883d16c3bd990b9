"""The house itself, for admins: its state and log, a command in the sandbox, restarting and updating the daemon."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from cortex.base.errors import ToolFailed
from cortex.integrations.files import Files
from cortex.integrations.process import ProcessResult
from cortex.integrations.sandbox import Limits, Sandbox
from cortex.ports.system import Logs, Restarting, Status, Upgrade, Upkeep
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import Output
from cortex.toolkit.stretch import RESULT_CHARACTERS

SUMMARY = "this server: status, logs, shell, restart, update"
PREFIXES = ("cortex_", "shell_exec")
ROLES = {"coder": ("shell_exec",)}
ADMIN_ROLES = {"orchestrator": ("system",)}
TESTED = "the real sandbox (bubblewrap); restart and update in real installations"
COMMAND_CHARACTERS = 8_000
LINE_CHARACTERS = 400
CHANGES = 15
TIMEOUT_S = 60


@tool(words="Look at the state of Cortex", effect="read", admin=True, needs=("Status",))
async def cortex_status(ctx: Ctx) -> str:
    """Tell how the Cortex server is doing."""
    return "\n".join(await ctx.use(Status).lines())


@tool(
    words="Read the log of Cortex[, for {contains}]",
    effect="read",
    admin=True,
    needs=("Logs",),
    reads_private=True,
    reads_untrusted=True,
)
async def cortex_logs(
    ctx: Ctx,
    lines: Annotated[int, Field(ge=1, le=40)] = 20,
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO",
    contains: str = "",
) -> str:
    """Show the newest lines of Cortex's own log.

    Args:
        lines: How many.
        level: The least grave to show.
        contains: Only lines with these words.
    """
    found = ctx.use(Logs).tail(lines, level, contains)
    return "\n".join(line[:LINE_CHARACTERS] for line in found) or "No line in the log fits."


async def _can_exec(ctx: Ctx, command: str, folder: str, timeout_s: int) -> None:
    if not command.strip() or len(command) > COMMAND_CHARACTERS or "\0" in command:
        raise ToolFailed(f"A command has 1 to {COMMAND_CHARACTERS} characters; nothing ran.")
    await ctx.use(Files).folder(folder)


@tool(
    words="Run in the sandbox: {command}",
    risk="high",
    confirm=True,
    admin=True,
    needs=("Files", "Sandbox"),
    reads_private=True,
    reads_untrusted=True,
    check=_can_exec,
)
async def shell_exec(
    ctx: Ctx, command: str, folder: str = "", timeout_s: Annotated[int, Field(ge=1, le=TIMEOUT_S)] = 30
) -> Output:
    """Run a shell command in a sandbox: the user's files, no network.

    Args:
        command: For bash.
        folder: Where to run it; the user's own files when left out.
        timeout_s: Seconds it may take.
    """
    await _can_exec(ctx, command, folder, timeout_s)
    root, rest = await ctx.use(Files).folder(folder)
    limits = Limits(timeout_s=timeout_s, cpu_s=timeout_s, output_bytes=RESULT_CHARACTERS)
    ended = await ctx.use(Sandbox).run(
        ["bash", "-c", command], workspace=root.path, folder=rest, is_writable=root.is_writable, limits=limits
    )
    return Output(text=_process_text(ended), is_tainted=True)


async def _can_restart(ctx: Ctx, reason: str) -> None:
    await ctx.use(Restarting).must_be_possible()


@tool(words="Restart Cortex[: {reason}]", risk="high", admin=True, needs=("Restarting",), check=_can_restart)
async def cortex_restart(ctx: Ctx, reason: str = "") -> str:
    """Restart the Cortex server once running turns have ended.

    Args:
        reason: Why, for the log.
    """
    others = await ctx.use(Restarting).restart(reason.strip()[:LINE_CHARACTERS])
    turns = f"{others} other{'' if others == 1 else 's'} have" if others else "this turn has"
    return f"Cortex restarts as soon as {'this turn and ' if others else ''}{turns} ended; the page reloads by itself."


async def _can_update(ctx: Ctx, action: str) -> None:
    if action == "roll_back":
        await _earlier(ctx)
    if action != "preview":
        await ctx.use(Upkeep).must_be_possible()


async def _earlier(ctx: Ctx) -> str:
    """The version to go back to. ToolFailed where there is none."""
    found = await ctx.use(Upkeep).earlier()
    if not found:
        raise ToolFailed("There is no earlier version to go back to.")
    return found


_STEPS = {
    "preview": "Look for an update of Cortex",
    "install": "Update Cortex",
    "roll_back": "Go back to the earlier version of Cortex",
}


def _step(arguments: Mapping[str, Any]) -> str:
    return _STEPS[arguments["action"]]


@tool(words=_step, risk="high", admin=True, needs=("Upkeep",), check=_can_update)
async def cortex_update(ctx: Ctx, action: Literal["preview", "install", "roll_back"] = "preview") -> str:
    """Update the Cortex server, preview an update, or roll it back.

    Args:
        action: What to do; preview first.
    """
    upkeep = ctx.use(Upkeep)
    if action == "roll_back":
        return await upkeep.roll_back(await _earlier(ctx))
    found = await upkeep.preview()
    if found.progress:
        return f"An update is under way: {found.progress}."
    if not found.version:
        return f"Cortex {found.current} is the newest version."
    return await upkeep.update(found.version) if action == "install" else _news(found)


def _news(found: Upgrade) -> str:
    """Tell what an update would bring, in a few lines."""
    rest = len(found.changes) - CHANGES
    lines = [f"Cortex {found.current} can be updated to {found.version}:"]
    lines += [f"- {change[:LINE_CHARACTERS]}" for change in found.changes[:CHANGES]]
    lines += [f"- ... and {rest} more"] if rest > 0 else []
    return "\n".join([*lines, f"Changes to the tables: {found.migrations}. Nothing was changed yet."])


def _process_text(ended: ProcessResult) -> str:
    """Tell what the command printed and how it ended."""
    parts = [ended.out.rstrip(), f"stderr: {ended.err.rstrip()}" if ended.err.strip() else ""]
    if ended.killed:
        parts.append(f"[stopped: {ended.killed}]")
    elif ended.code:
        parts.append(f"[exit code {ended.code}]")
    return "\n".join(part for part in parts if part) or "(no output, exit code 0)"
