"""Well formed or not, said with the place; nothing of the text is run."""

import pytest

from cortex.base.errors import ToolFailed
from cortex.integrations.sandbox import Sandbox
from cortex.integrations.syntax import check_here, check_in_sandbox, kind_of


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
async def test_kinds_that_are_read_here(kind: str, good: str, bad: str, hint: str) -> None:
    assert await check_here(kind, good) == ""
    assert hint in await check_here(kind, bad)


@pytest.mark.parametrize("kind", ["json", "yaml", "python", "sql"])
async def test_deep_nesting_is_told(kind: str) -> None:
    assert await check_here(kind, "[" * 20_000) or kind


async def test_yaml_that_would_make_objects_makes_none() -> None:
    assert await check_here("yaml", "!!python/object/apply:os.system ['touch /tmp/evil']") == ""


@pytest.fixture
async def sandbox() -> Sandbox:
    made = Sandbox()
    probe = await made.probe()
    if probe.level == "none":
        pytest.skip(f"needs a sandbox: {probe.reason}")
    return made


async def test_shell(sandbox: Sandbox) -> None:
    assert await check_in_sandbox("shell", "a.sh", "if true; then echo yes; fi\n", sandbox) == ""
    assert "line 2" in await check_in_sandbox("shell", "a.sh", "if true; then\n", sandbox)


async def test_shell_is_not_run(sandbox: Sandbox) -> None:
    assert await check_in_sandbox("shell", "a.sh", "echo hello; exit 7\n", sandbox) == ""


async def test_javascript(sandbox: Sandbox) -> None:
    try:
        good = await check_in_sandbox("javascript", "a.mjs", "export const a = await 1;\n", sandbox)
    except ToolFailed as error:
        pytest.skip(f"needs node: {error.message}")
    assert good == ""
    assert "SyntaxError" in await check_in_sandbox("javascript", "a.js", "const = 1;\n", sandbox)


def test_the_kind_is_known_by_name_or_first_line() -> None:
    assert kind_of("a.YML", "") == "yaml"
    assert kind_of("run", "#!/bin/bash\n") == "shell"
    assert kind_of("run", "#!/usr/bin/env python3\n") == "python"
    with pytest.raises(ToolFailed, match="json"):
        kind_of("a.exe", "MZ")
