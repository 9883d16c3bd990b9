from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.roles.roles import PERSONA, Roles
from cortex.storage.home import Homes
from cortex.toolkit.grants import granted
from cortex.tools import load

ANA = User(id="ana", name="ana", rank="member")
ROOT = User(id="root", name="root", rank="admin")


@pytest.fixture
def homes(tmp_path: Path) -> Homes:
    return Homes(tmp_path)


async def test_ships_the_six_roles_and_hides_the_admin_one_from_members(homes: Homes) -> None:
    roles = Roles(load(), homes)
    assert await roles.names(ROOT) == ("admin", "chat", "coder", "distill", "orchestrator", "research")
    assert "admin" not in await roles.names(ANA)


async def test_a_missing_tools_key_is_the_shipped_default_and_never_everything(homes: Homes) -> None:
    await homes.home_of("ana").write("roles/orchestrator.md", "---\nmax_rounds: 3\n---\nMy words.\n")
    found = await Roles(load(), homes).in_force(ANA, "orchestrator")
    assert "tasks" in found.role.tools
    assert "all" not in found.role.tools
    assert found.role.max_rounds == 3
    assert found.role.prompt == "My words."
    assert (found.origins["tools"], found.origins["max_rounds"], found.origins["mode"]) == (
        "shipped",
        "yours",
        "default",
    )


@pytest.mark.parametrize(
    ("line", "tools"),
    [
        ("tools: false", ()),
        ("tools: []", ()),
        ("tools: all", ("all",)),
        ("tools: [web, task_list]", ("web", "task_list")),
    ],
)
async def test_the_tools_key_says_what_it_says(homes: Homes, line: str, tools: tuple[str, ...]) -> None:
    await homes.home_of("ana").write("roles/mine.md", f"---\n{line}\n---\nHi\n")
    assert (await Roles(load(), homes).role(ANA, "mine")).tools == tools


async def test_an_unknown_role_has_no_tools(homes: Homes) -> None:
    role = await Roles(load(), homes).role(ANA, "never_written")
    assert (role.tools, role.admin_tools, role.prompt) == ((), (), "")
    assert (await Roles(load(), homes).role(ANA, "../../etc")).tools == ()


async def test_a_member_cannot_open_the_admin_role_by_a_file_of_their_own(homes: Homes) -> None:
    await homes.home_of("ana").write("roles/admin.md", "---\nadmin_only: false\ntools: all\n---\nMine\n")
    role = await Roles(load(), homes).role(ANA, "admin")
    assert role.is_admin_only
    assert granted(role, is_admin=False).words == frozenset()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("---\ntols: [web]\n---\n", r"roles/mine\.md: unknown key 'tols'"),
        ("---\nmax_rounds: many\n---\n", r"roles/mine\.md: 'max_rounds' must be a whole number from 1 to 25"),
        ("---\nmode: quiet\n---\n", r"'mode' must be one of auto, chat, all"),
        ("---\ntools: web\n---\n", r"'tools' must be a list"),
        ("---\nadmin_only: perhaps\n---\n", r"'admin_only' must be true or false"),
    ],
)
async def test_a_slip_names_file_and_key(homes: Homes, text: str, told: str) -> None:
    await homes.home_of("ana").write("roles/mine.md", text)
    with pytest.raises(UserError, match=told):
        await Roles(load(), homes).role(ANA, "mine")


async def test_the_persona_is_the_users_file_or_the_shipped_words(homes: Homes) -> None:
    roles = Roles(load(), homes)
    assert await roles.persona(ANA) == PERSONA
    await homes.home_of("ana").write("persona.md", "You are Jeeves.\n")
    assert await roles.persona(ANA) == "You are Jeeves."
    assert await roles.persona(ROOT) == PERSONA
