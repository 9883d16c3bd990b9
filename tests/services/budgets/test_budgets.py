"""Budgets before each model call: where they stop, how they go on, when they begin again, and who counts with whom."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.errors import UserError
from cortex.base.messages import assistant, user
from cortex.base.user import User
from cortex.services.budgets.budgets import Limit
from cortex.storage.audit import AuditRepository
from cortex.storage.jobs import JobsRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.round_rows import Spent
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.plain_world import PLAIN_TURN
from tests.scripted_server import Fault, ScriptedServer, Use, rule
from tests.still_clock import StillClock
from tests.storage.made_time import NEWS

MILK = "add milk to my shopping list"
LATE = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)  # in Auckland half an hour to midnight
FORM = {"subject": "", "limit_tokens": "", "limit_usd": "", "at_limit": "stop", "model": ""}


async def limit(house: LivingHouse, **form: str) -> None:
    await house.cortex.budget_admin.put(house.admin, {**FORM, **form})


async def rounds_of(house: LivingHouse, turn_id: str, who: User | None = None) -> list[tuple[int, str]]:
    found = await house.cortex.runtime.db.repository(RoundsRepository, (who or house.admin).id).of_turn(turn_id)
    return [(one.round, one.state) for one in found]


async def spent(house: LivingHouse, who: User | None = None) -> int:
    return (
        await house.cortex.runtime.db.repository(RoundsRepository, (who or house.admin).id).spent(
            datetime.min.replace(tzinfo=UTC)
        )
    ).tokens


async def said(house: LivingHouse, cid: str, who: User | None = None) -> str:
    text: str = (await house.events(cid, "part.end", user=who))[-1].payload["text"]
    return text


async def notices(house: LivingHouse, cid: str) -> list[str]:
    return [event.payload["text"] for event in await house.events(cid, "notice")]


async def test_a_roles_token_budget_stops_the_next_model_call_with_a_text(house: LivingHouse) -> None:
    await house.cortex.roles.change(house.admin, "orchestrator", {"budget_tokens": 100})
    cid = await house.conversation()
    await house.say(cid, MILK)
    end = (await house.events(cid, "turn.end"))[0].payload
    assert (end["state"], await house.events(cid, "error")) == ("done", [])
    assert "the role allows 100" in await said(house, cid)
    assert len(await house.events(cid, "usage")) == 1


async def test_a_limit_that_is_hit_in_the_middle_of_a_turn_ends_it_in_a_text_that_costs_nothing(
    house: LivingHouse,
) -> None:
    await limit(house, kind="user", limit_tokens="100")
    cid = await house.conversation()
    turn = await house.say(cid, MILK)
    assert await rounds_of(house, turn) == [(1, "answered"), (2, "refused")]
    assert (await house.events(cid, "turn.end"))[0].payload["state"] == "done"
    assert await house.events(cid, "error") == []
    assert "used up" in await said(house, cid)
    assert "midnight (UTC)" in await said(house, cid)
    before = await spent(house)
    next_turn = await house.say(cid, "hello")
    assert await rounds_of(house, next_turn) == [(1, "refused")]
    assert await spent(house) == before
    assert [task.title for task in await house.cortex.tasks.list(house.admin)] == ["milk"]


async def test_a_day_begins_at_midnight_of_the_persons_own_zone(tmp_path: Path) -> None:
    clock = StillClock(LATE)
    async with living_house(tmp_path, clock=clock) as house:
        there = await house.cortex.accounts.set_time_zone(house.member, "Pacific/Auckland")
        await limit(house, kind="user", limit_tokens="100")
        cid = await house.conversation(there)
        first = await house.say(cid, "hello", user=there)
        late = await house.say(cid, "hello again", user=there)
        clock.forward(minutes=29)
        later = await house.say(cid, "hello again", user=there)
        clock.forward(minutes=2)
        tomorrow = await house.say(cid, "good morning", user=there)
        states = [await rounds_of(house, turn, there) for turn in (first, late, later, tomorrow)]
        assert states == [[(1, "answered")], [(1, "refused")], [(1, "refused")], [(1, "answered")]]
        assert "Pacific/Auckland" in (await house.events(cid, "part.end", user=there))[1].payload["text"]


async def test_turns_at_once_cannot_slip_under_the_limit_by_more_than_one_call(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [rule("hello", "Hello to you.")]
    scripted.delay_s = 0.05
    await house.connect(scripted, max_output_tokens=200, streams=False)
    alone = await house.conversation()
    await house.say(alone, "hello")
    one_call = await spent(house)
    allowed = one_call + 2 * one_call
    await limit(house, kind="user", limit_tokens=str(allowed))
    cids = [await house.conversation() for _ in range(6)]
    await asyncio.gather(*(house.say(cid, "hello") for cid in cids))
    assert allowed <= await spent(house) <= allowed + one_call + 20
    answers = [await said(house, cid) for cid in cids]
    assert 2 <= sum(answer == "Hello to you." for answer in answers) <= 3
    assert all("I stopped" in answer for answer in answers if answer != "Hello to you.")


async def held_up(house: LivingHouse, scripted: ScriptedServer) -> str:
    """A turn of the admin's in the middle of its answer, whose call holds more than their limit leaves."""
    scripted.rules = [rule("hello", "Hello to you.")]
    await house.connect(scripted, max_output_tokens=50_000)
    await limit(house, kind="user", subject="ada", limit_tokens="40000")
    scripted.fail(Fault(kind="pause", after_bytes=500))
    cid = await house.conversation()
    turn = await house.cortex.chat.send_message(house.admin, cid, "hello")
    await house.until(cid, "part.start", turn=turn)
    return turn


async def test_a_call_waits_for_what_another_holds_and_goes_on_when_that_is_free(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    holding = await held_up(house, scripted)
    cid = await house.conversation()
    waiting = await house.cortex.chat.send_message(house.admin, cid, "hello")
    await house.until(cid, "turn.start", turn=waiting)
    theirs = await house.conversation(house.member)
    await house.say(theirs, "hello", user=house.member)  # all of a turn that nothing holds up
    assert await rounds_of(house, waiting) == []
    assert len(scripted.log) == 1
    scripted.go_on(99)
    await house.until(cid, "turn.end", turn=waiting, state="done")
    assert await said(house, cid) == "Hello to you."
    assert [await rounds_of(house, turn) for turn in (holding, waiting)] == [[(1, "answered")], [(1, "answered")]]


async def test_a_call_that_waited_too_long_for_what_another_holds_is_told(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await held_up(house, scripted)
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    budgets = house.cortex.turn_contexts.budgets
    impatient = replace(budgets, runtime=replace(budgets.runtime, ticks_s=lambda: 100.0 * len(waited)), sleep=wait)
    turns, cid = house.rows(TurnsRepository), await house.conversation()
    late = await turns.create(NewTurn("turn:late", cid, "hello", **PLAIN_TURN))
    entry = await house.cortex.models.entry(house.admin, "m")
    limits = await impatient.limits(house.admin, late, await house.cortex.roles.role(house.admin, late.role))
    admission = await impatient.admit(house.admin, late, limits, 1, entry, 100)
    assert admission.action == "stop"
    assert "in use by" in admission.text
    assert len(waited) == 2, "three looks in 200 of the 180 seconds that it waits"
    assert await rounds_of(house, late.id) == [(1, "refused")]
    scripted.go_on(99)


async def test_at_the_limit_another_model_may_take_over(house: LivingHouse, scripted: ScriptedServer) -> None:
    scripted.rules = [rule("milk", Use("task_create", {"title": "milk"}), "Added.")]
    await house.connect(scripted, name="dear")
    await limit(house, kind="user", limit_tokens="100", at_limit="model", model="offline")
    cid = await house.conversation()
    turn = await house.say(cid, MILK)
    found = await house.rows(RoundsRepository).of_turn(turn)
    assert [(one.model, one.state) for one in found] == [("dear", "answered"), ("offline", "answered")]
    assert found[1].cache == "uncached", "the offline model has no cache"
    assert len(scripted.log) == 1
    told = [text for text in await notices(house, cid) if "switching to offline" in text]
    assert len(told) == 1
    await house.say(cid, "hello")
    assert len(scripted.log) == 1


async def test_a_model_that_the_person_does_not_have_cannot_take_over(house: LivingHouse) -> None:
    await limit(house, kind="user", limit_tokens="1", at_limit="model", model="cheap")
    cid = await house.conversation()
    await house.say(cid, "hello")
    await house.say(cid, "hello")
    assert "'cheap'" in await said(house, cid)


async def test_at_the_limit_an_answer_may_go_on_without_tools(house: LivingHouse) -> None:
    await limit(house, kind="role", subject="orchestrator", limit_tokens="1", at_limit="chat")
    cid = await house.conversation()
    await house.say(cid, "hello")
    turn = await house.say(cid, MILK)
    found = await house.rows(RoundsRepository).of_turn(turn)
    assert [(one.state, one.sent_tokens, one.sent) for one in found] == [("answered", 0, {})]
    assert await house.cortex.tasks.list(house.admin) == []
    receipt = await house.cortex.chat.receipt(house.admin, turn)
    assert "answering without tools" in receipt["labels"]["budget"]  # type: ignore[index]


@pytest.mark.parametrize("at_limit", ["stop", "chat", "model"])
async def test_an_answer_that_is_none_stands_where_the_limit_leaves_no_second_one(
    house: LivingHouse, scripted: ScriptedServer, at_limit: str
) -> None:
    refusal = "I'm sorry, I don't have a tool to list your notes."
    scripted.rules = [rule("agent notes", refusal, "again")]
    await house.connect(scripted)
    form: dict[str, Any] = {"is_on": True, "sending": "never", "asks_first": False}  # only a second try brings it
    await house.cortex.tool_settings.change(house.admin, "agent_notes_read", **form)
    fallback = "offline" if at_limit == "model" else ""
    await limit(house, kind="user", limit_tokens="1", at_limit=at_limit, model=fallback)
    cid = await house.conversation()
    turn = await house.say(cid, "read me your agent notes")
    assert (await said(house, cid), len(scripted.log)) == (refusal, 1)
    assert [one for one in await notices(house, cid) if "Trying again" in one or "is used up" in one] == []
    assert await rounds_of(house, turn) == [(1, "answered"), (2, "refused")]
    assert (await house.rows(RoundsRepository).spent(datetime.min.replace(tzinfo=UTC))).held_tokens == 0


async def test_four_fifths_are_told_once(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "hello")
    each = await spent(house)
    await limit(house, kind="house", limit_tokens=str(round(each * 3.2)))
    for _ in range(3):
        await house.say(await house.conversation(), "hello")
    told = [event for one in await all_notices(house) for event in one]
    assert [text for text in told if "for everybody is" in text] == told
    assert len(told) == 1


async def all_notices(house: LivingHouse) -> list[list[str]]:
    groups = await house.cortex.conversations.list(house.admin)
    return [await notices(house, one.id) for group in groups for one in group.conversations]


async def test_one_persons_limit_does_not_hold_up_another_and_the_houses_counts_both(house: LivingHouse) -> None:
    await limit(house, kind="user", subject="ada", limit_tokens="1")
    mine, theirs = await house.conversation(), await house.conversation(house.member)
    await house.say(mine, "hello")
    assert await rounds_of(house, await house.say(mine, "hello")) == [(1, "refused")]
    fine = await house.say(theirs, "hello", user=house.member)
    assert await rounds_of(house, fine, house.member) == [(1, "answered")]
    await limit(house, kind="house", limit_tokens="2")
    over = await house.say(theirs, "hello", user=house.member)
    assert await rounds_of(house, over, house.member) == [(1, "refused")]


async def test_a_persons_own_limit_outranks_that_of_everybody(house: LivingHouse) -> None:
    await limit(house, kind="user", limit_tokens="1")
    await limit(house, kind="user", subject="ada", limit_tokens="1000000")
    cid = await house.conversation()
    await house.say(cid, "hello")
    assert await rounds_of(house, await house.say(cid, "hello")) == [(1, "answered")]


async def test_a_jobs_turns_are_counted_under_the_job_and_stopped_by_its_limit(house: LivingHouse) -> None:
    await job_of(house, house.admin, "nightly", "Every night")
    await limit(house, kind="job", subject="every night", limit_tokens="1")
    cid = await house.conversation()
    states = []
    for number in (1, 2):
        turns = house.rows(TurnsRepository)
        row = await turns.create(
            NewTurn(f"turn:job{number}", cid, "hello", channel="cron", job_id="nightly", **PLAIN_TURN)
        )
        await house.cortex.turn_queue.start(row)
        await house.until(cid, "turn.end", turn=row.id)
        states += await rounds_of(house, row.id)
    assert states == [(1, "answered"), (1, "refused")]
    assert "for this job" in await said(house, cid)


async def job_of(house: LivingHouse, who: User, id: str, name: str) -> None:
    await house.cortex.runtime.db.repository(JobsRepository, who.id).add(id, replace(NEWS, name=name), None)


async def test_a_job_is_chosen_by_its_name_and_shown_by_it_to_its_owner(house: LivingHouse) -> None:
    desk = house.cortex.budget_admin
    for who, id, name in (
        (house.admin, "one", "Morning brief"),
        (house.member, "two", "Morning brief"),
        (house.member, "three", "Backup"),
        (house.admin, "four-aaaaaa", "Twice"),
        (house.admin, "four-bbbbbb", "Twice"),
    ):
        await job_of(house, who, id, name)
    assert await desk.jobs() == [
        *("Backup", "Morning brief (ada)", "Morning brief (bob)", "Twice (ada) aaaaaa", "Twice (ada) bbbbbb"),
    ]
    for typed in ("backup", "Morning brief (bob)", "four-bbbbbb"):
        await limit(house, kind="job", subject=typed, limit_tokens="1000")
    assert [row.subject for row in await desk.list()] == ["four-bbbbbb", "three", "two"]
    standings = await desk.standings([house.admin, house.member])
    assert {(one.subject, one.who) for one in standings} == {
        *{("Twice", "ada"), ("Backup", "bob"), ("Morning brief", "bob")},
    }
    for typed, says in (("Morning brief", "several jobs"), ("Nothing", "no job")):
        with pytest.raises(UserError, match=says):
            await limit(house, kind="job", subject=typed, limit_tokens="1")


async def test_a_summary_is_a_call_that_is_counted_and_can_be_refused(house: LivingHouse) -> None:
    cid = await house.conversation()
    messages = house.rows(MessagesRepository)
    for number in range(6):
        turn_id = await house.say(cid, f"hello {number}", mode="chat")
        await messages.add(turn_id, 90, user("The boiler man comes on Tuesday. " * 300), False)
        await messages.add(turn_id, 91, assistant("He wants the cellar key. " * 300), False)
    branch = await house.cortex.conversations.branch(house.admin, cid, turn_id)
    turn = await house.say(cid, "hello", mode="chat")
    first = (await house.rows(RoundsRepository).of_turn(turn))[0]
    assert (first.round, first.role, first.state, first.input_tokens > 1000) == (0, "distill", "answered", True)
    await limit(house, kind="role", subject="distill", limit_tokens="1")
    again = await house.say(branch, "hello", mode="chat")
    assert (await rounds_of(house, again))[0] == (0, "refused")
    assert (await rounds_of(house, again))[1] == (1, "answered")
    assert any("not be summarised" in text for text in await notices(house, branch))


async def test_what_a_stopped_turn_held_is_free_again(house: LivingHouse, scripted: ScriptedServer) -> None:
    scripted.rules = [rule("hello", "Hello to you.")]
    scripted.delay_s = 30.0
    await house.connect(scripted)
    await limit(house, kind="user", limit_tokens="1000000")
    cid = await house.conversation()
    turn = await house.cortex.chat.send_message(house.admin, cid, "hello")
    await house.until(cid, "selection", turn=turn)
    rounds = house.rows(RoundsRepository)
    assert (await rounds.spent_in_turn(turn)).held_tokens > 0
    await house.cortex.chat.stop(house.admin, cid)
    assert (await rounds.spent_in_turn(turn)) == Spent()


async def test_budgets_are_in_the_audit_log(house: LivingHouse) -> None:
    await limit(house, kind="role", subject="coder", limit_usd="2,50")
    (budget,) = await house.cortex.budget_admin.list()
    await house.cortex.budget_admin.remove(house.admin, budget.id)
    entries = (await house.cortex.runtime.db.repository(AuditRepository).list())[:2]
    assert [(one.action, one.subject, one.actor) for one in entries] == [
        ("budget.removed", "role coder", house.admin.id),
        ("budget.set", "role coder", house.admin.id),
    ]
    assert '"usd":2.5' in entries[1].detail


@pytest.mark.parametrize(
    ("limit_", "spent_", "words"),
    [
        pytest.param(
            Limit(kind="user", usd=1.0, time_zone="Europe/Berlin"),
            Spent(tokens=9, usd=1.25, unpriced=3),
            "I stopped: your limit for today is used up ($1.2500 of $1.0000). "
            "3 calls with unknown price are not counted. It resets at midnight (Europe/Berlin).",
            id="dollars, with calls of unknown price",
        ),
        pytest.param(
            Limit(kind="role", subject="coder", tokens=20_000, usd=5.0),
            Spent(tokens=20_100, usd=0.2),
            "I stopped: today's limit for the role 'coder' is used up (20,100 tokens of 20,000). "
            "It resets at midnight (UTC).",
            id="tokens",
        ),
        pytest.param(
            Limit(kind="turn", subject="coder", usd=0.1),
            Spent(tokens=1, usd=0.12),
            "I stopped: this message cost $0.1200; the role allows $0.1000.",
            id="one message",
        ),
    ],
)
def test_the_sentence_says_whose_limit_and_how_much(limit_: Limit, spent_: Spent, words: str) -> None:
    assert limit_.sentence(spent_) == words


def test_a_limit_of_nothing_is_always_reached_and_none_never() -> None:
    assert Limit(kind="user", tokens=0).share(Spent()) == 1.0
    assert Limit(kind="user").share(Spent(tokens=10**9, usd=10**6)) == 0.0
    assert Limit(kind="user", tokens=100).share(Spent(tokens=60, held_tokens=40), held=True) == 1.0
