"""Skills as SKILL.md folders: in, marked, refused in words, and out again."""

import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.services.tools.skill_folders import read_folders
from tests.living_house import LivingHouse, living_house

TEA = """---
name: make-tea
description: 'Brews tea: hot #1. Use when somebody is cold.'
license: MIT
metadata:
  phrases: [brew tea, "a cup: hot"]
  tools: [reminder_add]
---

# Tea

Boil water.
"""
UNREADABLE = [
    "",
    "x",
    "---\nname: a: b\n---\nb",
    "---\n- a\n---\nb",
    "---\nname: x\n---\nno description",
    "---\nname: !!python/object:os.system x\n---\nb",
    "---\n" + "a: [" * 5_000 + "\n---\n",
]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


def packed(**files: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"skills/{name}/SKILL.md", text)
            archive.writestr(f"skills/{name}/scripts/run.py", "print(1)")
    return held.getvalue()


async def test_folders_come_in_marked_and_go_out_as_they_were(house: LivingHouse) -> None:
    skills, ada = house.cortex.skills, house.admin
    added, refused = await skills.bring_in(ada, packed(tea=TEA, broken="no front matter", empty="---\nname: x\n---\n"))
    assert (added, len(refused)) == (["make-tea"], 2)
    file = await skills.read(ada, "make-tea")
    assert file.skill is not None
    assert file.is_tainted
    own = ("Make tea", ("brew tea", "a cup: hot"), ("reminder_add",))
    assert (file.skill.title, file.skill.phrases, file.skill.tools) == own
    assert "Boil water." in file.text
    out = await skills.folders(ada)
    with zipfile.ZipFile(io.BytesIO(out)) as archive:
        assert archive.namelist() == ["make-tea/SKILL.md"]
    (again,) = read_folders(out)
    assert (again.title, again.phrases, again.tools) == own
    assert "Boil water." in again.body
    assert (await skills.bring_in(ada, out))[0] == []
    assert await skills.list(house.member) == []


async def test_an_own_skill_is_neither_replaced_nor_marked(house: LivingHouse) -> None:
    await house.cortex.skills.create(house.admin, "Make tea", "How I make tea", "My way.")
    added, refused = await house.cortex.skills.bring_in(house.admin, TEA.encode())
    assert (added, "already" in refused[0]) == ([], True)
    file = await house.cortex.skills.read(house.admin, "make-tea")
    assert ("My way." in file.text, file.is_tainted) == (True, False)


@pytest.mark.parametrize("data", [b"PKbroken", packed()], ids=["broken", "empty"])
def test_what_holds_no_skill_is_refused(data: bytes) -> None:
    with pytest.raises(UserError):
        read_folders(data)


@pytest.mark.parametrize("text", UNREADABLE, ids=[str(number) for number in range(len(UNREADABLE))])
def test_a_skill_that_cannot_be_read_says_so(text: str) -> None:
    (found,) = read_folders(text.encode())
    assert found.error
