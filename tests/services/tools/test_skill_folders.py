"""Skills as SKILL.md folders: in, marked, refused in words, and out again."""

import io
import zipfile
from typing import Any

import pytest

from cortex.base.errors import UserError
from cortex.base.front_matter import joined, quoted
from cortex.integrations.foreign.door import ForeignFiles
from cortex.integrations.sandbox import Sandbox
from cortex.services.tools.front_matters import UserFrontMatters
from cortex.services.tools.skill_folders import FoundSkill, read_folders
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.skills import read_skills
from tests.living_house import LivingHouse

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


def packed(**files: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"skills/{name}/SKILL.md", text)
            archive.writestr(f"skills/{name}/scripts/run.py", "print(1)")
    return held.getvalue()


async def test_folders_come_in_marked_and_go_out_as_they_were(house: LivingHouse) -> None:
    skills, ada = house.cortex.skills, house.admin
    data = packed(tea=TEA, broken="no front matter", empty="---\nname: x\n---\n")
    made = await skills.bring_in(ada, io.BytesIO(data))
    assert (made.added, made.others) == (["make-tea"], 3)
    assert [why.partition(":")[0] for why in made.refused] == ["broken", "empty"]
    file = await skills.read(ada, "make-tea")
    assert file.skill is not None
    assert file.is_tainted
    own = ("Make tea", "Brews tea: hot #1. Use when somebody is cold.", ("brew tea", "a cup: hot"), ("reminder_add",))
    assert (file.skill.title, file.skill.description, file.skill.phrases, file.skill.tools) == own
    assert file.body == "# Tea\n\nBoil water."
    out = await skills.folders(ada)
    with zipfile.ZipFile(io.BytesIO(out)) as archive:
        assert archive.namelist() == ["make-tea/SKILL.md"]
    (again,) = await found(house, out)
    assert (again.title, again.description, (*again.phrases,), (*again.tools,)) == own
    assert again.body == file.body
    assert (await skills.bring_in(ada, io.BytesIO(out))).added == []
    assert await skills.list(house.member) == []


async def test_an_own_skill_is_neither_replaced_nor_marked(house: LivingHouse) -> None:
    await house.cortex.skills.create(house.admin, "Make tea", "How I make tea", "My way.")
    made = await house.cortex.skills.bring_in(house.admin, io.BytesIO(TEA.encode()))
    assert (made.added, "already" in made.refused[0]) == ([], True)
    file = await house.cortex.skills.read(house.admin, "make-tea")
    assert ("My way." in file.text, file.is_tainted) == (True, False)


@pytest.mark.parametrize("data", [b"PKbroken", packed()], ids=["broken", "empty"])
async def test_what_holds_no_skill_is_refused(house: LivingHouse, data: bytes) -> None:
    with pytest.raises(UserError):
        await found(house, data)


async def test_a_skill_that_cannot_be_read_says_so(house: LivingHouse) -> None:
    skills = [await found(house, text.encode()) for text in UNREADABLE]
    assert all(one.error for (one,) in skills)


async def test_yaml_is_text_with_comments_and_in_every_form(house: LivingHouse) -> None:
    text = """---
name: forms  # its name
description: >
  Summarise PR #12
  and "C # code"
metadata:
  title: 2026-01-01
  phrases: [yes, 1e3, 12:30]
  tools:
    - 'no'
---
x
"""
    (one,) = await found(house, text.encode())
    assert (one.name, one.description) == ("forms", 'Summarise PR #12 and "C # code"\n')
    assert (one.title, one.phrases, one.tools) == ("2026-01-01", ["yes", "1e3", "12:30"], ["no"])


async def test_a_colon_in_a_text_without_quotes_is_a_colon(house: LivingHouse) -> None:
    text = '---\nname: tea\ndescription: Brews tea. Use when: asked "how: so"\nlicense: MIT\n---\nx\n'
    (one,) = await found(house, text.encode())
    assert (one.name, one.description, one.error) == ("tea", 'Brews tea. Use when: asked "how: so"', "")


async def test_a_skill_by_hand_in_the_whole_of_yaml_is_read_once(house: LivingHouse) -> None:
    skills, ada = house.cortex.skills, house.admin
    name = await skills.create(ada, "Pulls", "x")
    before = await skills.read(ada, name)
    text = "---\ntitle: Pulls\ndescription: |-\n  Summarise PR #12\n  and C # code\n---\n\nDo it.\n"
    await skills.write(ada, name, text, before.version)
    assert [row.description for row in await skills.list(ada)] == ["Summarise PR #12\nand C # code"]
    marks = house.cortex.runtime.db.repository(PreferencesRepository, ada.id)
    nobody = UserFrontMatters(NoReader(), marks)  # another start: what was read is known
    home = house.cortex.homes.home_of(ada.id)
    (again,) = await read_skills(home, marks, nobody)
    assert again.skill is not None
    assert again.skill.description == "Summarise PR #12\nand C # code"


async def test_what_earlier_versions_read_and_yaml_refuses_stays_as_it_was(house: LivingHouse) -> None:
    folder = house.cortex.homes.home_of(house.admin.id).path / "skills"
    folder.mkdir(parents=True, exist_ok=True)
    head = "title: Weekly: the review\ndescription: 50% off, @home *now*\nphrases: [a: b, 'c d']\ntools: task_list"
    (folder / "old.md").write_text(f"---\n{head}\n---\nDo it.\n")
    (row,) = await house.cortex.skills.list(house.admin)
    assert (row.title, row.description, row.error) == ("Weekly: the review", "50% off, @home *now*", "")


async def test_many_skills_by_hand_are_read_by_one_start_and_a_slip_costs_the_others_nothing(
    house: LivingHouse,
) -> None:
    folder = house.cortex.homes.home_of(house.admin.id).path / "skills"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(20):
        head = (
            f"title: >-\n  Number\n  {number}\ndescription: &a |-\n  x"
            if number == 7
            else f"title: >-\n  N\n  {number}\ndescription: 'x'"
        )
        (folder / f"s{number:02}.md").write_text(f"---\n{head}\n---\nDo it.\n")
    started: list[str] = []

    class Counted(ForeignFiles):
        async def read(self, reader: str, *given: Any, **more: Any) -> None:
            started.append(reader)
            await super().read(reader, *given, **more)

    home, marks = (
        house.cortex.homes.home_of(house.admin.id),
        house.rows(PreferencesRepository),
    )
    files = await read_skills(home, marks, UserFrontMatters(Counted(Sandbox(), is_boxed=False), marks))
    assert started == ["front_matter"]
    assert [file.name for file in files if file.error] == ["s07"]
    assert "Line 5: & and * (anchors)" in files[7].error
    assert files[19].skill is not None
    assert files[19].skill.title == "N 19"


ODD = [
    "\x85",
    "\u2028",
    "\ufeff",
    "\x1b",
    "\x7f",
    "\ufffe",
    "\U0001f389",
    '"',
    "'",
    "\\",
    ": ",
    " #",
    "- ",
    "[",
    "{",
    "&a",
    "*a",
]
ODD += ["!t", "|", ">", "%", "@", "`", "---", "<<", "yes", "1e3", "2026-01-01", "\t", "\r", "\n", "  ", "C # code", ","]


async def test_every_text_comes_in_and_goes_out_as_it_was(house: LivingHouse) -> None:
    skills, ada = house.cortex.skills, house.admin
    texts = {f"s{number}": f"{odd}a{odd} b {odd}" for number, odd in enumerate(ODD)}
    files = {}
    for name, text in texts.items():
        lists = f"  title: {quoted(text)}\n  phrases: [{quoted(text)}]\n"
        files[name] = joined(f"name: {name}\ndescription: {quoted(text)}\nmetadata:\n{lists}", f"{text}\n{text}")
    made = await skills.bring_in(ada, io.BytesIO(packed(**files)))
    assert (sorted(made.added), made.refused) == (sorted(texts), [])
    assert {row.name: (row.title, row.description) for row in await skills.list(ada)} == {
        name: (text, text) for name, text in texts.items()
    }
    out = {one.name: one for one in await found(house, await skills.folders(ada))}
    assert {name: (one.title, one.description, one.phrases, one.body) for name, one in out.items()} == {
        name: (text, text, [text], f"{text}\n{text}") for name, text in texts.items()
    }


class NoReader:
    """What is known is not read again."""

    async def read(self, *_: Any, **__: Any) -> None:
        raise AssertionError("a program is started for what is known")


async def found(house: LivingHouse, data: bytes) -> tuple[FoundSkill, ...]:
    return (await read_folders(house.cortex.foreign, io.BytesIO(data))).skills
