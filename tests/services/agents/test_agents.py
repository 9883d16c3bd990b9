"""Background agents in the whole house: started by a turn, alone with their task, their result as a new turn."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.errors import NotFound, ToolFailed
from cortex.base.turn import agent_turn
from cortex.ports.agents import AgentRun
from cortex.services.agents.agents import AT_ONCE
from cortex.services.chat.transcript import Transcript
from cortex.services.chat.transcript_views import AgentCard, key_of, turn_of
from cortex.services.notices.notices import NoticeView
from cortex.storage.calls import CallsRepository
from cortex.storage.db import Opener
from cortex.storage.home import Homes
from cortex.storage.jobs import JobsRepository
from cortex.storage.turns import TurnRow, TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.scripted_server import Fault, ScriptedServer, Use, rule
from tests.storage.made_time import NEWS

TASK = "Find the cheapest of the three offers."
ASK = "spawn an agent that compares the offers"
FOUND = "The second offer is the cheapest."
TOLD = "Your agent says: take the second one."


def script(scripted: ScriptedServer) -> None:
    scripted.rules = [
        rule("What you had handed over is done", TOLD),
        rule("^Find the cheapest", FOUND),
        rule("spawn an agent", Use("spawn_agent", {"task": TASK}), "It is on its way."),
    ]


@pytest.fixture
async def house(scripted: ScriptedServer, house: LivingHouse) -> LivingHouse:
    script(scripted)
    await house.connect(scripted)
    return house


async def started(house: LivingHouse, cid: str) -> AgentRun:
    """Ask for an agent in the conversation; the run, while it may still be at work."""
    await house.say(cid, ASK)
    (run,) = await house.cortex.agents.list(house.admin.id, 10)
    return run


async def ended(house: LivingHouse, cid: str, run: AgentRun, state: str = "done") -> None:
    await house.until(cid, "agent", agent=run.id, state=state)


async def told(house: LivingHouse) -> Sequence[NoticeView]:
    """What was told, as soon as something was; nobody watches a conversation meanwhile."""
    notices, bell = house.cortex.notices, -1
    async with asyncio.timeout(PATIENCE_S):
        while not (page := await notices.page(house.admin.id)).notices:
            bell = await notices.changed(house.admin.id, bell, 15)
    return page.notices


async def by_hand(house: LivingHouse, cid: str, id: str, **how: Any) -> AgentRun:
    """Start a run for the conversation's last turn, as the tool does."""
    turn = (await house.rows(TurnsRepository).list(cid))[-1].id
    given = {"task": TASK, "role": "orchestrator", "is_tainted": False, **how}
    return await house.cortex.agents.start(house.admin.id, id, turn, **given)


async def test_its_result_comes_as_a_new_turn_and_is_answered(house: LivingHouse) -> None:
    cid = await house.conversation()
    run = await started(house, cid)
    await ended(house, cid, run)
    message = await house.until(cid, "message", agent=run.id)
    assert FOUND in message.payload["text"]
    await house.until(cid, "turn.end", turn=message.payload["turn"])
    rows = await house.rows(TurnsRepository).list(cid)
    assert [(row.channel, row.is_tainted, row.state) for row in rows] == [
        ("chat", False, "done"),
        ("result", False, "done"),
    ]
    assert (await house.events(cid, "part.end"))[-1].payload["text"] == TOLD
    view = await house.cortex.agents.view(house.admin.id, run.id)
    assert (view.run.state, view.run.result, view.rounds, view.parent_id) == ("done", FOUND, 1, cid)
    assert view.run.tokens > 0


async def test_the_card_stands_in_the_turn_that_started_it(house: LivingHouse) -> None:
    cid = await house.conversation()
    run = await started(house, cid)
    await ended(house, cid, run)
    log = Transcript(await house.events(cid))
    (card,) = [part for part in log.turns[0].parts if isinstance(part, AgentCard)]
    assert (card.id, card.task, card.state, card.is_open) == (run.id, TASK, "done", False)
    found = log.turns[1]
    assert (found.agent, turn_of(found.key)) == (run.id, found.id)


async def test_it_works_in_a_conversation_of_its_own_that_is_in_no_list(house: LivingHouse) -> None:
    cid = await house.conversation()
    run = await started(house, cid)
    await ended(house, cid, run)
    groups = await house.cortex.conversations.list(house.admin)
    assert [one.id for group in groups for one in group.conversations] == [cid]
    own = await house.cortex.conversations.get(house.admin, run.id)
    assert (own.source, own.parent_id) == ("agent", cid)
    (turn,) = await house.rows(TurnsRepository).list(run.id)
    assert turn_of(key_of(turn.id)) == turn.id
    assert [event.payload["text"] for event in await house.events(run.id, "message")] == [TASK]


async def test_an_agent_starts_no_agent(house: LivingHouse, scripted: ScriptedServer) -> None:
    scripted.rules.insert(1, rule("^Find the cheapest", Use("spawn_agent", {"task": "more"}, is_blind=True), FOUND))
    cid = await house.conversation()
    run = await started(house, cid)
    await ended(house, cid, run)
    assert [one.id for one in await house.cortex.agents.list(house.admin.id, 10)] == [run.id]
    turn = (await house.rows(TurnsRepository).list(run.id))[0]
    (call,) = await house.rows(CallsRepository).of_turn(turn.id)
    assert call.state == "refused"
    with pytest.raises(ToolFailed, match="can't start another"):
        await house.cortex.agents.start(house.admin.id, "deeper", turn.id, "more", "orchestrator", False)


async def test_a_repeated_step_starts_one(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "hello")
    first = await by_hand(house, cid, "run1")
    assert (await by_hand(house, cid, "run1")).started_at == first.started_at
    await ended(house, cid, first)
    assert len(await house.events(cid, "agent")) == 2
    assert len(await house.cortex.agents.list(house.admin.id, 10)) == 1


async def test_what_can_not_be_is_said(house: LivingHouse, scripted: ScriptedServer) -> None:
    cid = await house.conversation()
    await house.say(cid, "hello")
    with pytest.raises(ToolFailed, match="There is no role 'wizard'"):
        await by_hand(house, cid, "run1", role="wizard")
    with pytest.raises(NotFound):
        await house.cortex.agents.start(house.member.id, "run2", "turn:nobodys", TASK, "orchestrator", False)
    scripted.delay_s = 1.0
    for number in range(AT_ONCE):
        await by_hand(house, cid, f"many{number}")
    with pytest.raises(ToolFailed, match="already running"):
        await by_hand(house, cid, "one more")
    for number in range(AT_ONCE):
        await house.cortex.agents.cancel(house.admin.id, f"many{number}")


async def test_a_members_own_role_for_admins_alone_is_none_of_theirs(house: LivingHouse) -> None:
    homes = Homes(house.cortex.runtime.settings.home)
    await homes.home_of(house.member.id).write("roles/vault.md", "---\nadmin_only: true\n---\nYou keep the vault.\n")
    turn = await house.say(await house.conversation(house.member), "hello", user=house.member)
    with pytest.raises(ToolFailed, match="There is no role 'vault'"):
        await house.cortex.agents.start(house.member.id, "run1", turn, TASK, "vault", False)
    assert await house.cortex.agents.list(house.member.id, 10) == []


async def test_one_that_a_job_started_may_use_the_jobs_tools_alone(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules[1:1] = [
        rule("^Find the cheapest", Use("task_create", {"title": "milk"}, is_blind=True), FOUND),
    ]
    values = replace(NEWS, name="Offers", prompt=ASK, tools=("spawn_agent",))
    jobs = house.rows(JobsRepository)
    job = await jobs.add(None, values, datetime(2126, 11, 21, 7, tzinfo=UTC))
    await house.cortex.jobs.run_now(house.admin, job.id)
    await told(house)
    (run,) = await house.cortex.agents.list(house.admin.id, 10)
    refused = await house.until(run.id, "tool.result", name="task_create")
    assert refused.payload["state"] == "refused"
    assert await house.cortex.tasks.list(house.admin) == []
    await ended(house, (await jobs.get(job.id)).conversation_id or "", run)


async def test_another_persons_run_is_unknown(house: LivingHouse) -> None:
    cid = await house.conversation()
    run = await started(house, cid)
    assert await house.cortex.agents.list(house.member.id, 10) == []
    for act in (house.cortex.agents.view, house.cortex.agents.cancel):
        with pytest.raises(NotFound):
            await act(house.member.id, run.id)
    await ended(house, cid, run)


async def test_one_that_is_stopped_says_so_once_and_no_model_is_asked(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    await house.say(cid, "hello")
    scripted.delay_s = 1.0
    run = await by_hand(house, cid, "run1")
    assert (await house.cortex.agents.cancel(house.admin.id, run.id)).state == "cancelled"
    await ended(house, cid, run, "cancelled")
    assert (await house.cortex.agents.cancel(house.admin.id, run.id)).state == "cancelled"
    words = await word(house, cid, run)
    assert ("was stopped" in words, TASK.rstrip(".") in words) == (True, True)
    asked, scripted.delay_s = len(scripted.log), 0.0
    await house.say(cid, "hello")
    assert len(scripted.log) == asked + 1
    assert words in str(scripted.log[-1].body), "the model knows of it from the next message on"
    assert len([one for one in await house.events(cid, "message") if one.payload.get("agent")]) == 1


async def test_who_looks_elsewhere_is_not_told_of_one_that_was_stopped(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    await house.say(cid, "hello")
    scripted.delay_s = 1.0
    await by_hand(house, cid, "run1")
    await house.cortex.agents.cancel(house.admin.id, "run1")
    scripted.delay_s = 0.0
    await by_hand(house, cid, "run2")  # ends later, and is told of after all that ended before
    assert [view.row.tag for view in await told(house)] == ["agent-run2"]
    await house.until(cid, "turn.end", turn=(await house.until(cid, "message", agent="run2")).payload["turn"])


async def test_one_that_fails_says_why_once_also_after_a_restart(tmp_path: Path, scripted: ScriptedServer) -> None:
    script(scripted)
    async with living_house(tmp_path / "home") as house:
        await house.connect(scripted)
        cid = await house.conversation()
        await house.say(cid, "hello")
        scripted.fail(Fault(kind="status", status=401))
        run = await by_hand(house, cid, "run1")
        assert (await told(house))[0].row.title.startswith("Failed:")
        await ended(house, cid, run, "failed")
        words = await word(house, cid, run)
        assert ", failed: " in words
    async with living_house(tmp_path / "home") as house:
        turns = await house.rows(TurnsRepository).list(cid)
        assert [(row.channel, row.state) for row in turns] == [("chat", "done"), ("result", "done")]
        assert len(await told(house)) == 1


async def test_word_of_a_stopped_one_is_not_spliced_into_an_answer(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    await house.say(cid, "hello")
    scripted.delay_s = 0.5
    slow = await house.cortex.chat.send_message(house.admin, cid, "hello again")
    run = await by_hand(house, cid, "run1")
    await house.cortex.agents.cancel(house.admin.id, run.id)
    await house.until(cid, "turn.end", turn=slow)
    log = Transcript(await house.events(cid))
    assert [turn.state for turn in log.turns] == ["ended"] * 3
    assert [len(turn.parts) > 0 for turn in log.turns] == [True] * 3
    assert log.turns[2].agent == run.id


async def word(house: LivingHouse, cid: str, run: AgentRun) -> str:
    """What the conversation was told of a run that came to nothing."""
    message = await house.until(cid, "message", agent=run.id)
    return str((await house.until(cid, "part.end", turn=message.payload["turn"])).payload["text"])


async def test_it_ends_with_the_conversation_that_started_it(house: LivingHouse, scripted: ScriptedServer) -> None:
    cid = await house.conversation()
    await house.say(cid, "hello")
    scripted.delay_s = 1.0
    run = await by_hand(house, cid, "run1")
    await house.cortex.conversations.delete(house.admin, cid)
    assert (await house.cortex.agents.view(house.admin.id, run.id)).run.state == "cancelled"


async def test_the_result_waits_behind_an_answer_and_is_not_spliced_into_it(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules.insert(0, rule("^slowly", Use("task_list"), Use("task_list"), "At last."))
    cid = await house.conversation()
    await house.say(cid, "hello")
    scripted.delay_s = 0.2
    slow = await house.cortex.chat.send_message(house.admin, cid, "slowly, show my tasks on the list")
    run = await by_hand(house, cid, "run1")
    message = await house.until(cid, "message", agent=run.id)
    assert message.payload["is_steer"] is True
    await house.until(cid, "turn.end", turn=message.payload["turn"])
    assert await house.events(cid, "steer") == []
    ends = [event.payload["turn"] for event in await house.events(cid, "turn.end")]
    assert ends[-2:] == [slow, message.payload["turn"]]


async def test_it_spends_what_is_left_of_its_parents_budget(house: LivingHouse) -> None:
    await house.cortex.roles.change(house.admin, "orchestrator", {"budget_tokens": 100})
    cid = await house.conversation()
    await house.say(cid, "hello")
    with pytest.raises(ToolFailed, match="No budget is left"):
        await by_hand(house, cid, "run1")
    await house.cortex.roles.change(house.admin, "orchestrator", {"budget_tokens": 10_000_000})
    run = await by_hand(house, cid, "run2")
    await ended(house, cid, run)
    user = await house.cortex.accounts.user(house.admin.id)
    turns = house.rows(TurnsRepository)
    row = await turns.get(agent_turn((await turns.list(cid))[0].id, run.id))
    limits = await house.cortex.turn_contexts.budgets.limits(user, row, await house.cortex.roles.role(user, row.role))
    assert [limit.turn for limit in limits] == [row.id, (await turns.list(cid))[0].id]


async def test_people_who_look_elsewhere_are_told_once(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "hello")
    run = await by_hand(house, cid, "run1")
    (one,) = await told(house)
    assert (one.row.kind, one.row.path, one.row.is_tainted) == ("agent", f"/c/{cid}", False)
    assert one.row.title.startswith("Done:")
    await house.until(cid, "message", agent=run.id)


async def test_a_run_goes_on_after_a_restart_and_its_result_comes_once(
    tmp_path: Path, scripted: ScriptedServer
) -> None:
    script(scripted)
    scripted.delay_s = 0.5
    async with living_house(tmp_path / "home") as house:
        await house.connect(scripted)
        cid = await house.conversation()
        await house.say(cid, "hello")
        run = await by_hand(house, cid, "run1")
        await house.until(run.id, "turn.start")
    scripted.delay_s = 0.0
    async with living_house(tmp_path / "home") as house:
        assert len(await told(house)) == 1
        message = await house.until(cid, "message", agent=run.id)
        await house.until(cid, "turn.end", turn=message.payload["turn"])
        assert len([one for one in await house.events(cid, "message") if one.payload.get("agent")]) == 1


class Cut(Exception):
    """The database went away before the commit."""


async def test_nobody_is_told_of_an_end_that_was_not_committed(house: LivingHouse, scripted: ScriptedServer) -> None:
    cid = await house.conversation()
    await house.say(cid, "hello")
    asked = len(scripted.log)
    scripted.fail(Fault(kind="hang"))
    await by_hand(house, cid, "run1")
    async with asyncio.timeout(PATIENCE_S):
        while len(scripted.log) == asked:  # noqa: ASYNC110 - the scripted server runs in a thread of its own
            await asyncio.sleep(0.01)
    turns = house.rows(TurnsRepository)
    (row,) = await turns.list("run1")

    async def cut(repository: Opener, ended: TurnRow) -> str:
        assert house.cortex.turn_end.of_agent is not None
        await house.cortex.turn_end.of_agent(repository, ended)
        raise Cut

    end = replace(house.cortex.turn_end, of_agent=cut)
    with pytest.raises(Cut):
        await end.interrupt(row, "Cortex stopped.")
    await by_hand(house, cid, "run2")  # ends later, and is told of after all that ended before
    assert [view.row.title.partition(":")[0] for view in await told(house)] == ["Done"]
    await house.cortex.agents.cancel(house.admin.id, "run1")
