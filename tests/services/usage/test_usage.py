"""The usage page's numbers: equal to the receipts, on the right day, of the right person."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.errors import NotAllowed, NotFound
from cortex.base.messages import Usage
from cortex.base.user import User
from cortex.services.usage.usage import View
from cortex.storage.plans import PlansRepository
from cortex.storage.round_rows import RoundRow
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import Say, ScriptedServer, Use, rule
from tests.still_clock import StillClock

MILK = rule("milk", Use("task_create", {"title": "milk"}), "Added.")
HELLO = rule("hello", Say("Hello to you. " * 20))


async def use_model(house: LivingHouse, scripted: ScriptedServer, **more: Any) -> None:
    cache = {"caches": True, "minimum_tokens": 1024, "read_factor": 0.1, "late_tools": "rewrite", "life_s": 300}
    await house.connect(scripted, **{"model": "gpt-5", "cache": cache, **more})


async def on_record(house: LivingHouse, turns: list[str], who: User) -> tuple[list[dict[str, Any]], list[RoundRow]]:
    """Receipts and rows of these turns, those whose call was answered."""
    receipts, rows = [], []
    for turn in turns:
        found = await house.cortex.runtime.db.repository(RoundsRepository, who.id).of_turn(turn)
        rows += [row for row in found if row.state == "answered"]
        numbers = {row.round for row in rows if row.turn_id == turn}
        plans = await house.cortex.runtime.db.repository(PlansRepository, who.id).of_turn(turn)
        receipts += [plan.receipt for plan in plans if plan.round in numbers]
    return receipts, rows


@pytest.mark.moves_cache_prefix(reason="All after Auto is a person's own act")
async def test_the_pages_numbers_are_the_sum_of_the_receipts(house: LivingHouse, scripted: ScriptedServer) -> None:
    scripted.rules = [MILK, HELLO]
    await use_model(house, scripted, price={"input_usd": 3.0, "output_usd": 15.0, "cached_usd": 0.3})
    cid = await house.conversation()
    turns = [
        await house.say(cid, "hello there"),
        await house.say(cid, "add milk to my shopping list"),
        await house.say(cid, "add milk again", mode="all"),
        await house.say(cid, "hello", mode="chat"),
    ]
    view = await house.cortex.usage.view(house.admin, days=7)
    receipts, rows = await on_record(house, turns, house.admin)
    assert len(receipts) == len(rows) == view.whole.rounds >= 6
    assert view.whole.total_tokens == sum(receipt["total_tokens"] for receipt in receipts)
    assert view.whole.sent_tokens + view.whole.extra_tokens == sum(
        receipt["tokens"] + receipt["notes_tokens"] for receipt in receipts
    )
    assert view.whole.left_out == sum(sum(receipt["left_out"].values()) for receipt in receipts)
    by_stage = [receipt["left_out"] for receipt in receipts]
    assert view.whole.cut_role == sum(each.get("gate", 0) for each in by_stage)
    assert view.whole.cut_mode == sum(each.get("mode", 0) for each in by_stage) > 0
    asked = [seen.usage for seen in scripted.log]
    assert view.whole.input_tokens == sum(each["prompt_tokens"] for each in asked)
    assert view.whole.output_tokens == sum(each["completion_tokens"] for each in asked)
    assert view.whole.cached_tokens == sum(each["prompt_tokens_details"]["cached_tokens"] for each in asked)
    assert view.whole.cost_usd == pytest.approx(sum(row.cost_usd or 0.0 for row in rows))
    assert view.whole.cost_usd > 0
    assert sum(sums.input_tokens for _, sums in view.days) == view.whole.input_tokens
    assert sum(row.sum.cost_usd for row in view.rows) == pytest.approx(view.whole.cost_usd)
    assert sum(miss.rounds for miss in view.misses) == view.whole.rounds
    assert sum(count * turns for count, turns in view.histogram) == view.whole.rounds
    assert sum(one.rounds for one in view.dear) == view.whole.rounds
    tools = (await house.cortex.usage.view(house.admin, days=7, by="tool")).tools
    sent = [one for receipt in receipts for one in receipt["sent"]]
    assert {one.name: (one.rounds, one.tokens) for one in tools} == {
        name: (len(mine), sum(one["tokens"] for one in mine))
        for name in {one["name"] for one in sent}
        for mine in [[one for one in sent if one["name"] == name]]
    }
    assert next(one for one in tools if one.name == "task_create").calls == 2


@pytest.mark.parametrize("mode", ["auto", "all"])
async def test_what_was_sent_and_what_was_left_out_are_all_the_tools_there_are(house: LivingHouse, mode: str) -> None:
    turn = await house.say(await house.conversation(), "add milk to my shopping list", mode=mode)
    for row in await house.rows(RoundsRepository).of_turn(turn):
        cuts = row.cut_role + row.cut_choice + row.cut_form + row.cut_budget + row.cut_mode
        assert row.total_tokens == row.sent_tokens + cuts


async def test_why_the_cache_missed_is_found_out_and_warm_requests_are_hits(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [HELLO]
    await use_model(house, scripted)
    cid = await house.conversation()
    turns = [await house.say(cid, "hello " + "my dear old friend " * 300) for _ in range(3)]
    outcomes = [(await on_record(house, [turn], house.admin))[1][0].cache for turn in turns]
    assert outcomes == ["first", "hit", "hit"]
    view = await house.cortex.usage.view(house.admin, days=7)
    assert view.hit_rate == pytest.approx(2 / 3)
    assert [(miss.outcome, miss.rounds) for miss in view.misses] == [("hit", 2), ("first", 1)]


@pytest.mark.moves_cache_prefix(reason="another model, and an edit: a person's own acts")
async def test_a_new_try_and_another_model_are_told_apart(house: LivingHouse, scripted: ScriptedServer) -> None:
    scripted.rules = [HELLO]
    await use_model(house, scripted)
    cid = await house.conversation()
    long = "hello " + "my dear old friend " * 600
    first = await house.say(cid, long, mode="chat")
    await house.say(cid, long, mode="chat")
    edited = await house.cortex.chat.edit(house.admin, first, "hello from the start " * 700)
    await house.until(cid, "turn.end", turn=edited)
    await house.connect(scripted, name="n", model="gpt-5", cache={"caches": True, "minimum_tokens": 1024})
    await house.cortex.models.set_chain(house.admin, ("n",))
    other = await house.say(cid, "hello")
    rows = (await on_record(house, [edited, other], house.admin))[1]
    assert rows[0].cache == "history"
    assert rows[1].model == "n"
    assert rows[1].cache in ("model", "hit"), "the scripted server shares one cache among its models"


async def booked(house: LivingHouse, at: StillClock, who: User, turn: str, **known: Any) -> None:
    """A round of its own turn, with a known usage, at the clock's time."""
    cid = await house.conversation(who)
    await house.cortex.runtime.db.repository(TurnsRepository, who.id).create(
        NewTurn(turn, cid, "x", mode="auto", role="coder", state="done", is_tainted=False, reads=NOTHING_READ)
    )
    usage = Usage(input_tokens=100, output_tokens=10)
    await house.cortex.runtime.db.repository(RoundsRepository, who.id).answered(
        turn, 1, "m", usage, 0.5, cache="hit", **known
    )


async def test_a_round_belongs_to_its_day_in_the_readers_zone_also_when_clocks_change(tmp_path: Path) -> None:
    clock = StillClock(datetime(2026, 10, 25, 21, 59, tzinfo=UTC))  # 22:59 of a day of 25 hours in Berlin
    async with living_house(tmp_path, clock=clock) as house:
        ada = await house.cortex.accounts.set_time_zone(house.admin, "Europe/Berlin")
        moments = {
            "turn:1": datetime(2026, 10, 24, 21, 59, tzinfo=UTC),  # 23:59, still the 24th
            "turn:2": datetime(2026, 10, 24, 22, 0, tzinfo=UTC),  # 00:00 of the 25th
            "turn:3": datetime(2026, 10, 25, 22, 59, tzinfo=UTC),  # 23:59, after the 25th hour
        }
        for turn, at in moments.items():
            clock.at = at
            await booked(house, clock, ada, turn)
        view = await house.cortex.usage.view(ada, days=7)
        assert {on: sums.rounds for on, sums in view.days if sums.rounds} == {
            date(2026, 10, 24): 1,
            date(2026, 10, 25): 2,
        }
        clock.at = datetime(2026, 10, 25, 23, 0, tzinfo=UTC)
        there = await house.cortex.usage.view(replace(ada, time_zone="Asia/Kathmandu"), days=7)
        assert {on: sums.rounds for on, sums in there.days if sums.rounds} == {
            date(2026, 10, 25): 2,
            date(2026, 10, 26): 1,
        }


async def test_a_member_sees_their_own_and_an_admin_anybodys_or_all(tmp_path: Path) -> None:
    clock = StillClock()
    async with living_house(tmp_path, clock=clock) as house:
        await booked(house, clock, house.admin, "turn:1")
        for number in (2, 3):
            await booked(house, clock, house.member, f"turn:{number}")
        usage = house.cortex.usage

        async def rounds(who: User, **how: Any) -> int:
            found: View = await usage.view(who, days=28, **how)
            return found.whole.rounds

        assert await rounds(house.admin) == 1
        assert await rounds(house.member) == await rounds(house.admin, person=house.member.id) == 2
        assert await rounds(house.admin, person="all") == 3
        people = await usage.view(house.admin, days=28, by="person", person="all")
        assert {row.label: row.sum.rounds for row in people.rows} == {"ada": 1, "bob": 2}
        assert [one.name for one in (await usage.view(house.member, days=28)).people] == ["bob"]
        for person in ("all", house.admin.id):
            with pytest.raises(NotAllowed):
                await usage.view(house.member, days=28, person=person)
        with pytest.raises(NotFound):
            await usage.view(house.admin, days=28, person="nobody")


async def test_tools_that_nobody_called_are_named_with_what_sending_them_cost(house: LivingHouse) -> None:
    await house.say(await house.conversation(), "add milk to my shopping list")
    view = await house.cortex.usage.view(house.admin, days=7, by="tool")
    never = {one.name: one for one in view.never}
    assert "task_create" not in never
    assert not {"tools_discover", "tool_call"} & never.keys()
    assert view.never[0].tokens > 0
    assert never["shell_exec"].tokens == 0


async def test_what_usage_teaches_is_planned_with_and_what_a_person_typed_is_not_touched(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [HELLO]
    await use_model(house, scripted, cache={"caches": True, "read_factor": 0.1, "minimum_tokens": 1024})
    cid = await house.conversation()
    turn = await house.say(cid, "hello")
    rounds = house.rows(RoundsRepository)
    endpoint = (await rounds.of_turn(turn))[0].endpoint
    for number in range(2, 30):
        late = {"idle_s": 2000.0 if number % 2 else 20.0, "kept_tokens": 4000, "endpoint": endpoint}
        usage = Usage(input_tokens=4400, output_tokens=9, cached_tokens=3968)
        await rounds.answered(turn, number, "m", usage, None, **late)
    (backend,) = await house.cortex.profiles.all(house.admin)
    assert (backend.learned.samples, backend.learned.hits, backend.learned.changed) == (28, 28, ("life_s",))
    assert (backend.entry.profile.life_s, backend.learned.profile.life_s) == (600, 2000)
    again = await house.say(cid, "hello")
    given = (await house.rows(PlansRepository).of_turn(again))[0].given
    assert given["profile"]["life_s"] == 2000
    await use_model(house, scripted, name="m2", cache={"life_s": 77})
    typed = (await house.cortex.profiles.all(house.admin))[1]
    assert typed.learned.profile.life_s == 77
