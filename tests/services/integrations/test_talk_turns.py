"""Nextcloud Talk through whole turns: read, asked and posted, refused in words, and as a way to be told."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.agent.refusals import ELSEWHERE
from cortex.base.errors import UserError
from cortex.storage.approvals import ApprovalsRepository
from cortex.storage.db import Database
from cortex.storage.turns import TurnRow, TurnsRepository
from tests.living_house import Deaf, LivingHouse
from tests.scripted_server import ScriptedServer, Use, rule
from tests.services.notices.notices_world import ADA, BOB, TEA, made_world
from tests.still_clock import StillClock
from tests.talk_server import TalkDouble

FAMILY = "fam1ly00"
ROOM = f"Family (room {FAMILY})"


@pytest.fixture
def nextcloud() -> Iterator[TalkDouble]:
    with TalkDouble() as double:
        double.room(FAMILY, "Family", unread=1)
        double.says(FAMILY, "Bob", "who cooks?")
        yield double


@pytest.fixture
async def house(scripted: ScriptedServer, house: LivingHouse, nextcloud: TalkDouble) -> LivingHouse:
    scripted.rules = [
        rule("^what is new", Use("nc_talk_history", {"room": "family"}, is_blind=True), "Bob asks who cooks."),
        rule("^tell them", Use("nc_talk_send", {"to": "Family", "text": "I do"}, is_blind=True), "Told."),
        rule("^tell nobody", Use("nc_talk_send", {"to": "Cellar", "text": "x"}, is_blind=True), "There is none."),
        rule("^hello", "Hello."),
        rule("^read wrongly", Use("nc_talk_history", {"count": 500}, is_blind=True), "So."),
    ]
    await house.connect(scripted)
    await house.cortex.integrations.save(house.admin, "talk", "", nextcloud.form(), is_new=True)
    return house


async def result(house: LivingHouse, text: str) -> tuple[str, str]:
    cid = await house.conversation()
    await house.say(cid, text)
    (told,) = await house.events(cid, "tool.result")
    return told.payload["state"], told.payload["text"]


async def test_a_turn_reads_a_room_and_marks_what_it_read(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "what is new in the family room?")
    (told,) = await house.events(cid, "tool.result")
    assert (told.payload["state"], told.payload["is_tainted"]) == ("ok", True)
    assert "Bob: who cooks?" in told.payload["text"]


async def test_a_post_is_asked_for_with_its_room_and_made_once(house: LivingHouse, nextcloud: TalkDouble) -> None:
    cid = await house.conversation()
    turn = await house.cortex.chat.send_message(house.admin, cid, "tell them that I do")
    asked = await house.until(cid, "approval", turn=turn, state="asked")
    assert asked.payload["destination"] == ROOM
    assert nextcloud.texts(FAMILY) == ["who cooks?"]
    await house.cortex.approvals.answer(house.admin, asked.payload["approval"], "once")
    await house.until(cid, "turn.end", turn=turn)
    assert nextcloud.texts(FAMILY) == ["who cooks?", "I do"]


@pytest.mark.parametrize("is_late", [False, True], ids=["while it waits", "after its turn"])
async def test_edited_arguments_are_allowed_for_the_room_that_was_meant_then(
    house: LivingHouse, nextcloud: TalkDouble, is_late: bool
) -> None:
    """The name of a room may be another's by the time the post is made."""
    nextcloud.room("w0rkw0rk", "Work")
    cid = await house.conversation()
    turn = await house.cortex.chat.send_message(house.admin, cid, "tell them that I do")
    asked = await house.until(cid, "approval", turn=turn, state="asked")
    approval = asked.payload["approval"]
    if is_late:
        await house.say(cid, "hello")
    with pytest.raises(UserError, match="There is no room 'Cellar'"):
        await house.cortex.call_changes.allow(house.admin, approval, '{"to": "Cellar", "text": "I do"}')
    deaf = replace(house.cortex.approvals, runtime=replace(house.cortex.runtime, signals=Deaf()), begin=nobody)
    changes = replace(house.cortex.call_changes, approvals=deaf)
    await changes.allow(house.admin, approval, '{"to": "Work", "text": "I do"}')
    rows = house.cortex.runtime.db.repository(ApprovalsRepository, house.admin.id)
    (made,) = [row for row in await rows.of_turn(turn) if row.state == "allowed"]
    assert made.destination == "Work (room w0rkw0rk)"
    nextcloud.room("w0rkw0rk", "Former work")
    nextcloud.room("str4nger", "Work")
    if is_late:
        await house.cortex.turn_queue.settle_stalled()
        await house.until(cid, "approval", state="asked", destination="Work (room str4nger)")
    else:
        row = await house.cortex.runtime.db.repository(TurnsRepository, house.admin.id).get(turn)
        await house.cortex.approvals.signal_again(row)
        result = await house.until(cid, "tool.result", turn=turn, call=made.call_id)
        assert (result.payload["state"], result.payload["words"]) == ("refused", ELSEWHERE.words)
    assert nextcloud.texts("str4nger") == nextcloud.texts("w0rkw0rk") == []


async def nobody(row: TurnRow) -> None:
    """Start nothing."""


async def test_what_cannot_be_is_said_and_nobody_is_asked(house: LivingHouse, nextcloud: TalkDouble) -> None:
    state, text = await result(house, "tell nobody")
    assert (state, "'Cellar'" in text, "'Family'" in text) == ("err", True, True)
    state, text = await result(house, "read wrongly")
    assert (state, "count" in text) == ("refused", True)
    nextcloud.faults.append((503, {"X-Nextcloud-Maintenance-Mode": "1"}))
    state, text = await result(house, "what is new?")
    assert (state, "being maintained" in text) == ("err", True)
    (card,) = [card for card in await house.cortex.integrations.cards() if card.kind.name == "talk"]
    assert text in card.state
    await house.cortex.integrations.switch(house.admin, "talk", "", is_on=False)
    assert "nc_talk_send" in (await house.cortex.tools.setups())


async def test_a_notice_comes_to_the_room_that_its_person_chose(
    db: Database, clock: StillClock, tmp_path: Path, nextcloud: TalkDouble
) -> None:
    world = await made_world(db, clock, tmp_path)
    (view,) = [view for view in await world.addresses.views(ADA) if view.name == "talk"]
    assert "An administrator" in view.lacks
    await world.integrations.save(ADA, "talk", "", nextcloud.form(), is_new=True)
    await world.integrations.share(ADA, "talk", "", [], [ADA.id])
    with pytest.raises(UserError, match="Paste the room's link"):
        await world.addresses.put(ADA, "talk", "Family")
    await world.addresses.put(ADA, "talk", nextcloud.link(FAMILY))
    await world.addresses.put(BOB, "talk", nextcloud.link(FAMILY))
    assert await world.addresses.test(ADA, "talk") == ""
    assert "not available" in await world.addresses.test(BOB, "talk")
    await world.notification_preferences.change(ADA, content=["talk"])
    shout = replace(TEA, text="@all: the fern first.", urgency="high", actions=("ack",))
    async with world.sending():
        ended = await world.ended(await world.notices.notify(ADA.id, shout))
    assert (ended["talk"].state, ended["talk"].error) == ("delivered", "")
    title, text, done, page = nextcloud.texts(FAMILY)[-1].splitlines()
    assert (title, text) == ("Water the plants", "@\u200ball: the fern first.")
    assert done.startswith("Done: https://cortex.example.org/go/")
    assert page.startswith("https://cortex.example.org/reminders?notice=")


async def test_a_room_that_is_away_for_now_is_tried_again_and_a_closed_one_is_not(
    db: Database, clock: StillClock, tmp_path: Path, nextcloud: TalkDouble
) -> None:
    world = await made_world(db, clock, tmp_path)
    await world.integrations.save(ADA, "talk", "", nextcloud.form(), is_new=True)
    await world.addresses.put(ADA, "talk", nextcloud.link(FAMILY))
    nextcloud.faults.append((502, {}))
    async with world.sending():
        id = await world.notices.notify(ADA.id, TEA)
        while not (row := (await world.deliveries(id))["talk"]).error:
            await world.notices.changed(ADA.id, -1, 0.02)
        assert (row.state, row.error.startswith("Nextcloud has a problem")) == ("pending", True)
        world.later(seconds=60)
        assert (await world.ended(id))["talk"].state == "delivered"
        nextcloud.read_only.add(FAMILY)
        ended = await world.ended(await world.notices.notify(ADA.id, replace(TEA, key="tea-2")))
    assert (ended["talk"].state, "read-only" in ended["talk"].error) == ("failed", True)
    assert len(nextcloud.texts(FAMILY)) == 2
