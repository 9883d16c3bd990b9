"""Says whether a file's text is well formed, by its kind. Nothing of it is ever executed. Loaded late."""

import ast
import asyncio
import json
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import yaml

from cortex.base import scan
from cortex.base.errors import ToolFailed
from cortex.integrations.sandbox import MB, Limits, Sandbox

TEXT_CHARACTERS = 500_000
SYSTEM = Path("/usr")
LIMITS = Limits(timeout_s=10.0, cpu_s=5, address_bytes=16_000 * MB, processes=32, output_bytes=4_000)
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


async def check_here(kind: str, text: str) -> str:
    """The first fault of a text that a parser of ours reads, or "" when it is well formed."""
    if len(text) > TEXT_CHARACTERS:
        raise ToolFailed(f"It is longer than {TEXT_CHARACTERS} characters.")
    try:
        return await asyncio.wait_for(asyncio.to_thread(_parse, kind, text), LIMITS.timeout_s)
    except TimeoutError as error:
        raise ToolFailed(f"The check took longer than {LIMITS.timeout_s:g} s.") from error


def _parse(kind: str, text: str) -> str:
    try:
        PARSERS[kind](text)
    except SyntaxError as error:
        return f"line {error.lineno}, column {error.offset}: {error.msg}"
    except (RecursionError, MemoryError):
        return "it is nested too deeply to be read"
    except (ValueError, yaml.YAMLError) as error:
        return " ".join(str(error).split())
    return ""


async def check_in_sandbox(kind: str, path: str, text: str, sandbox: Sandbox) -> str:
    """The faults that the language's own checker reports, or "". ToolFailed when it is not there."""
    suffix = PurePosixPath(path).suffix if kind == "javascript" else ".sh"
    script = f'cat > "$TMPDIR/text{suffix}" && cd "$TMPDIR" && exec {CHECKERS[kind]} text{suffix}'
    ended = await sandbox.run(
        ["/bin/sh", "-c", script], workspace=SYSTEM, is_writable=False, limits=LIMITS, stdin=text.encode()
    )
    if ended.killed:
        raise ToolFailed(f"The check was ended: {ended.killed}.")
    if ended.code in (126, 127):
        raise ToolFailed(f"{CHECKERS[kind].partition(' ')[0]!r}, which checks {kind}, is not installed.")
    return "" if ended.code == 0 else (ended.err or ended.out or f"exit code {ended.code}").strip()


def _yaml(text: str) -> None:
    for _ in yaml.compose_all(text, Loader=yaml.SafeLoader):
        pass


def _sql(text: str) -> None:
    scan.load("cortex.integrations.sql_syntax").parse(text)


PARSERS: dict[str, Callable[[str], object]] = {
    "python": ast.parse,
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": _yaml,
    "sql": _sql,
}
