"""Well formed or not, said with the place; nothing of the text is run."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base.errors import ToolFailed
from cortex.integrations.process import tree_of
from cortex.integrations.sandbox import Sandbox
from cortex.integrations.syntax import LIMITS, check, kind_of
from tests.patience import PATIENCE_S


@pytest.fixture
async def sandbox() -> Sandbox:
    made = Sandbox()
    probe = await made.probe()
    if probe.level == "none":
        pytest.skip(f"needs a sandbox: {probe.reason}")
    return made


@pytest.mark.parametrize(
    ("kind", "good", "bad", "hint"),
    [
        ("python", "def a():\n    return 1\n", "def a(:\n", "line 1"),
        ("json", '{"a": [1, 2]}', '{"a": [1, 2}', "line 1"),
        ("yaml", "a:\n  - 1\n", "a: [1\nb: 2", "line 2"),
        ("toml", 'a = 1\n[b]\nc = "d"\n', "a = \n", "line 1"),
        ("sql", "select a from b where c = 1", "select from where (", "Line 1"),
    ],
)
async def test_kinds_that_parsers_of_ours_read(sandbox: Sandbox, kind: str, good: str, bad: str, hint: str) -> None:
    assert await check(kind, "", good, sandbox) == ""
    assert hint in await check(kind, "", bad, sandbox)


@pytest.mark.parametrize("kind", ["json", "yaml", "python", "sql"])
async def test_deep_nesting_is_told(sandbox: Sandbox, kind: str) -> None:
    assert await check(kind, "", "[" * 20_000, sandbox)


@pytest.mark.parametrize("is_shut_in", [True, False], ids=["in the sandbox", "without one"])
async def test_a_text_that_keeps_a_parser_busy_is_given_up(sandbox: Sandbox, is_shut_in: bool) -> None:
    """tomllib's time grows with the square of a key's parts; in a thread of ours nothing could end it."""
    text = "a" + ".a" * 200_000 + " = 1"
    short = replace(LIMITS, cpu_s=1, timeout_s=PATIENCE_S)
    with pytest.raises(ToolFailed, match="took longer than 1 s"):
        await check("toml", "", text, sandbox if is_shut_in else None, short)
    assert [pid for pid in tree_of(os.getpid(), 1_000) if "parsers" in _command(pid)] == []


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


async def test_without_a_sandbox_only_parsers_of_ours_check() -> None:
    assert await check("json", "", "{}", None) == ""
    with pytest.raises(ToolFailed, match="sandbox only"):
        await check("shell", "a.sh", "if", None)


async def test_yaml_that_would_make_objects_makes_none(sandbox: Sandbox) -> None:
    assert await check("yaml", "", "!!python/object/apply:os.system ['touch /tmp/evil']", sandbox) == ""


async def test_shell(sandbox: Sandbox) -> None:
    assert await check("shell", "a.sh", "if true; then echo yes; fi\n", sandbox) == ""
    assert "line 2" in await check("shell", "a.sh", "if true; then\n", sandbox)


async def test_shell_is_not_run(sandbox: Sandbox) -> None:
    assert await check("shell", "a.sh", "echo hello; exit 7\n", sandbox) == ""


async def test_javascript(sandbox: Sandbox) -> None:
    try:
        good = await check("javascript", "a.mjs", "export const a = await 1;\n", sandbox)
    except ToolFailed as error:
        pytest.skip(f"needs node: {error.message}")
    assert good == ""
    assert "SyntaxError" in await check("javascript", "a.js", "const = 1;\n", sandbox)


def test_the_kind_is_known_by_name_or_first_line() -> None:
    assert kind_of("a.YML", "") == "yaml"
    assert kind_of("run", "#!/bin/bash\n") == "shell"
    assert kind_of("run", "#!/usr/bin/env python3\n") == "python"
    with pytest.raises(ToolFailed, match="json"):
        kind_of("a.exe", "MZ")
