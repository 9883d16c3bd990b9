"""A whole role on its page: each value is set, says so, and goes back; the tools are exactly what was ticked."""

import json

import pytest

from cortex.app import Cortex
from cortex.storage.audit import AuditRepository
from tests.web.conftest import Browser
from tests.web.test_models import LOCAL

PAGE = "/admin/roles/orchestrator"
MILK = "add milk to my shopping list"


async def test_every_value_set_here_holds_and_says_so(house: Cortex, ada: Browser) -> None:
    await ada.post("/models", **LOCAL)
    fields = {
        "prompt": "Speak in rhyme.",
        "models": ["offline", "local"],
        "mode": "all",
        "recipe": "punch",
        "core": "task_list, notes",
        "max_rounds": "7",
        "tool_budget_tokens": "1500",
        "budget_tokens": "20000",
        "budget_usd": "0.5",
    }
    answer = await ada.http.post(PAGE, data=fields)
    assert answer.headers["location"] == PAGE
    role = await house.roles.role(ada.user, "orchestrator")
    assert (role.prompt, role.mode, role.recipe, role.core) == (
        "Speak in rhyme.",
        "all",
        "punch",
        ("task_list", "notes"),
    )
    assert (role.max_rounds, role.tool_budget_tokens, role.budget_tokens, role.budget_usd) == (7, 1500, 20000, 0.5)
    assert (await house.models.registry(ada.user)).chain(role) == ("offline", "local")
    assert (await ada.get(PAGE)).text.count(">set by you<") == 9


async def test_one_value_goes_back_and_the_others_stay(house: Cortex, ada: Browser) -> None:
    shipped = await house.roles.role(ada.user, "orchestrator")
    await ada.post(PAGE, prompt="Speak in rhyme.", recipe="punch", max_rounds="7")
    await ada.post(PAGE, default="prompt")
    role = await house.roles.role(ada.user, "orchestrator")
    assert (role.prompt, role.recipe, role.max_rounds) == (shipped.prompt, "punch", 7)


async def test_saving_the_page_as_it_is_sets_nothing(house: Cortex, ada: Browser) -> None:
    shipped = await house.roles.role(ada.user, "orchestrator")
    await ada.post(PAGE, prompt=shipped.prompt.replace("\n", "\r\n"))
    assert "browser" not in (await house.roles.in_force(ada.user, "orchestrator")).origins.values()


async def test_exactly_what_is_ticked_may_be_used(house: Cortex, ada: Browser) -> None:
    answer = await ada.http.post(f"{PAGE}/tools", data={"tools": ["tasks", "git_log", "task_create"]})
    assert answer.status_code == 303
    permitted = await house.tools.permitted(ada.user, "orchestrator")
    own = {name for name in permitted if house.runtime.registry.tools[name].category != "meta"}
    assert own == {"task_list", "task_create", "task_update", "task_complete", "git_log"}
    await ada.post(f"{PAGE}/tools")
    assert await house.tools.permitted(ada.user, "orchestrator") == frozenset()
    await ada.post(PAGE, default="tools")
    assert "web_read" in await house.tools.permitted(
        ada.user, "orchestrator"
    ) or "scratch_read" in await house.tools.permitted(ada.user, "orchestrator")


async def test_what_only_admins_have_stays_theirs(house: Cortex, ada: Browser) -> None:
    await ada.http.post(f"{PAGE}/tools", data={"tools": ["tasks", "git"]})
    role = await house.roles.role(ada.user, "orchestrator")
    assert (role.tools, role.admin_tools) == (("tasks",), ("git",))


async def test_everything_must_be_ticked_as_such(house: Cortex, ada: Browser) -> None:
    await ada.http.post(f"{PAGE}/tools", data={"tools": ["all", "git"]})
    assert (await house.roles.role(ada.user, "orchestrator")).tools == ("all",)


async def test_the_change_holds_for_the_next_message(house: Cortex, ada: Browser) -> None:
    receipt = await house.planning.preview(ada.user, None, MILK, "auto", role="orchestrator")
    assert "task_create" in {item["name"] for item in receipt["sent"]}
    await ada.http.post(f"{PAGE}/tools", data={"tools": ["notes"]})
    receipt = await house.planning.preview(ada.user, None, MILK, "auto", role="orchestrator")
    assert "task_create" not in {item["name"] for item in receipt["sent"]}


async def test_the_total_is_counted_before_saving(house: Cortex, ada: Browser) -> None:
    before = await house.roles.role(ada.user, "orchestrator")
    answer = await ada.http.post(
        f"{PAGE}/count", data={"tools": ["tasks"]}, headers={"HX-Request": "true", "HX-Request-Type": "partial"}
    )
    entries = (await house.tools.snapshot()).entries
    tokens = sum(entry.tokens_full for entry in entries if entry.category == "tasks")
    assert answer.text.startswith(f"<b>4</b> tools, <b>{tokens}</b> tokens")
    assert await house.roles.role(ada.user, "orchestrator") == before


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"max_rounds": "99"}, "max_rounds"),
        ({"tool_budget_tokens": "few"}, "tool_budget_tokens"),
        ({"budget_tokens": "0"}, "budget_tokens"),
        ({"budget_usd": "-1"}, "budget_usd"),
        ({"budget_usd": "nan"}, "budget_usd"),
        ({"recipe": "soup"}, "recipe"),
        ({"mode": "sometimes"}, "mode"),
        ({"core": "task_list soup"}, "core"),
        ({"prompt": "x" * 12_001}, "prompt"),
    ],
)
async def test_a_wrong_value_is_refused_beside_its_field(
    house: Cortex, ada: Browser, fields: dict[str, str], field: str
) -> None:
    answer = await ada.post(PAGE, **fields)
    assert answer.status_code == 422
    assert f'id="f-{field}-e"' in answer.text
    assert "browser" not in (await house.roles.in_force(ada.user, "orchestrator")).origins.values()


async def test_what_is_no_tool_and_no_value_is_refused(ada: Browser) -> None:
    assert (await ada.http.post(f"{PAGE}/tools", data={"tools": ["soup"]})).status_code == 422
    assert (await ada.http.post(f"{PAGE}/count", data={"tools": ["soup"]})).status_code == 422
    assert (await ada.post(PAGE, default="is_admin_only")).status_code == 422
    assert (await ada.get("/admin/roles/nobody")).status_code == 404
    assert (await ada.post("/admin/roles/nobody", mode="all")).status_code == 404


async def test_every_change_is_in_the_audit_log(house: Cortex, ada: Browser) -> None:
    await ada.post(PAGE, prompt="Speak in rhyme.", max_rounds="7")
    await ada.http.post(f"{PAGE}/tools", data={"tools": ["notes"]})
    entries = await house.runtime.db.repository(AuditRepository).list(subject="orchestrator")
    assert [(entry.action, json.loads(entry.detail)) for entry in entries] == [
        ("role.changed", {"fields": ["admin_tools", "tools"]}),
        ("role.changed", {"fields": ["max_rounds", "prompt"]}),
    ]
    assert "rhyme" not in "".join(entry.detail for entry in entries)
