"""Packages with tools for Cortex: not imported until an admin allows them, and whatever they do, Cortex goes on."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex.agent.arguments import check, destination, title
from cortex.agent.execute import run_tool
from cortex.base.clock import now
from cortex.base.errors import Conflict, NotAllowed, NotFound, UserError
from cortex.base.messages import ToolCall
from cortex.services.tools import plugin_channels, plugins
from cortex.storage.audit import AuditRepository
from cortex.storage.integrations import IntegrationsRepository
from cortex.toolkit.context import Ctx
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.plugin_packages import allow, install, package_folder, plugin

NAME = "cortex-sky"
TOOL = '''"""Stars."""
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
SUMMARY = "stars"
{more}

@tool({facts})
async def {name}(ctx: Ctx, star: str = "") -> str:
    """Find a star.

    Args:
        star: Its name.
    """
    {body}
'''


def tool_file(name: str = "sky_star", facts: str = "", body: str = "return star", more: str = "") -> str:
    return TOOL.format(name=name, facts=facts, body=body, more=more)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    with package_folder(tmp_path / "site") as folder:
        yield folder


def brings(site: Path, text: str, module: str = "cortex_sky.sky", **more: str) -> None:
    """Install the package with this tool file."""
    files = {"cortex_sky/__init__.py": "", f"{module.replace('.', '/')}.py": text}
    install(site, NAME, files, {"cortex.tools": {"sky": module}}, **more)


async def called(house: LivingHouse, name: str, **arguments: Any) -> tuple[str, str]:
    """What the tool gives back, and how the call ended."""
    registry = house.cortex.runtime.registry
    checked = check(registry, frozenset({name}), ToolCall(id="1", name=name, arguments=json.dumps(arguments)))
    assert not isinstance(checked, str), checked
    ctx = Ctx(
        user=house.admin,
        conversation_id="here",
        turn_id="turn:1",
        call_id="call",
        role="admin",
        now=now(),
        scope=house.cortex.scope,
    )
    output, state = await run_tool(checked.tool, ctx, checked.arguments)
    return output.text, state


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import a_package_that_is_not_there", "ModuleNotFoundError"),
        ("def (", "SyntaxError"),
        ("SUMMARY = 'nothing in here'", "no tool"),
        (tool_file().replace("Find a star.", ""), "docstring"),
        (tool_file(more="ROLES = {'orchestrator': ('system',)}"), "ROLES name unknown tools ['system']"),
        (tool_file("shell_exec", more="PREFIXES = ('shell_',)"), "'shell_exec' is a name of Cortex itself"),
        (tool_file("web", more="PREFIXES = ('web',)"), "'web' is a name of Cortex itself"),
        (tool_file("mcp_lamp", more="PREFIXES = ('mcp_',)"), "'mcp_lamp' is a name of Cortex itself"),
        (tool_file("sky_Ä"), "is no name"),
        (tool_file(facts="unheard_of=True"), "unheard_of"),
    ],
    ids=[
        *("raises", "exits", "lacks", "syntax", "no-tool", "no-docstring", "grants-others", "shadows"),
        *("named-as-category", "named-as-mcp", "odd-name", "unknown-fact"),
    ],
)
async def test_one_that_cannot_be_taken_shows_why_and_stops_nothing(
    tmp_path: Path, site: Path, text: str, fault: str
) -> None:
    await asyncio.to_thread(brings, site, text)
    async with living_house(tmp_path / "home") as house:
        found = await allow(house.cortex, house.admin, NAME)
        assert found.state == "failed"
        assert fault in " ".join(found.faults)
        shipped = house.cortex.runtime.registry
        assert shipped.held is shipped.shipped
    async with living_house(tmp_path / "home") as house:  # as the next start has it
        assert (await plugin(house.cortex, NAME)).state == "failed"
        assert "shell_exec" in await house.cortex.tools.permitted(house.admin, "admin")
        (finding,) = [one for one in await house.cortex.doctor.examine(of=house.admin) if NAME in one.name]
        assert finding.state == "warn"


async def test_one_that_never_finishes_its_import_is_left_behind(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "LOAD_S", 0.2)
    files = {
        "cortex_sky/__init__.py": "import threading\ngate = threading.Event()",
        "cortex_sky/slow.py": "import cortex_sky\ncortex_sky.gate.wait()",
    }
    await asyncio.to_thread(install, site, NAME, files, {"cortex.tools": {"slow": "cortex_sky.slow"}})
    async with living_house(tmp_path / "home") as house:
        found = await allow(house.cortex, house.admin, NAME)
        assert (found.state, "not imported" in " ".join(found.faults)) == ("failed", True)
        assert "task_create" in await house.cortex.tools.permitted(house.admin, "admin")
    sys.modules["cortex_sky"].gate.set()
    for thread in threading.enumerate():
        if thread.name == f"plug-in {NAME}":
            await asyncio.to_thread(thread.join, PATIENCE_S)


async def test_a_fault_in_one_module_costs_the_others_nothing(tmp_path: Path, site: Path) -> None:
    files = {"cortex_sky/__init__.py": "", "cortex_sky/bad.py": "raise RuntimeError", "cortex_sky/sky.py": tool_file()}
    points = {"cortex.tools": {"bad": "cortex_sky.bad", "sky": "cortex_sky.sky"}}
    await asyncio.to_thread(install, site, NAME, files, points)
    async with living_house(tmp_path / "home") as house:
        found = await allow(house.cortex, house.admin, NAME)
        assert (found.state, found.tools) == ("failed", ("sky_star",))
        assert "sky_star" in house.cortex.runtime.registry.tools


@pytest.mark.parametrize(
    ("body", "state", "said"),
    [
        ("import sys; sys.exit()", "err", "tried to end Cortex"),
        ("return 7", "err", "'int' in place of text"),
        ("return 1 / 0", "err", "failed unexpectedly"),
        ("return star", "ok", "Vega"),
    ],
    ids=["exits", "no-text", "raises", "works"],
)
async def test_whatever_its_function_does_ends_its_call_alone(
    tmp_path: Path, site: Path, body: str, state: str, said: str
) -> None:
    await asyncio.to_thread(brings, site, tool_file(body=body))
    async with living_house(tmp_path / "home") as house:
        await allow(house.cortex, house.admin, NAME)
        text, ended = await called(house, "sky_star", star="Vega")
        assert ended == state
        assert said in text


async def test_faults_of_what_the_gate_asks_it_make_a_call_no_less_careful(tmp_path: Path, site: Path) -> None:
    hooks = "risk_of=lambda values: values['x'], sends_to=lambda values: 1 / 0, words=lambda values: None"
    await asyncio.to_thread(brings, site, tool_file(facts=hooks))
    async with living_house(tmp_path / "home") as house:
        await allow(house.cortex, house.admin, NAME)
        call = ToolCall(id="1", name="sky_star", arguments="{}")
        checked = check(house.cortex.runtime.registry, frozenset({"sky_star"}), call)
        assert not isinstance(checked, str)
        assert (checked.risk, bool(destination(checked)), title(checked)) == ("high", True, "Find a star.")


async def test_its_marks_are_those_of_what_came_from_outside(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(brings, site, tool_file(facts="reads_untrusted=False, free=True, effect='read'"))
    async with living_house(tmp_path / "home") as house:
        await allow(house.cortex, house.admin, NAME)
        tool = house.cortex.runtime.registry.tools["sky_star"]
        assert (tool.reads_untrusted, tool.free, tool.is_outward, tool.policy) == (True, False, True, "deferred")
        assert "sky_star" not in await house.cortex.tools.permitted(house.member, "orchestrator")
        assert "sky_star" in await house.cortex.tools.permitted(house.admin, "admin")


async def test_only_what_was_shown_is_allowed_and_only_by_an_admin(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(brings, site, tool_file())
    async with living_house(tmp_path / "home") as house:
        door = house.cortex.plugins
        with pytest.raises(NotAllowed):
            await door.allow(house.member, NAME, "")
        with pytest.raises(NotAllowed):
            await door.revoke(house.member, NAME)
        with pytest.raises(Conflict, match="changed while you were reading"):
            await door.allow(house.admin, NAME, "another digest")
        with pytest.raises(NotFound):
            await door.allow(house.admin, "cortex-sea", "")
        with pytest.raises(NotFound):
            await door.revoke(house.admin, NAME)
        assert (await plugin(house.cortex, NAME)).state == "new"
        assert "cortex_sky" not in sys.modules


async def test_revoking_takes_its_tools_away_and_a_new_version_waits_for_a_restart(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(brings, site, tool_file())
    async with living_house(tmp_path / "home") as house:
        await allow(house.cortex, house.admin, NAME)
        await house.cortex.plugins.revoke(house.admin, NAME)
        assert (await plugin(house.cortex, NAME)).state == "new"
        assert "sky_star" not in house.cortex.runtime.registry.tools
        await asyncio.to_thread(brings, site, tool_file(body="return 'another'"))
        assert (await allow(house.cortex, house.admin, NAME)).state == "waiting"
        assert "sky_star" not in house.cortex.runtime.registry.tools
        log = await house.cortex.runtime.db.repository(AuditRepository).list(9, subject=NAME)
        assert [row.action for row in log] == ["plugin.allowed", "plugin.revoked", "plugin.allowed"]


async def test_one_that_is_gone_is_said_and_can_be_revoked(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(brings, site, tool_file())
    async with living_house(tmp_path / "home") as house:
        await allow(house.cortex, house.admin, NAME)
        await asyncio.to_thread((site / "cortex_sky-1.0.dist-info/entry_points.txt").unlink)
        assert (await plugin(house.cortex, NAME)).state == "gone"
        await house.cortex.plugins.revoke(house.admin, NAME)
        assert await house.cortex.plugins.list() == []
        assert await house.cortex.runtime.db.repository(IntegrationsRepository).list() == []


def drop_record(site: Path) -> None:
    (site / "cortex_sky-1.0.dist-info/RECORD").unlink()


def make_editable(site: Path) -> None:
    text = json.dumps({"url": "file:///somewhere", "dir_info": {"editable": True}})
    (site / "cortex_sky-1.0.dist-info/direct_url.json").write_text(text, encoding="utf-8")


def name_an_object(site: Path) -> None:
    points = "[cortex.tools]\nsky = cortex_sky.sky:sky_star\n"
    (site / "cortex_sky-1.0.dist-info/entry_points.txt").write_text(points, encoding="utf-8")


def name_our_module(site: Path) -> None:
    points = "[cortex.tools]\nsky = cortex.tools.web\n"
    (site / "cortex_sky-1.0.dist-info/entry_points.txt").write_text(points, encoding="utf-8")


@pytest.mark.parametrize("damage", [drop_record, make_editable, name_an_object, name_our_module])
async def test_what_cannot_be_held_to_its_files_cannot_be_allowed(tmp_path: Path, site: Path, damage: Any) -> None:
    await asyncio.to_thread(brings, site, tool_file())
    await asyncio.to_thread(damage, site)
    async with living_house(tmp_path / "home") as house:
        found = await plugin(house.cortex, NAME)
        assert found.state == "unfit"
        assert found.package is not None
        with pytest.raises(UserError, match="cannot be allowed"):
            await house.cortex.plugins.allow(house.admin, NAME, found.package.digest)


def add_a_file(site: Path) -> None:
    (site / "cortex_sky/more.py").write_text("", encoding="utf-8")


def change_a_byte(site: Path) -> None:
    (site / "cortex_sky/__init__.py").write_text("#", encoding="utf-8")


def remove_a_file(site: Path) -> None:
    (site / "cortex_sky/__init__.py").unlink()


def add_a_point(site: Path) -> None:
    with (site / "cortex_sky-1.0.dist-info/entry_points.txt").open("a") as file:
        file.write("\n[cortex.channels]\nsky = cortex_sky.sky\n")


@pytest.mark.parametrize("damage", [add_a_file, change_a_byte, remove_a_file, add_a_point])
async def test_any_change_of_its_files_takes_it_out_at_once(tmp_path: Path, site: Path, damage: Any) -> None:
    await asyncio.to_thread(brings, site, tool_file())
    async with living_house(tmp_path / "home") as house:
        await allow(house.cortex, house.admin, NAME)
        assert "sky_star" in house.cortex.runtime.registry.tools
        await asyncio.to_thread(damage, site)
        found = await plugin(house.cortex, NAME)
        assert (found.state, bool(found.package and found.package.altered)) == ("changed", True)
        await house.cortex.tool_settings.in_force()
        assert "sky_star" not in house.cortex.runtime.registry.tools


async def test_what_an_import_leaves_behind_is_no_change(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(brings, site, tool_file())
    async with living_house(tmp_path / "home") as house:
        await allow(house.cortex, house.admin, NAME)
        cache = site / "cortex_sky/__pycache__"
        await asyncio.to_thread(cache.mkdir, exist_ok=True)
        await asyncio.to_thread((cache / "sky.cpython-311.pyc").write_bytes, b"x")
        assert (await plugin(house.cortex, NAME)).state == "allowed"


async def test_damaged_metadata_of_any_package_keeps_nobody_out(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(brings, site, tool_file())
    await asyncio.to_thread(install, site, "cortex-sea", {"cortex_sea.py": ""}, {"cortex.tools": {"sea": "9 odd =="}})
    await asyncio.to_thread((site / "broken-1.0.dist-info").mkdir)
    await asyncio.to_thread((site / "broken-1.0.dist-info/entry_points.txt").write_bytes, b"[cortex.tools]\nx=\xff")
    async with living_house(tmp_path / "home") as house:
        assert (await allow(house.cortex, house.admin, NAME)).state == "allowed"


async def test_of_two_that_bring_the_same_names_the_second_says_so(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(brings, site, tool_file())
    sea = {"cortex_sea/__init__.py": "", "cortex_sea/sky.py": tool_file()}
    await asyncio.to_thread(install, site, "cortex-sea", sea, {"cortex.tools": {"sky": "cortex_sea.sky"}})
    async with living_house(tmp_path / "home") as house:
        first = await allow(house.cortex, house.admin, "cortex-sea")
        second = await allow(house.cortex, house.admin, NAME)
        assert (first.state, second.state, second.tools) == ("allowed", "failed", ())
        assert "this name" in " ".join(second.faults)


BELL = """
from cortex.notify import ChannelField, ChannelKind


def lacks(settings):
    raise RuntimeError("no bell")


CHANNEL = ChannelKind(
    label="Bell",
    order=900,
    open=None,
    tested="nothing",
    lacks=lacks,
    fields=(ChannelField(name="address", label="Door"),),
)
"""


def bells(site: Path, *names: str) -> None:
    files = {"cortex_sky/__init__.py": "", "cortex_sky/bell.py": BELL, "cortex_sky/mute.py": ""}
    points = {"cortex.channels": {one: f"cortex_sky.{one}" for one in names}}
    install(site, NAME, files, points)


async def test_channels_come_through_the_same_door(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(bells, site, "bell", "mute")
    async with living_house(tmp_path / "home") as house:
        channels, door = house.cortex.channels, house.cortex.plugins
        assert "bell" not in channels.kinds
        found = await allow(house.cortex, house.admin, NAME)
        assert (found.state, found.channels) == ("failed", ("bell",))
        assert [fault.partition(":")[0] for fault in found.faults] == ["cortex_sky.mute"]
        assert channels.lacks("bell") == plugin_channels.BROKEN
    async with living_house(tmp_path / "home") as house:  # what was due is sent by it from the first moment on
        channels, door = house.cortex.channels, house.cortex.plugins
        assert "bell" in channels.kinds
        await door.revoke(house.admin, NAME)
        await door.categories()
        assert "bell" not in channels.kinds
