"""A call that cannot run is put to nobody: no card, no push, no line in the audit log; the model reads why."""

import pytest

from cortex.storage.approvals import ApprovalsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.notices import NoticesRepository
from cortex.storage.turns import TurnsRepository
from tests.living_house import LivingHouse
from tests.scripted_server import ScriptedServer, Use, rule

BAD = Use("cron_add", {"prompt": "Water the flowers.", "when": "when it suits"}, is_blind=True)
GOOD = Use("cron_add", {"prompt": "Water the flowers.", "when": "every day at 9"}, is_blind=True)


@pytest.fixture
async def house(scripted: ScriptedServer, house: LivingHouse) -> LivingHouse:
    await house.connect(scripted)
    return house


async def test_the_model_reads_what_is_wrong_and_the_person_is_asked_once_for_what_is_right(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [rule("flowers", BAD, GOOD, "Planned.")]
    db, cid = house.cortex.runtime.db, await house.conversation()
    before = [row.number for row in await db.repository(AuditRepository, house.admin.id).list()]
    turn_id = await house.cortex.chat.send_message(house.admin, cid, "water the flowers")
    await house.until(cid, "approval", state="asked")
    results = await house.events(cid, "tool.result")
    assert [result.payload["state"] for result in results] == ["refused"]
    assert "when it suits" in results[0].payload["text"]
    asked = await db.repository(ApprovalsRepository, house.admin.id).of_turn(turn_id)
    assert [row.tool for row in asked] == ["cron_add"]
    assert ("every day at 09:00" in asked[0].verb, "the flowers" in asked[0].detail) == (True, True)
    notices = await db.repository(NoticesRepository, house.admin.id).list(limit=10)
    assert {notice.subject_id for notice in notices} <= {asked[0].id}
    assert [row.number for row in await db.repository(AuditRepository, house.admin.id).list()] == before
    await house.cortex.approvals.answer(house.admin, asked[0].id, "once")
    await house.until(cid, "turn.end", state="done")


async def test_a_call_that_fails_the_same_way_again_and_again_ends_the_turn_unasked(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [rule("flowers", BAD, BAD, BAD, BAD, "Planned.")]
    cid = await house.conversation()
    turn_id = await house.say(cid, "water the flowers")
    db = house.cortex.runtime.db
    assert not await db.repository(ApprovalsRepository, house.admin.id).of_turn(turn_id)
    assert len(await house.events(cid, "tool.result")) == 3
    turns = await db.repository(TurnsRepository, house.admin.id).list(cid)
    assert turns[0].state == "done"
