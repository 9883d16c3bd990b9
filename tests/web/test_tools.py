"""The admin's page of tools: what is set there holds for everybody from the next message on, and is audited."""

import pytest

from cortex.app import Cortex
from cortex.base.errors import NotAllowed
from cortex.storage.audit import AuditRepository
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.plain_world import PLAIN_TURN
from tests.web.conftest import Browser
from tests.web.marks import marks

ONE = "/admin/tools/task_create"
MILK = "add milk to my shopping list"


async def sent(house: Cortex, person: Browser, message: str) -> set[str]:
    receipt = await house.planning.preview(person.user, None, message, "auto", role="orchestrator")
    return {item["name"] for item in receipt["sent"]}


async def test_every_tool_stands_on_the_page_with_its_price_and_what_it_waits_for(house: Cortex, ada: Browser) -> None:
    page = (await ada.get("/admin/tools")).text
    missing = [name for name in house.runtime.registry.tools if f'href="/admin/tools/{name}"' not in page]
    assert missing == []
    assert ("Web search is not" in page, "/admin/integrations#web" in page) == (True, True)
    assert f"{len(house.runtime.registry.tools) - 2} tools" in page


async def test_a_tool_that_is_not_set_up_says_where_it_is_done(ada: Browser) -> None:
    assert "/admin/integrations#email" in marks(await ada.get("/admin/tools/email_send")).links


@pytest.mark.parametrize(
    ("query", "there", "gone"),
    [
        ("category=git", "git_log", "task_create"),
        ("risk=high", "shell_exec", "task_create"),
        ("q=shopping", "task_create", "git_log"),
    ],
    ids=["category", "risk", "words"],
)
async def test_the_list_is_filtered(ada: Browser, query: str, there: str, gone: str) -> None:
    page = (await ada.get(f"/admin/tools?{query}")).text
    assert f'id="t-{there}"' in page
    assert f'id="t-{gone}"' not in page


async def test_a_filter_that_fits_nothing_says_so(ada: Browser) -> None:
    assert "Nothing matches." in (await ada.get("/admin/tools?q=zebra+crossing")).text


async def test_a_tool_that_is_off_is_given_to_nobody_and_runs_for_nobody(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    assert "task_create" in await sent(house, bob, MILK)
    await ada.post(ONE, sending="needed")
    assert "task_create" not in await sent(house, bob, MILK)
    assert "task_create" not in await house.tools.permitted(bob.user, "orchestrator")
    await ada.post(ONE, default="is_on")
    assert "task_create" in await sent(house, bob, MILK)


async def test_a_tool_can_be_sent_always_or_never(house: Cortex, ada: Browser, bob: Browser) -> None:
    await ada.post("/admin/tools/session_read", is_on="1", sending="always")
    assert "session_read" in await sent(house, bob, MILK)
    await ada.post(ONE, is_on="1", sending="never")
    assert "task_create" not in await sent(house, bob, MILK)
    assert "task_create" in await sent(house, bob, f"use task_create: {MILK}")
    assert "task_create" in await house.tools.permitted(bob.user, "orchestrator")


async def test_a_change_brings_its_row_back_to_htmx_and_the_page_to_others(ada: Browser) -> None:
    row = await ada.http.post(
        ONE, data={"sending": "always"}, headers={"HX-Request": "true", "HX-Request-Type": "partial"}
    )
    assert row.text.lstrip().startswith('<tr id="t-task_create"')
    assert 'class="lone off"' in row.text
    assert ">changed<" in row.text
    answer = await ada.post(ONE, is_on="1", sending="needed", back="/admin/tools#t-task_create")
    assert answer.headers["location"] == "/admin/tools#t-task_create"
    assert ">changed<" not in (await ada.get("/admin/tools?q=task_create")).text


async def test_each_value_says_where_it_comes_from_and_goes_back_by_itself(ada: Browser) -> None:
    await ada.post(ONE, sending="always", asks_first="1")
    assert (await ada.get(ONE)).text.count(">changed here<") == 3
    await ada.post(ONE, default="sending")
    page = (await ada.get(ONE)).text
    assert (page.count(">changed here<"), page.count(">shipped default<")) == (2, 2)


async def test_every_change_is_in_the_audit_log_and_nothing_else_is(house: Cortex, ada: Browser) -> None:
    await ada.post(ONE, sending="always")
    await ada.post(ONE, sending="always")
    entries = await house.runtime.db.repository(AuditRepository).list(subject="task_create")
    assert [(entry.actor, entry.action, entry.detail) for entry in entries] == [
        (ada.user.id, "tool.changed", '{"is_on":[null,false],"sending":[null,"always"]}')
    ]


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        (ONE, {"sending": "sometimes"}, 422),
        (ONE, {"default": "risk"}, 422),
        ("/admin/tools/tools_discover", {"sending": "never"}, 422),
        ("/admin/tools/no_such_tool", {"sending": "never"}, 404),
    ],
    ids=["no such time", "no such setting", "a meta tool", "no such tool"],
)
async def test_what_cannot_be_set_is_refused(ada: Browser, path: str, fields: dict[str, str], status: int) -> None:
    assert (await ada.post(path, **fields)).status_code == status


async def test_a_tool_that_always_asks_cannot_be_told_not_to(house: Cortex, ada: Browser) -> None:
    path = "/admin/tools/shell_exec"
    assert 'name="asks_first"' not in (await ada.get(path)).text
    await ada.post(path, is_on="1", sending="needed", asks_first="")
    assert (await house.tool_settings.in_force()).asks_first == frozenset()
    assert "always needs approval" in (await ada.get(path)).text


async def test_a_tools_page_shows_what_a_model_reads_and_how_people_ask(ada: Browser) -> None:
    page = (await ada.get(ONE)).text
    assert "Schema in full" in page
    assert "&#34;list_name&#34;" in page
    assert "Never called yet." in page
    assert "tool=task_create" in page


async def test_what_was_said_in_a_call_is_its_owners_to_read(house: Cortex, ada: Browser, bob: Browser) -> None:
    for person, words in ((ada, "my own words"), (bob, "truffles for bob")):
        await called_in_vain(house, person, words)
    page = (await ada.get(ONE)).text
    assert page.count("my own words") == 2
    assert "truffles" not in page
    assert "content is private" in page
    assert "2, 0 rescued, 2 failed" in page
    assert "2 failed" in (await ada.get("/admin/tools?q=task_create")).text


async def called_in_vain(house: Cortex, person: Browser, words: str) -> None:
    db, owner = house.runtime.db, person.user.id
    conversation = await house.conversations.new(person.user)
    turn_id = f"turn:{words}"
    await db.repository(TurnsRepository, owner).create(
        NewTurn(turn_id, conversation.id, words, state="done", **PLAIN_TURN)
    )
    call = CallRow(
        id=words,
        turn_id=turn_id,
        conversation_id=conversation.id,
        round=1,
        name="task_create",
        arguments=words,
        arguments_hash="h",
        risk="low",
    )
    await db.repository(CallsRepository, owner).decided(call)
    await db.repository(CallsRepository, owner).finish(
        words, "failed", text=f"No room for {words}.", is_error=True, is_tainted=False
    )


POSTED = [ONE, "/admin/tools/in/tasks", "/admin/tools/try", "/admin/roles/coder"]


@pytest.mark.parametrize("path", ["/admin/tools", "/admin/roles", *POSTED])
async def test_a_member_can_open_none_of_it(bob: Browser, path: str) -> None:
    assert (await bob.get(path)).status_code == 403
    assert f'href="{path}"' not in (await bob.get("/account")).text


@pytest.mark.parametrize("path", POSTED)
async def test_a_member_can_change_none_of_it(house: Cortex, bob: Browser, path: str) -> None:
    refused = await bob.post(path, sending="always", phrases="x", text="x", do="save", max_rounds="3")
    assert refused.status_code == 403
    assert (await house.tool_settings.in_force()).number == 0


async def test_the_service_refuses_a_member_too(house: Cortex, bob: Browser) -> None:
    with pytest.raises(NotAllowed):
        await house.tool_settings.change(bob.user, "task_create", is_on=False, sending="needed", asks_first=False)
    with pytest.raises(NotAllowed):
        await house.tool_settings.save_words(bob.user, "tasks", ())
