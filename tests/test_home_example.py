"""The example folder is what a person copies from: it must be read without a slip."""

import shutil
from pathlib import Path

from cortex.services.roles.roles import Roles
from cortex.storage.home import Homes
from cortex.tools import load
from tests.living_house import living_house

EXAMPLE = Path(__file__).parent.parent / "home" / "example"


async def test_the_example_home_is_read_as_it_stands(tmp_path: Path) -> None:
    async with living_house(tmp_path) as house:
        shutil.copytree(EXAMPLE, tmp_path / house.admin.id, dirs_exist_ok=True)
        roles = Roles(load(), Homes(tmp_path), house.cortex.runtime.db)
        role = await roles.role(house.admin, "orchestrator")
        registry = await house.cortex.models.registry(house.admin)
        assert (role.max_rounds, role.budget_tokens, "web" in role.tools) == (6, 60_000, True)
        assert "household" in await roles.persona(house.admin)
        assert [entry.name for entry in registry.entries] == ["local", "big"]
        assert (await house.cortex.models.registry(house.admin)).chain(await roles.role(house.admin, "coder")) == (
            "big",
        )
        assert [note.name for note in await house.cortex.notes.list(house.admin)] == ["boiler"]
        (skill,) = await house.cortex.tools.skills.skills(house.admin)
        assert (skill.name, len(skill.phrases)) == ("supplier-letter", 2)
        assert set(skill.tools) <= set(house.cortex.runtime.registry.tools)
