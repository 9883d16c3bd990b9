"""The registry is the one that was designed: every tool, at its risk; what is not set up says what it lacks."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base import tokens
from cortex.base.role import Channel
from cortex.base.user import User
from cortex.services.roles.roles import Roles
from cortex.services.tools.tools import ToolsService
from cortex.storage.home import Homes
from cortex.toolkit.grants import CHANNEL_LACKS, ToolGrant, permits
from cortex.toolkit.spec import Tool
from cortex.tools import load
from tests.living_house import living_house

SHIPPED = load()
LOW, MEDIUM, HIGH = "low", "medium", "high"
# What must never be less than this, whatever its file says. A new tool of these kinds may be added here, and need not.
AT_LEAST = {
    HIGH: "http_post shell_exec cortex_restart cortex_update cron_add email_send nc_talk_send aider_run "
    "claude_allow_dir calendar_answer",
    MEDIUM: "web_search web_read http_fetch file_write ha_call_service ae_db_query ae_db_describe ae_db_show_view "
    "nc_talk_history spawn_agent agent_cancel",
}
SETUPS = {
    "ha": {"Home Assistant is not set up. An admin can do it under Integrations."},
    "aether_db": {"Aether DB is not set up. An admin can do it under Integrations."},
    "notifications": {
        "E-mail is not set up. An admin can do it under Integrations.",
        "Nextcloud Talk is not set up. An admin can do it under Integrations.",
    },
    "coding": {"Coding agent is not set up. An admin can do it under Integrations."},
    "calendar": {"No calendar is connected. Connect one on the page Calendar."},
    "contacts": {"No address book is connected. Connect one on the page Contacts."},
}
ADMIN_ONLY = {"system", "coding"}  # categories that reach the machine itself
MEMBER = {
    *("web", "tasks", "cron", "reminders", "scratchpad", "notes", "skills", "session", "ha", "aether", "aether_db"),
    *("ae_tasks", "agents", "memory"),
}
FOR_ADMINS = ("file", "git", "system", "notifications", "web_post")
READS = ("file_read", "file_search", "file_list", "file_diff", "file_syntax_check")


def of(*categories: str) -> set[str]:
    return {tool.name for category in categories for tool in SHIPPED.categories[category].tools}


@pytest.mark.parametrize(("risk", "names"), AT_LEAST.items())
def test_what_can_do_harm_has_at_least_its_risk(risk: str, names: str) -> None:
    enough = {MEDIUM: {MEDIUM, HIGH}, HIGH: {HIGH}}[risk]
    assert [name for name in names.split() if SHIPPED.tools[name].risk not in enough] == []


@pytest.mark.parametrize("one", SHIPPED.tools.values(), ids=lambda one: one.name)
def test_high_risk_always_asks_and_reads_change_nothing(one: Tool) -> None:
    assert one.confirm == (one.risk == HIGH)
    assert one.risk == LOW or one.name.startswith(("web_", "http_", "ae_db", "nc_talk")) or one.effect == "write"


def test_what_only_admins_may_run_is_marked() -> None:
    assert {one.category for one in SHIPPED.tools.values() if one.admin} == ADMIN_ONLY
    assert {one.name for one in SHIPPED.tools.values() if one.admin} == of(*ADMIN_ONLY)


def test_what_carries_words_outside_is_marked() -> None:
    outward = {one.name for one in SHIPPED.tools.values() if one.sends_out}
    assert outward >= {"web_read", "http_fetch", "http_post", "email_send", "nc_talk_send"}


def test_low_writes_of_own_things_can_be_undone() -> None:
    undoable = {name for name, item in SHIPPED.categories.items() if item.undo is not None}
    low = [one for one in SHIPPED.tools.values() if one.effect == "write" and one.risk == LOW and not one.free]
    assert {one.category for one in low} - undoable == {"notifications"}  # a push to one's own phone is no change


def test_the_whole_set_costs_at_most_90_tokens_a_tool() -> None:
    costs = [tokens.count_schema(one.full) for one in SHIPPED.tools.values()]
    assert sum(costs) <= 90 * len(costs)


@pytest.mark.parametrize("name", SHIPPED.categories)
def test_each_category_has_its_line_and_its_examples(name: str) -> None:
    category = SHIPPED.categories[name]
    assert 0 < len(category.summary) <= 90
    assert name == "meta" or category.examples


@pytest.mark.parametrize(("channel", "lacks"), CHANNEL_LACKS.items())
def test_what_a_channel_lacks_exists_and_is_lacked(channel: Channel, lacks: frozenset[str]) -> None:
    assert lacks <= set(SHIPPED.tools)
    allowed = {
        one.name
        for one in SHIPPED.tools.values()
        if permits(ToolGrant(words=frozenset({"all"})), one.name, one.category, channel, is_withheld=False)
    }
    assert set(SHIPPED.tools) - allowed == lacks


@pytest.mark.parametrize(
    ("role", "rank", "expected"),
    [
        ("chat", "admin", set()),
        ("distill", "admin", set()),
        ("orchestrator", "member", of(*MEMBER) | {*READS, "web_push"}),
        ("orchestrator", "admin", of(*MEMBER, *FOR_ADMINS)),
        ("coder", "member", of("file", "git", "skills")),
        ("coder", "admin", of("file", "git", "skills", "coding") | {"shell_exec"}),
        ("research", "member", of("web", "skills")),
        ("admin", "member", set()),
        ("admin", "admin", of(*SHIPPED.categories)),
    ],
)
async def test_each_role_has_the_tools_it_was_designed_with(
    tmp_path: Path, role: str, rank: str, expected: set[str]
) -> None:
    service = ToolsService(
        registry=SHIPPED, wired=frozenset(), roles=Roles(SHIPPED, Homes(tmp_path)), assume_configured=True
    )
    user = User(id="u", name="u", rank="admin" if rank == "admin" else "member")
    known = of(*MEMBER, *FOR_ADMINS, "coding")  # of others, their own files say who has them
    assert await service.permitted(user, role) & known == expected & known


async def test_what_is_not_set_up_names_what_it_lacks_and_is_permitted_to_nobody(tmp_path: Path) -> None:
    async with living_house(tmp_path) as house:
        rows = await house.cortex.tools.listing()
        permitted = await house.cortex.tools.permitted(house.admin, "admin")
    lacking: dict[str, set[str]] = {}
    for row in rows:
        lacking.setdefault(row["category"], set()).update({row["setup"]["text"]} if "setup" in row else ())
    assert {category: lacking[category] for category in SETUPS} == SETUPS
    # Pushes need nothing that is set up.
    assert {row["name"] for row in rows if row["category"] in SETUPS} & permitted == {"web_push"}
    assert {"http_post", "ae_task_list", "cron_add", "reminders_add", "spawn_agent"} <= permitted
    assert "cortex_update" in permitted


def test_what_one_house_takes_in_is_no_tool_of_another() -> None:
    mine, theirs = load(), load()
    (one, *_) = mine.categories.values()
    added = replace(one, name="mcp:lamps", tools=tuple(replace(tool, name=f"lamps_{tool.name}") for tool in one.tools))
    mine.put([added])
    assert set(mine.tools) - set(theirs.tools) == {tool.name for tool in added.tools}
