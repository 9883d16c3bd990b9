"""The house itself, for admins: its state, its log, and a command in the sandbox."""

from typing import Annotated, Literal

from pydantic import Field

from cortex.base.errors import ToolFailed
from cortex.base.tool_ports import Logs, Status
from cortex.integrations.files import Files
from cortex.integrations.process import Finished
from cortex.integrations.sandbox import Limits, Sandbox
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.examples import said_beside
from cortex.toolkit.spec import Output, Phrase

SUMMARY = "this Cortex server: status, logs, run a shell command"
PREFIXES = ("cortex_", "shell_")
COMMAND_CHARACTERS = 8_000
OUTPUT_BYTES = 6_000
LINE_CHARACTERS = 400
TIMEOUT_S = 60


@tool(effect="read", admin=True, needs=("Status",))
async def cortex_status(ctx: Ctx) -> str:
    """Tell how the Cortex server is doing."""
    return "\n".join(await ctx.use(Status).lines())


@tool(effect="read", admin=True, needs=("Logs",), reads_private=True, reads_untrusted=True)
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


@tool(risk="high", confirm=True, admin=True, needs=("Files", "Sandbox"), reads_private=True, reads_untrusted=True)
async def shell_exec(
    ctx: Ctx, command: str, folder: str = "", timeout_s: Annotated[int, Field(ge=1, le=TIMEOUT_S)] = 30
) -> Output:
    """Run a shell command in a sandbox: the user's files, no network.

    Args:
        command: For bash.
        folder: Where to run it; the user's own files when left out.
        timeout_s: Seconds it may take.
    """
    if not command.strip() or len(command) > COMMAND_CHARACTERS or "\0" in command:
        raise ToolFailed(f"A command has 1 to {COMMAND_CHARACTERS} characters.")
    root, rest = await ctx.use(Files).folder(folder)
    limits = Limits(timeout_s=timeout_s, cpu_s=timeout_s, output_bytes=OUTPUT_BYTES)
    ended = await ctx.use(Sandbox).run(
        ["bash", "-c", command], workspace=root.path, folder=rest, is_writable=root.is_writable, limits=limits
    )
    return Output(text=_told(ended), is_tainted=True)


def _told(ended: Finished) -> str:
    """What the command printed and how it ended."""
    parts = [ended.out.rstrip(), f"stderr: {ended.err.rstrip()}" if ended.err.strip() else ""]
    if ended.killed:
        parts.append(f"[stopped: {ended.killed}]")
    elif ended.code:
        parts.append(f"[exit code {ended.code}]")
    return "\n".join(part for part in parts if part) or "(no output, exit code 0)"


PHRASES = (
    Phrase(text="cortex status", weight=1.2, tools=("cortex_status",)),
    Phrase(text="system status", weight=1.0, tools=("cortex_status",)),
    Phrase(text="server status", weight=1.0, tools=("cortex_status",)),
    Phrase(text="are you healthy", weight=1.0, tools=("cortex_status",)),
    Phrase(text="cortex logs", weight=1.2, tools=("cortex_logs",)),
    Phrase(text="your logs", weight=1.1, tools=("cortex_logs",)),
    Phrase(text="server logs", weight=1.0, tools=("cortex_logs",)),
    Phrase(text="run command", weight=1.1, tools=("shell_exec",)),
    Phrase(text="run the command", weight=1.1, tools=("shell_exec",)),
    Phrase(text="in the shell", weight=1.2, tools=("shell_exec",)),
    Phrase(text="in a shell", weight=1.2, tools=("shell_exec",)),
    Phrase(text="in the terminal", weight=1.1, tools=("shell_exec",)),
    Phrase(text="shell command", weight=1.0, tools=("shell_exec",), unless=("explain", "what does")),
    Phrase(text="bash", weight=0.7, tools=("shell_exec",), unless=("explain", "what is bash", "party", "bash script")),
)

EXAMPLES = said_beside(__file__)
