"""Parses a text from stdin and prints its first fault, nothing when it is well formed. Executes none of it.

A program of its own (`python -I -m cortex.integrations.parsers KIND CPU_S`): a parser can be led to take minutes and
gigabytes, and cannot be stopped inside a process. `syntax.py` starts it, in the sandbox where there is one.
"""

import ast
import json
import resource
import sys
import tomllib
from collections.abc import Callable

import yaml

from cortex.base import scan

ADDRESS_BYTES = 1_000_000_000


def fault_of(kind: str, text: str) -> str:
    """The first fault of the text with its place, or ""."""
    try:
        PARSERS[kind](text)
    except SyntaxError as error:
        return f"line {error.lineno}, column {error.offset}: {error.msg}"
    except (RecursionError, MemoryError):
        return "it is nested too deeply to be read"
    except (ValueError, yaml.YAMLError) as error:
        return " ".join(str(error).split())
    return ""


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


def main(kind: str, cpu_s: int) -> None:
    """Check stdin as `kind`, under limits of its own for machines without a sandbox."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    text = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
    sys.stdout.write(fault_of(kind, text).encode("ascii", "backslashreplace").decode())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
