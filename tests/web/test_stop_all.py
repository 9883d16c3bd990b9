"""The page behind the stop button: who may stop and lift what, and that every page says so."""

import pytest
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.storage.audit import AuditRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import TurnsRepository
from tests.plain_world import TURN
from tests.web.conftest import Browser

BANNER = "Everything was stopped"
BY_COMMAND = '{"by":"the command line"}'


@pytest.mark.parametrize("page", ["/tasks", "/c/new", "/health", "/account"])
async def test_every_page_has_the_button_and_says_who_stopped_what_and_how_to_lift_it(ada: Browser, page: str) -> None:
    shown = (await ada.get(page)).text
    assert 'href="/stop-all"' in shown
    assert BANNER not in shown
    await ada.post("/stop-all", whom="mine")
    shown = (await ada.get(page)).text
    assert (BANNER in shown, "you by Ada, " in shown) == (True, True)
    assert "Resume" in shown


async def test_the_page_offers_to_lift_first_and_not_to_stop_what_is_stopped(ada: Browser, bob: Browser) -> None:
    await bob.post("/stop-all")
    shown = (await bob.get("/stop-all")).text
    assert "Stop everything now?" not in shown
    assert shown.count("Resume") == 2, "in the banner, and on the page"
    await ada.post("/stop-all", whom="mine")
    shown = (await ada.get("/stop-all")).text
    assert 'value="mine"' not in shown
    assert shown.index('action="/stop-all/release"') < shown.index('value="everybody">Stop')
    await ada.post("/stop-all", whom="everybody")
    assert "Stop everything now?" not in (await ada.get("/stop-all")).text


async def test_a_stop_says_by_name_whose_work_stands(house: Cortex, bob: Browser) -> None:
    await bob.post("/stop-all")
    (halt,) = await house.stop_all.all(None)
    assert (halt.scope, halt.whose) == (bob.user.id, bob.user.name)
    assert halt.command == f"cortex stop-all --user {bob.user.name} --release"


async def test_a_member_stops_and_lifts_their_own_work_and_nobody_elses(ada: Browser, bob: Browser) -> None:
    assert "Stop everybody" not in (await bob.get("/stop-all")).text
    for whom in ("everybody", ada.user.id):
        assert (await bob.post("/stop-all", whom=whom)).status_code == 403
    assert (await bob.post("/stop-all/outward")).status_code == 403
    assert BANNER not in (await ada.get("/tasks")).text
    await bob.post("/stop-all")
    assert BANNER in (await bob.get("/tasks")).text
    assert BANNER not in (await ada.get("/tasks")).text
    assert (await bob.post("/stop-all/release", scope=bob.user.id)).status_code == 303
    assert BANNER not in (await bob.get("/tasks")).text


async def test_what_an_admin_stopped_an_admin_lifts_with_the_password_given_of_late(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    people = (await ada.get("/admin/users")).text
    assert f'name="whom" value="{bob.user.id}" aria-label="Stop all work of {bob.user.name}"' in " ".join(
        people.split()
    )
    assert people.count('action="/stop-all"') == 1, "one's own work is stopped from the head of the page"
    await ada.post("/stop-all", whom=bob.user.id)
    people = (await ada.get("/admin/users")).text
    assert (people.count("work stopped"), people.count('action="/stop-all"')) == (1, 0)
    await ada.post("/stop-all", whom="everybody")
    shown = (await bob.get("/stop-all")).text
    assert shown.count("admin can resume") == 4, "two in the banner, two on the page"
    assert (await bob.post("/stop-all/release", scope=bob.user.id)).status_code == 403
    assert (await bob.post("/stop-all/release", scope="everybody")).status_code == 403
    await ada.post("/stop-all/release", scope="everybody")
    assert "you by Ada" in (await bob.get("/tasks")).text
    await ada.post("/stop-all/release", scope=bob.user.id)
    assert BANNER not in (await bob.get("/tasks")).text
    actions = [(row.action, row.subject) for row in await house.runtime.db.repository(AuditRepository).list(4)]
    assert actions == [
        ("work.released", "Bob"),
        ("work.released", "everybody"),
        ("work.stopped", "everybody"),
        ("work.stopped", "Bob"),
    ]


async def test_outward_tools_are_off_for_everybody_and_all_else_goes_on(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    before = await house.tools.permitted(ada.user, "orchestrator")
    await ada.post("/stop-all/outward")
    after = await house.tools.permitted(ada.user, "orchestrator")
    assert before - after == {"web_read", "http_fetch", "http_post"}, "those that are set up here"
    assert "off by Ada" in (await bob.get("/tasks")).text
    assert await house.turn_queue.halt_of(bob.user.id) is None
    await ada.post("/stop-all/release", scope="outward")
    assert await house.tools.permitted(ada.user, "orchestrator") == before


async def test_the_log_says_that_the_command_line_ordered_and_lifted_a_stop(house: Cortex) -> None:
    await house.stop_all.switch_outward_off(None)
    await house.stop_all.lift(None, "outward")
    details = [(row.action, row.detail) for row in await house.runtime.db.repository(AuditRepository).list(2)]
    assert details == [("work.released", BY_COMMAND), ("work.stopped", BY_COMMAND)]


async def test_a_message_waits_and_the_gate_lets_no_call_through(house: Cortex, ada: Browser) -> None:
    await ada.post("/stop-all")
    conversation = await house.conversations.new(ada.user)
    turn_id = await house.chat.send_message(ada.user, conversation.id, "hello")  # at rest a start would be refused
    row = await house.runtime.db.repository(TurnsRepository, ada.user.id).get(turn_id)
    events = await house.runtime.db.repository(ConversationsRepository, ada.user.id).events(conversation.id)
    assert row.state == "queued"
    assert next(event for event in events if event.kind == "message").payload["is_steer"]
    turn = replace(TURN, id=row.id, conversation_id=conversation.id, user_id=ada.user.id)
    facts = await house.executor.call_log.facts(turn, "no call yet")
    assert "stopped by Ada" in facts.halt
