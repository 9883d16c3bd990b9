"""docs/extend.md is true: the package that it prints is built, installed, listed, allowed, called, and asked again."""

import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex.storage.audit import AuditRepository
from tests.living_house import living_house
from tests.patience import PATIENCE_S
from tests.plugin_packages import allow, package_folder, plugin
from tests.scripted_server import ScriptedServer, Use, rule

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "docs/extend.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))
MOON, ASKED = "cortex-moon", "which phase of the moon is it on 21 January 2000?"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the guide, built and installed by pip without any index."""
    folder = tmp_path_factory.mktemp("moon")
    for name, text in FILES.items():
        path = folder / MOON / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    command += ["--target", str(folder / "site"), str(folder / MOON)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture
def moon(built: Path, tmp_path: Path) -> Iterator[Path]:
    """Its tool file, where Python finds it."""
    with package_folder(tmp_path / "site") as site:
        shutil.copytree(built, site, dirs_exist_ok=True)
        yield site / "cortex_moon" / "moon.py"


def change(file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")


def test_the_guide_prints_whole_files() -> None:
    assert set(FILES) == {"pyproject.toml", "cortex_moon/__init__.py", "cortex_moon/moon.py"}


async def test_the_package_of_the_guide_is_allowed_and_answers_a_turn(
    tmp_path: Path, moon: Path, scripted: ScriptedServer
) -> None:
    scripted.rules = [rule("phase of the moon", Use("moon_phase", {"day": "2000-01-21"}), "It is full.")]
    async with living_house(tmp_path / "home") as house:
        await house.connect(scripted)
        assert (await plugin(house.cortex, MOON)).state == "new"
        assert "cortex_moon" not in sys.modules
        assert "moon_phase" not in house.cortex.runtime.registry.tools
        (before,) = await house.cortex.plugins.list()
        assert before.package is not None
        await house.cortex.plugins.allow(house.admin, MOON, before.package.digest)
        cid = await house.conversation()
        await house.say(cid, ASKED)
        (told,) = await house.events(cid, "tool.result")
        assert (told.payload["state"], told.payload["is_tainted"]) == ("ok", True)
        assert "full moon" in told.payload["text"]
        found = await plugin(house.cortex, MOON)
        assert (found.state, found.tools, found.faults) == ("allowed", ("moon_phase",), ())
        assert found.package is not None
        assert (found.package.author, found.package.licence, found.package.altered) == ("Your name", "MIT", ())
        for person in (house.admin, house.member):
            assert "moon_phase" in await house.cortex.tools.permitted(person, "orchestrator")
        assert "moon_phase" not in await house.cortex.tools.permitted(house.member, "research")


async def test_a_package_of_which_a_byte_changed_is_asked_about_again(tmp_path: Path, moon: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        assert (await allow(house.cortex, house.admin, MOON)).state == "allowed"
    await asyncio.to_thread(change, moon)
    async with living_house(tmp_path / "home") as house:
        found = await plugin(house.cortex, MOON)
        assert found.package is not None
        assert (found.state, found.package.altered) == ("changed", ("cortex_moon/moon.py",))
        assert "moon_phase" not in house.cortex.runtime.registry.tools
        (finding,) = [one for one in await house.cortex.doctor.examine(of=house.admin) if MOON in one.name]
        assert (finding.state, "not loaded" in finding.text) == ("warn", True)
        assert (await allow(house.cortex, house.admin, MOON)).state == "allowed"
        audit = await house.cortex.runtime.db.repository(AuditRepository).list(9, subject=MOON)
        assert [row.action for row in audit] == ["plugin.allowed", "plugin.allowed"]
