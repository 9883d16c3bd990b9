"""The baselines on the shipped tools and roles."""

import asyncio
from pathlib import Path

import pytest

from cortex.base.user import User
from cortex.selection.pipeline import plan
from cortex.selection.types import META, PlanInput, RoleView, Snapshot, ToolPlan
from cortex.selection.ways import inara, punch
from cortex.services.roles.roles import Roles
from cortex.tools import load

ROOT = User(id="root", name="root", rank="admin", time_zone="UTC")
FOLDER = Path(__file__).parents[2] / "cortex" / "roles"


def shipped_role(name: str) -> RoleView:
    role = asyncio.run(Roles(load()).role(ROOT, name))
    return RoleView(
        name=role.name,
        tools=role.tools,
        admin_tools=role.admin_tools,
        core=role.core,
        is_admin_only=role.is_admin_only,
    )


ROLES = [shipped_role(path.stem) for path in sorted(FOLDER.glob("*.md"))]
WITH_TOOLS = [role for role in ROLES if role.tools]


def planned(shipped: Snapshot, recipe: str, message: str, role: RoleView, **changes: object) -> ToolPlan:
    ready = tuple(each.name for each in shipped.entries)
    given = PlanInput(snapshot=shipped, ready=ready, role=role, is_admin=True, message=message, recipe=recipe)
    return plan(given)


@pytest.mark.parametrize("role", WITH_TOOLS, ids=lambda role: role.name)
def test_the_first_block_of_ora_is_at_most_45_percent_of_what_the_role_has(shipped: Snapshot, role: RoleView) -> None:
    made = planned(shipped, "ora", "hello", role)
    assert made.sent[0].name == "tools_discover"
    assert made.costs.tools <= 0.45 * made.costs.permitted


@pytest.mark.parametrize("role", [role for role in ROLES if not role.tools], ids=lambda role: role.name)
@pytest.mark.parametrize("recipe", ["inara", "ora", "punch", "repi", "vector", "all", "cortex"])
def test_a_role_without_tools_gets_none_under_any_recipe(shipped: Snapshot, recipe: str, role: RoleView) -> None:
    made = planned(shipped, recipe, "turn off the kitchen lights", role)
    assert (made.sent, made.catalog, made.reachable) == ((), "", ())


@pytest.mark.parametrize(
    ("message", "count"),
    [
        ("What's the weather?", 3),
        ("Good morning", 0),
        ("Turn off kitchen lights", 3),
        ("Search journals for X", 12),
        ("Create a task", 4),
        ("Run a SQL query", 3),
    ],
)
def test_the_example_messages_of_inara_bring_the_shipped_tools(shipped: Snapshot, message: str, count: int) -> None:
    admin = next(role for role in ROLES if role.name == "admin")
    assert len(planned(shipped, "inara", message, admin).sent) == count


def test_the_research_role_is_three_tools(shipped: Snapshot) -> None:
    research = next(role for role in ROLES if role.name == "research")
    made = planned(shipped, "inara", "search the news and turn off the light", research)
    assert [item.name for item in made.sent] == ["web_search", "web_read", "http_fetch"]


def test_the_tables_speak_of_shipped_tools_and_categories(shipped: Snapshot) -> None:
    names = {each.name for each in shipped.entries}
    assert set(punch.CORE) <= names
    assert {name for each in inara.CATEGORIES.values() for name in each["tools"]} <= names
    assert set(punch.GROUPS) <= {each.category for each in shipped.entries if each.category != META}


@pytest.mark.parametrize(("message", "groups"), [("hello", 0), ("git log", 1), ("git log, and kill process 4", 2)])
def test_punch_leaves_out_about_two_thirds_and_more(shipped: Snapshot, message: str, groups: int) -> None:
    admin = next(role for role in ROLES if role.name == "admin")
    made = planned(shipped, "punch", message, admin)
    assert len(made.memory.grown) == groups
    assert made.costs.tools <= (0.30, 0.34, 0.40)[groups] * made.costs.permitted
