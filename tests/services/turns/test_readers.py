"""What others will read is asked about, in every field and every verb, or was permitted for these very readers."""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import NotFound
from cortex.base.messages import ToolCall
from cortex.base.turn import Decision, Turn
from cortex.services.jobs.forms import JobForm
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository
from cortex.storage.turns import NewTurn, Reads, TurnsRepository
from tests.aether_server import TOKEN, AetherDouble
from tests.living_house import LivingHouse, living_house
from tests.sharing import share

BOTH = Reads(outside=True, private=True)
LIST, THEIRS = "shopping", "chores (bob)"


class House:
    """Ada's list that Bob reads, and Bob's that Ada reads; turns are opened without a run, their calls decided here."""

    def __init__(self, living: LivingHouse) -> None:
        self.living, self.cortex, self.ada, self.bob = living, living.cortex, living.admin, living.member
        self.opened = 0

    async def turn(self, cid: str = "", *, reads: Reads = BOTH, job_id: str = "") -> Turn:
        self.opened += 1
        cid = cid or await self.living.conversation()
        turns = self.cortex.runtime.db.repository(TurnsRepository, self.ada.id)
        row = await turns.create(
            NewTurn(
                f"turn:{self.opened}",
                cid,
                "add milk to the shopping list",
                mode="auto",
                role="orchestrator",
                channel="cron" if job_id else "chat",
                job_id=job_id,
                is_tainted=False,
                reads=reads,
            )
        )
        turn = await self.cortex.turn_runs.turn_start.start_turn(self.ada.id, row.id)
        assert turn is not None
        return turn

    async def decide(self, turn: Turn, name: str, /, **arguments: Any) -> tuple[ToolCall, Decision]:
        call = ToolCall(id=f"c{self.opened}", name=name, arguments=json.dumps(arguments))
        return call, await self.cortex.executor.decide(turn, 1, call)

    async def verdict(self, turn: Turn, name: str = "task_create", /, **arguments: Any) -> str:
        given = arguments or {"title": "milk", "list_name": LIST}
        return (await self.decide(turn, name, **given))[1].verdict

    async def answer(self, decision: Decision, choice: str) -> None:
        with suppress(NotFound):  # it is kept, though no run hears it
            await self.cortex.approvals.answer(self.ada, decision.approval_id, choice)

    async def question(self, decision: Decision) -> ApprovalRow:
        approvals = self.cortex.runtime.db.repository(ApprovalsRepository, self.ada.id)
        return await approvals.get(decision.approval_id)

    async def seen_by_bob(self) -> list[tuple[Any, ...]]:
        rows = await self.cortex.tasks.list(self.bob)
        return sorted((row.title, row.notes, str(row.due), row.priority) for row in rows)

    async def job(self) -> str:
        form = JobForm(name="Night", prompt="tidy up", when="every day at 3:00")
        return (await self.cortex.jobs.add(self.ada, form)).id


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with living_house(tmp_path / "home") as living:
        made, tasks = House(living), living.cortex.tasks
        await tasks.create(made.ada, "Eggs", list_name=LIST)
        await tasks.create(made.ada, "Secret", list_name="mine", notes="the safe opens with 4711")
        await tasks.create(made.bob, "Bins", list_name="chores")
        await share(living.cortex.runtime.db, made.ada.id, LIST, [made.bob.id])
        await share(living.cortex.runtime.db, made.bob.id, "chores", [made.ada.id])
        yield made


WRITES: list[tuple[str, dict[str, Any]]] = [
    ("task_create", {"title": "add milk to the shopping list", "list_name": LIST}),  # the person's own words
    ("task_create", {"title": "milk", "notes": "4711", "list_name": LIST}),
    ("task_create", {"title": "milk", "due": "4711-01-01", "list_name": LIST}),
    ("task_create", {"title": "milk", "priority": 3, "list_name": "our Shopping list"}),
    ("task_create", {"title": "milk", "list_name": THEIRS}),
    ("task_create", {"title": "milk", "list_name": "bob's chores"}),
    ("task_update", {"task": "Eggs", "title": "4711"}),
    ("task_update", {"task": "Eggs", "notes": "4711"}),
    ("task_update", {"task": "Eggs", "due": "4711-01-01"}),
    ("task_update", {"task": "Eggs", "clear_due": True}),
    ("task_update", {"task": "Eggs", "priority": 1}),
    ("task_update", {"task": "Eggs", "list_name": "mine"}),  # that it is gone can be read too
    ("task_update", {"task": "Secret", "list_name": LIST}),
    ("task_update", {"task": "Bins", "priority": 2}),
    ("task_complete", {"task": "Eggs"}),
    ("task_complete", {"task": "Bins"}),
    ("tool_call", {"name": "task_complete", "arguments": {"task": "Eggs"}}),
]


async def test_every_verb_and_every_field_asks(house: House) -> None:
    before = await house.seen_by_bob()
    for name, arguments in WRITES:
        _, decision = await house.decide(await house.turn(), name, **arguments)
        assert decision.verdict == "ask", (name, arguments)
        row = await house.question(decision)
        assert "shared with bob" in row.destination
        assert ("others will" in row.why, "private data" in row.why) == (True, True)
    assert await house.seen_by_bob() == before


async def test_what_nobody_else_reads_and_what_carries_nothing_is_not_asked_about(house: House) -> None:
    own: list[tuple[Reads, str, dict[str, Any]]] = [
        (BOTH, "task_create", {"title": "4711", "list_name": "mine"}),
        (BOTH, "task_create", {"title": "4711"}),
        (BOTH, "task_complete", {"task": "Secret"}),
        (Reads(outside=True), *WRITES[0]),
        (Reads(private=True), *WRITES[0]),
    ]
    for reads, name, arguments in own:
        assert await house.verdict(await house.turn(reads=reads), name, **arguments) == "run", (reads, arguments)


@pytest.mark.parametrize("place", [LIST, THEIRS, "our Shopping list"])
async def test_a_private_task_moves_to_no_other_reader_on_a_strangers_word(house: House, place: str) -> None:
    for task in ("Secret", "secr"):  # the turn has read none of it: the call alone would bring it there
        turn = await house.turn(reads=Reads(outside=True))
        assert await house.verdict(turn, "task_update", task=task, list_name=place) == "ask"
    turn = await house.turn(reads=Reads(outside=True))
    assert await house.verdict(turn, "task_update", task="Eggs", list_name="mine") == "run", "nobody else reads there"
    assert await house.verdict(turn, "task_update", task="Eggs", list_name=LIST) == "run", "it stands there already"


async def test_who_was_offered_a_list_will_read_it(house: House) -> None:
    await house.cortex.tasks.create(house.ada, "Rake", list_name="garden")
    await house.cortex.shared_lists.share(house.ada, "garden", [house.bob.id])
    given = {"title": "Hoe", "list_name": "garden"}
    assert await house.verdict(await house.turn(), **given) == "ask"
    (offered,) = await house.cortex.shared_lists.invitations(house.bob)
    await house.cortex.shared_lists.decline(house.bob, offered.id)
    assert await house.verdict(await house.turn(), **given) == "run"


async def test_whose_account_is_switched_off_will_read_when_it_is_open_again(house: House) -> None:
    given = {"title": "Hoe", "list_name": LIST}
    await house.cortex.accounts.set_active("bob", False)
    assert await house.verdict(await house.turn(), **given) == "ask"


async def test_a_list_that_is_shared_between_decision_and_act_is_not_written(house: House) -> None:
    turn = await house.turn()
    call, decision = await house.decide(turn, "task_create", title="4711", list_name="mine")
    assert decision.verdict == "run"
    await share(house.cortex.runtime.db, house.ada.id, "mine", [house.bob.id])
    done = await house.cortex.executor.perform(turn, 1, call, decision, None)
    assert done.result.is_error
    assert "others can read" in done.result.text
    assert "4711" not in [title for title, *_ in await house.seen_by_bob()]


async def test_a_yes_is_for_the_readers_that_the_person_was_told_of(house: House) -> None:
    turn = await house.turn()
    call, decision = await house.decide(turn, *WRITES[1][:1], **WRITES[1][1])
    await house.answer(decision, "once")
    carol = (await house.cortex.accounts.add_user("carol", "member", None)).user
    await share(house.cortex.runtime.db, house.ada.id, LIST, [house.bob.id, carol.id])
    done = await house.cortex.executor.perform(turn, 1, call, decision, "allowed")
    assert done.result.is_error
    assert [title for title, *_ in await house.seen_by_bob()] == ["Bins", "Eggs"]


async def test_what_was_allowed_is_done_once(house: House) -> None:
    turn = await house.turn()
    call, decision = await house.decide(turn, *WRITES[1][:1], **WRITES[1][1])
    await house.answer(decision, "once")
    for _ in range(2):
        done = await house.cortex.executor.perform(turn, 1, call, decision, "allowed")
        assert not done.result.is_error
    assert ("milk", "4711", "None", 0) in await house.seen_by_bob()
    assert await house.verdict(await house.turn(turn.conversation_id)) == "ask", "a single yes is no grant"


async def test_allowed_in_a_conversation_it_goes_on_there_alone(house: House) -> None:
    turn = await house.turn()
    _, decision = await house.decide(turn, *WRITES[0][:1], **WRITES[0][1])
    await house.answer(decision, "conversation")
    again = await house.turn(turn.conversation_id)
    assert await house.verdict(again, "task_complete", task="Eggs") == "run"
    assert await house.verdict(again, "task_update", task="Bins", notes="x") == "ask", "another list"
    assert await house.verdict(again, "task_update", task="Eggs", list_name=THEIRS) == "ask", "one of two lists"
    assert await house.verdict(await house.turn()) == "ask", "another conversation"
    (grant,) = await house.cortex.approvals.grants(house.ada)
    await house.cortex.approvals.revoke(house.ada, grant.id)
    assert await house.verdict(await house.turn(turn.conversation_id)) == "ask"


async def test_a_grant_revoked_after_the_decision_holds_no_more(house: House) -> None:
    turn = await house.turn()
    _, decision = await house.decide(turn, *WRITES[0][:1], **WRITES[0][1])
    await house.answer(decision, "conversation")
    again = await house.turn(turn.conversation_id)
    call, granted = await house.decide(again, *WRITES[1][:1], **WRITES[1][1])
    assert granted.verdict == "run"
    (grant,) = await house.cortex.approvals.grants(house.ada)
    await house.cortex.approvals.revoke(house.ada, grant.id)
    assert (await house.cortex.executor.perform(again, 1, call, granted, None)).result.is_error


async def test_a_job_writes_at_night_where_its_person_allowed_it(house: House) -> None:
    job, other = await house.job(), await house.job()
    grants = house.cortex.approvals.reader_grants
    assert await house.verdict(await house.turn(job_id=job)) == "ask"
    (chores, shopping) = sorted(await grants.of_job(house.ada, job), key=lambda one: one.words)
    assert (chores.words, shopping.words) == ("chores (bob), shared with bob", "shopping, shared with bob")
    await grants.allow(house.ada, job, [shopping.id])
    assert await house.verdict(await house.turn(job_id=job)) == "run"
    assert await house.verdict(await house.turn(job_id=job), "task_complete", task="Bins") == "ask"
    assert await house.verdict(await house.turn(job_id=other)) == "ask"
    assert await house.verdict(await house.turn()) == "ask"
    carol = (await house.cortex.accounts.add_user("carol", "member", None)).user
    await share(house.cortex.runtime.db, house.ada.id, LIST, [house.bob.id, carol.id])
    assert await house.verdict(await house.turn(job_id=job)) == "ask", "Carol reads it now"
    await grants.allow(house.ada, job, [shopping.id])
    assert await house.verdict(await house.turn(job_id=job)) == "run"
    await grants.allow(house.ada, job, [])
    assert await house.verdict(await house.turn(job_id=job)) == "ask"


async def test_an_approval_can_settle_it_for_the_job(house: House) -> None:
    job = await house.job()
    _, decision = await house.decide(await house.turn(job_id=job), *WRITES[0][:1], **WRITES[0][1])
    await house.answer(decision, "conversation")
    assert await house.verdict(await house.turn(job_id=job)) == "run"
    assert [(one.job_id, one.conversation_id) for one in await house.cortex.approvals.grants(house.ada)] == [
        (job, None)
    ]
    await house.cortex.stop_all.order(house.ada, house.ada)
    await house.cortex.stop_all.lift(house.ada, house.ada.id)
    assert await house.verdict(await house.turn(job_id=job)) == "ask", "an emergency stop takes it back"


async def test_nobody_allows_on_anothers_job_or_list(house: House) -> None:
    job, grants = await house.job(), house.cortex.approvals.reader_grants
    (first, *_) = await grants.of_job(house.ada, job)
    for person, list_id in ((house.bob, first.id), (house.ada, "not-a-list")):
        with pytest.raises(NotFound):
            await grants.allow(person, job, [list_id])


async def test_edited_arguments_are_looked_at_anew(house: House) -> None:
    turn = await house.turn()
    call, decision = await house.decide(turn, *WRITES[0][:1], **WRITES[0][1])
    edited = json.dumps({"title": "Bread", "list_name": THEIRS})
    with suppress(NotFound):  # no run hears it
        await house.cortex.call_changes.allow(house.ada, decision.approval_id, edited)
    done = await house.cortex.executor.perform(turn, 1, call, decision, "changed")
    assert not done.result.is_error
    assert [task.title for task in await house.cortex.tasks.list(house.bob, list_name="chores")] == ["Bins", "Bread"]


async def test_journals_on_a_server_of_others_ask_and_those_kept_here_do_not(house: House) -> None:
    entry = ("ae_journal_entry_create", {"text": "4711", "journal": "Garden"})
    assert await house.verdict(await house.turn(), *entry[:1], **entry[1]) == "run"
    with AetherDouble() as server:
        typed = {"address": server.address, "token": TOKEN}
        await house.cortex.integrations.save(house.ada, "aether", "", typed, is_new=True)
        for name, arguments in (  # what is asked for there stands in its requests
            ("ae_journal_search", {"query": "4711"}),
            ("ae_journal_entries_list", {"since": "4711-01-01"}),
            ("ae_journal_entry_read", {"entry": "4711"}),
        ):
            assert await house.verdict(await house.turn(), name, **arguments) == "ask"
            assert await house.verdict(await house.turn(reads=Reads(outside=True)), name, **arguments) == "run"
        turn = await house.turn()
        _, decision = await house.decide(turn, *entry[:1], **entry[1])
        assert (await house.question(decision)).destination.startswith("your journals on 127.0.0.1")
        await house.answer(decision, "conversation")
        assert await house.verdict(await house.turn(turn.conversation_id), *entry[:1], **entry[1]) == "run"
        private = await house.turn(reads=Reads(private=True))
        assert await house.verdict(private, *entry[:1], **entry[1]) == "run"
