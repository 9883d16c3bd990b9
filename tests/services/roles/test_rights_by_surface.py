"""The one rule of rights on the surfaces beside the gate: calls by hand, plans, undo, approvals, jobs, agents.

`test_rights.py` has the gate. Here each surface is asked about every tool, for both ranks and several roles.
"""

import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest

from cortex.base.errors import CortexError, NotAllowed, NotFound, ToolFailed, UserError
from cortex.base.messages import ToolCall
from cortex.base.role import Channel, ToolMode
from cortex.base.turn import Turn, agent_turn
from cortex.base.user import User
from cortex.ports.loop import UndoOffer
from cortex.selection.types import META
from cortex.storage.approvals import ApprovalsRepository
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.home import Homes
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from cortex.storage.undo import UndosRepository
from cortex.toolkit.grants import CHANNEL_LACKS
from tests.living_house import LivingHouse, living_house
from tests.values_of_tools import called

RANKS = pytest.mark.parametrize("rank", ["admin", "member"])
ALL = "everything"  # a role of the person's own that grants all there is
ROLES = ("orchestrator", "admin", "coder", "chat", ALL, "nobody_wrote_it")
WORDS = ("run the shell command ls and restart cortex", "post it to http://a.example/ and mail it to bo@a.example")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        for user in (opened.admin, opened.member):
            home = Homes(tmp_path / "home").home_of(user.id)
            await home.write(f"roles/{ALL}.md", "---\ntools: [all]\n---\nYou may do all.\n")
        yield opened


async def opened(house: LivingHouse, user: User, role: str, *, channel: Channel = "chat", id: str = "turn:1") -> Turn:
    """A turn that runs in this role."""
    turns, cid = house.cortex.runtime.db.repository(TurnsRepository, user.id), await house.conversation(user)
    row = await turns.create(
        NewTurn(id, cid, "x", mode="auto", role=role, channel=channel, is_tainted=False, reads=NOTHING_READ)
    )
    turn = await house.cortex.turn_runs.turn_start.start_turn(user.id, row.id)
    assert turn is not None
    return turn


async def in_chats(house: LivingHouse, user: User) -> frozenset[str]:
    """What the account may use by any role."""
    found = [await house.cortex.tools.permitted(user, role) for role in await house.cortex.roles.names(user)]
    return frozenset().union(*found)


@RANKS
async def test_by_hand_an_admin_calls_what_the_role_permits_and_a_member_nothing(house: LivingHouse, rank: str) -> None:
    user, tools = getattr(house, rank), house.cortex.runtime.registry.tools
    for role in ROLES:
        permitted = await house.cortex.tools.permitted(user, role)
        known: set[str] = set()
        for name in tools:
            with pytest.raises(CortexError) as refused:
                await house.cortex.call_trials.start(user, name, role, '{"no_tool_has_this": 1}')
            known |= {name} if "Wrong arguments" in refused.value.message else set()
        wanted = {name for name in permitted if tools[name].category != META}
        assert known == (wanted if user.is_admin else set()), role


@RANKS
@pytest.mark.parametrize("mode", get_args(ToolMode))
async def test_a_plan_sends_and_the_composer_offers_what_the_rule_permits(
    house: LivingHouse, rank: str, mode: ToolMode
) -> None:
    user, cortex = getattr(house, rank), house.cortex
    for role in ROLES:
        permitted = await cortex.tools.permitted(user, role, mode=mode)
        for words in WORDS:
            shown = await cortex.planning.preview(user, None, words, mode, role=role)
            explained = await cortex.tools.explain(user, role, words, mode=mode)
            for receipt in (shown, explained):
                assert {tool["name"] for tool in receipt["sent"]} <= permitted
        if mode == "all":
            assert {tool["name"] for tool in shown["sent"]} == {
                name for name in permitted if cortex.runtime.registry.tools[name].category != META
            }
        offered = (await cortex.composer.composer(user, role=role)).examples
        wants = {
            words.casefold(): names
            for one in cortex.runtime.registry.categories.values()
            for words, names in one.examples
        }
        in_chat = await cortex.tools.permitted(user, role)
        assert all(in_chat >= {*wants[words.casefold()]} for words in offered)


@pytest.mark.parametrize(("rank", "role"), [("member", "admin"), ("member", "nobody_wrote_it"), ("admin", "gone")])
async def test_no_turn_begins_in_a_role_that_is_not_there_to_take(house: LivingHouse, rank: str, role: str) -> None:
    user = getattr(house, rank)
    with pytest.raises(UserError, match=f"There is no role '{role}' any more. Choose another one: "):
        await opened(house, user, role)
    assert await house.cortex.tools.permitted(user, role) == frozenset()


@pytest.mark.parametrize(("rank", "role"), [("member", "coder"), ("admin", "coder")])
async def test_the_gate_knows_what_the_rule_permits_in_whatever_role_the_composer_sends(
    house: LivingHouse, rank: str, role: str
) -> None:
    user, cortex = getattr(house, rank), house.cortex
    turn, known = await opened(house, user, role), set()
    for name in cortex.runtime.registry.tools:
        decision = await cortex.executor.decide(turn, 1, ToolCall(id=name, name=name, arguments='{"not": 1}'))
        assert decision.result is not None
        known |= set() if decision.result.text.startswith("There is no tool named") else {name}
    assert known == await cortex.tools.permitted(user, role)


@RANKS
async def test_what_may_be_taken_back_is_what_may_be_called(house: LivingHouse, rank: str) -> None:
    user, cortex = getattr(house, rank), house.cortex
    db, registry = cortex.runtime.db, cortex.runtime.registry
    for number, role in enumerate(("orchestrator", "coder")):
        turn = await opened(house, user, role, id=f"turn:{number}")
        permitted, known = await cortex.tools.permitted(user, role), set()
        undoable = {name for name, tool in registry.tools.items() if registry.categories[tool.category].undo}
        for name in undoable:
            call = CallRow(
                id=f"{number} {name}",
                turn_id=turn.id,
                conversation_id=turn.conversation_id,
                round=1,
                name=name,
                arguments="{}",
                arguments_hash="",
                risk="low",
            )
            await db.repository(CallsRepository, user.id).decided(call)
            back = UndoOffer(
                category=registry.tools[name].category,
                target="not there",
                before=None,
                expected="0",
                label="Take it back",
            )
            offer = await db.repository(UndosRepository, user.id).add(call.id, back, _later(house))
            with pytest.raises(CortexError) as refused:  # nothing is there to be taken back
                await cortex.undo.undo(user, offer.id)
            known |= set() if isinstance(refused.value, NotAllowed) else {name}
        assert known == permitted & undoable, role


async def test_nobody_answers_for_another_person(house: LivingHouse) -> None:
    cortex = house.cortex
    for asked, other in ((house.member, house.admin), (house.admin, house.member)):
        turn = await opened(house, asked, "orchestrator", id=f"turn:{asked.name}")
        call = ToolCall(id="w", name="cron_add", arguments=json.dumps({"prompt": "x", "when": "every day at 9"}))
        decision = await cortex.executor.decide(turn, 1, call)
        assert decision.verdict == "ask"
        for choice in ("once", "conversation", "deny"):
            with pytest.raises(NotFound):
                await cortex.approvals.answer(other, decision.approval_id, choice)
        assert decision.approval_id not in {row.id for row in await cortex.approvals.pending(other)}
        (waiting,) = await cortex.approvals.pending(asked)
        assert (waiting.id, waiting.state) == (decision.approval_id, "asked")


async def test_no_yes_outlives_the_rank_that_it_was_given_with(house: LivingHouse) -> None:
    cortex = house.cortex
    lost = await cortex.tools.permitted(house.admin, ALL) - await cortex.tools.permitted(house.member, ALL)
    asked = []
    for name in sorted(lost):
        # A turn each: one without a run is ended by the supervisor after some seconds.
        turn, call = (
            await opened(house, house.admin, ALL, id=f"turn:{name}"),
            called(cortex.runtime.registry.tools[name]),
        )
        decision = await cortex.executor.decide(turn, 1, call)
        if decision.verdict == "ask":
            answers = cortex.runtime.db.repository(ApprovalsRepository, house.admin.id)
            await answers.answer(decision.approval_id, "allowed", house.admin.id)
            asked.append((turn, call, decision))
    assert asked
    await cortex.accounts.set_rank("bob", "admin")
    await cortex.accounts.set_rank("ada", "member")
    for turn, call, decision in asked:
        made = await cortex.executor.perform(turn, 1, call, decision, "allowed")
        assert "no tool" in made.result.text


@RANKS
async def test_a_jobs_form_offers_and_counts_what_a_chat_could_have(house: LivingHouse, rank: str) -> None:
    user, cortex = getattr(house, rank), house.cortex
    could, tools = await in_chats(house, user), cortex.runtime.registry.tools
    assert set((await cortex.jobs.known(user)).tools) <= could
    for channel in get_args(Channel):
        for word in ("all", *(tools if channel == "cron" else ())):
            names = set((await cortex.job_tools.carried(user, (word,), channel)).names)
            meant = {name for name, tool in tools.items() if word in ("all", name, tool.category)}
            wanted = {name for name in could & meant - CHANNEL_LACKS[channel] if tools[name].category != META}
            assert names == wanted, (channel, word)


@RANKS
async def test_an_agent_has_what_a_chat_in_its_role_could_have(house: LivingHouse, rank: str) -> None:
    user, cortex = getattr(house, rank), house.cortex
    could, parent = await in_chats(house, user), await opened(house, user, "orchestrator")
    turns, refused = cortex.runtime.db.repository(TurnsRepository, user.id), set()
    for role in ROLES:
        try:
            run = await cortex.agents.start(user.id, f"agent-{role}", parent.id, "x", role, False)
        except ToolFailed:
            refused.add(role)
            continue
        row = await turns.get(agent_turn(parent.id, run.id))
        has = await cortex.tools.permitted(user, row.role, channel=row.channel, mode=row.mode, job_id=row.job_id)
        assert has == (await cortex.tools.permitted(user, role, mode=row.mode)) - CHANNEL_LACKS["agent"]
        assert has <= could
        await cortex.agents.cancel(user.id, run.id)
    assert refused == {"nobody_wrote_it"} | (set() if user.is_admin else {"admin"})


def _later(house: LivingHouse) -> datetime:
    return house.cortex.runtime.clock() + timedelta(hours=1)
