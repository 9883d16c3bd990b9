"""Says whether a file's text is well formed, by its kind. Nothing of it is ever executed.

Every kind is checked by a program with hard limits of time and memory: a parser of ours (`parsers.py`), or the
language's own checker.
"""

import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import cortex
from cortex.base.errors import ToolFailed
from cortex.integrations.process import ProcessResult, run
from cortex.integrations.quota import MB
from cortex.integrations.sandbox import Limits, Sandbox

TEXT_CHARACTERS = 500_000
SYSTEM = Path("/usr")
LIMITS = Limits(cpu_s=5, address_bytes=16_000 * MB, processes=32, output_bytes=4_000)
KINDS = {
    ".py": "python",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".sql": "sql",
    ".sh": "shell",
    ".bash": "shell",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
}
OURS = tuple(Path(place) for place in cortex.__path__)
ENDED_BY_LIMIT = (-9, -24, 128 + 9, 128 + 24)  # SIGKILL and SIGXCPU, as a process and as a shell tell them
CHECKERS = {"shell": "bash -n", "javascript": "node --check"}


def kind_of(path: str, text: str) -> str:
    """The kind by the name's ending, else by a `#!` line; ToolFailed names the kinds that can be checked."""
    suffix = PurePosixPath(path).suffix.lower()
    first = text.partition("\n")[0]
    if suffix in KINDS:
        return KINDS[suffix]
    if first.startswith("#!") and first.rstrip().endswith("sh"):
        return "shell"
    if first.startswith("#!") and "python" in first:
        return "python"
    raise ToolFailed(f"{path!r} cannot be checked. These can: {', '.join(sorted(set(KINDS.values())))}.")


async def check(kind: str, path: str, text: str, sandbox: Sandbox | None, limits: Limits = LIMITS) -> str:
    """The first faults of the text, or "" when it is well formed.

    ToolFailed when that cannot be said: it took too long, the checker is not installed, or it needs a sandbox and there
    is none. Parsers of ours run in one where there is one.
    """
    if len(text) > TEXT_CHARACTERS:
        raise ToolFailed(f"It is longer than {TEXT_CHARACTERS} characters.")
    if kind not in CHECKERS:
        return await _parsed(kind, text, sandbox, limits)
    if sandbox is None:
        raise ToolFailed(f"{kind} is checked in a sandbox only, and this machine has none.")
    return await _checked(kind, path, text, sandbox, limits)


async def _parsed(kind: str, text: str, sandbox: Sandbox | None, limits: Limits) -> str:
    argv = [sys.executable, "-I", "-m", "cortex.integrations.parsers", kind, str(limits.cpu_s)]
    stdin = text.encode("utf-8", "surrogatepass")
    if sandbox is None:
        ended = await run(argv, cwd=SYSTEM, timeout_s=limits.timeout_s, stdin=stdin, output_bytes=limits.output_bytes)
    else:
        ended = await _in_sandbox(sandbox, limits, argv, stdin, (Path(sys.prefix), Path(sys.base_prefix), *OURS))
    if ended.killed:
        raise ToolFailed(f"The check was ended: {ended.killed}.")
    if ended.code == 0:
        return ended.out
    if ended.code in ENDED_BY_LIMIT:
        raise ToolFailed(f"The check took longer than {limits.cpu_s} s.")
    raise ToolFailed(f"The parser could not read it: {(ended.err.strip() or f'exit code {ended.code}')[-200:]}")


async def _checked(kind: str, path: str, text: str, sandbox: Sandbox, limits: Limits) -> str:
    suffix = PurePosixPath(path).suffix if kind == "javascript" else ".sh"
    script = f'cat > "$TMPDIR/text{suffix}" && cd "$TMPDIR" && exec {CHECKERS[kind]} text{suffix}'
    ended = await _in_sandbox(sandbox, limits, ["/bin/sh", "-c", script], text.encode())
    if ended.code in (126, 127):
        raise ToolFailed(f"{CHECKERS[kind].partition(' ')[0]!r}, which checks {kind}, is not installed.")
    return "" if ended.code == 0 else (ended.err or ended.out or f"exit code {ended.code}").strip()


async def _in_sandbox(
    sandbox: Sandbox, limits: Limits, argv: Sequence[str], stdin: bytes, readable: Sequence[Path] = ()
) -> ProcessResult:
    ended = await sandbox.run(argv, workspace=SYSTEM, is_writable=False, limits=limits, stdin=stdin, readable=readable)
    if ended.killed:
        raise ToolFailed(f"The check was ended: {ended.killed}.")
    return ended
