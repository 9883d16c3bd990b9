"""What a stranger adds is two files and a test: the rest finds them by looking."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
TOOL = '''"""The tides at a place, reckoned."""

from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool

SUMMARY = "high and low tide"
ROLES = {"orchestrator": ("tides",), "research": ("tides_next",)}
TESTED = "a table of one harbour"
SAMPLES = {"tides_note": {"harbour": "Husum"}}


@tool(words="Look up the tide at {harbour}", effect="read")
async def tides_next(ctx: Ctx, harbour: str) -> str:
    """Tell when the next high tide is at a harbour.

    Args:
        harbour: Its name.
    """
    return "at noon"


@tool(words="Note the tide at {harbour}", idempotent=True, risk="high", admin=True)
async def tides_note(ctx: Ctx, harbour: str) -> str:
    """Note the tide at a harbour.

    Args:
        harbour: Its name.
    """
    return "noted"
'''
UTTERANCES = """[tides_next]
when is high tide at Husum
next high tide at the harbour
what time is the tide in tonight at Husum
[? tides_next]
does the water come in before six at Husum, the tide I mean
when will the tide be high at our harbour
"""
LOOKS = """
import asyncio, json
from cortex.app import shipped_registry
from cortex.base.user import User
from cortex.commands.tool_docs import tools_page
from cortex.services.roles.roles import Roles
from cortex.services.tools.tools import ToolsService
from tests.bench.files import CASES, read

registry = shipped_registry()
tools = ToolsService(registry=registry, wired=frozenset(), roles=Roles(registry), assume_configured=True)

async def look():
    people = {"member": User(id="m", name="m", rank="member"), "admin": User(id="a", name="a", rank="admin")}
    has = {}
    for role in ("orchestrator", "research", "coder", "admin"):
        for rank, person in people.items():
            has[f"{role} {rank}"] = sorted(n for n in await tools.permitted(person, role) if n.startswith("tides"))
    receipt = await tools.explain(people["member"], "orchestrator", "when is the next high tide at the harbour?")
    return has, [one["name"] for one in receipt["sent"]]

has, sent = asyncio.run(look())
rows = [row for one in read(CASES, print).routing if one.name == "tides" for row in one.rows]
page = tools_page(registry)
print(json.dumps({
    "has": has,
    "sent": sent,
    "page": [line for line in page.splitlines() if "tides_note" in line or "one harbour" in line],
    "samples": registry.categories["tides"].samples,
    "judged": [row.need_tools for row in rows],
    "examples": len(registry.categories["tides"].examples),
}))
"""


def test_a_tool_file_and_its_utterances_are_all_that_a_new_tool_needs(tmp_path: Path) -> None:
    for folder in ("cortex", "tests/bench"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored, symlinks=True)
    (tmp_path / "cortex/tools/tides.py").write_text(TOOL, encoding="utf-8")
    (tmp_path / "cortex/tools/utterances/tides.txt").write_text(UTTERANCES, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", LOOKS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    nothing: list[str] = []
    assert found["has"] == {
        "orchestrator member": ["tides_next"],
        "orchestrator admin": ["tides_next", "tides_note"],
        "research member": ["tides_next"],
        "research admin": ["tides_next"],
        "coder member": nothing,
        "coder admin": nothing,
        "admin member": nothing,
        "admin admin": ["tides_next", "tides_note"],
    }
    assert "tides_next" in found["sent"]
    tested, note = found["page"]
    assert "one harbour" in tested
    assert all(mark in note for mark in ("`tides_note`", "high", "always asks", "admins only"))
    assert found["samples"] == {"tides_note": {"harbour": "Husum"}}
    assert found["judged"] == [[["tides_next"]], [["tides_next"]]]
    assert found["examples"] == 3
