"""No standing yes counts once a turn has read words from outside: each kind of grant, each way to the mark."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.base.background import background_tasks
from cortex.base.errors import UserError
from cortex.base.messages import ToolCall
from cortex.base.role import Channel
from cortex.base.turn import Decision, Turn
from cortex.services.turns.approval_log import scope_of
from cortex.storage.approvals import ApprovalsRepository, GrantsRepository
from cortex.storage.home import Homes
from cortex.storage.turns import NOTHING_READ, NewTurn, Reads, TurnsRepository
from cortex.storage.versions import VersionsRepository
from tests.living_house import LivingHouse, living_house
from tests.values_of_tools import called

OUTSIDE = Reads(outside=True)
ROLE = "everything"


@dataclass
class Talk:
    """A conversation whose turns are opened without a run: their calls are decided by the tests."""

    house: LivingHouse
    cid: str
    opened: int = 0

    async def turn(
        self, *, is_tainted: bool = False, reads: Reads = NOTHING_READ, channel: Channel = "chat", job_id: str = ""
    ) -> Turn:
        self.opened += 1
        row = await self.turns.create(
            NewTurn(
                f"turn:{self.cid}:{self.opened}",
                self.cid,
                "x",
                mode="auto",
                role=ROLE,
                channel=channel,
                job_id=job_id,
                is_tainted=is_tainted,
                reads=reads,
            )
        )
        turn = await self.house.cortex.turn_runs.turn_start.start_turn(self.house.admin.id, row.id)
        assert turn is not None
        return turn

    @property
    def turns(self) -> TurnsRepository:
        return self.house.cortex.runtime.db.repository(TurnsRepository, self.house.admin.id)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        home = Homes(tmp_path / "home").home_of(opened.admin.id)
        await home.write(f"roles/{ROLE}.md", "---\ntools: [all]\n---\nYou may do all.\n")
        async with background_tasks(opened.cortex.restarts.until_due):  # somebody serves it
            yield opened


async def own_call(talk: Talk) -> Turn:
    turn = await talk.turn()
    await talk.turns.add_reads(turn.id, OUTSIDE)
    return turn


async def earlier_turn(talk: Talk) -> Turn:
    await own_call(talk)
    return await talk.turn()


async def turn_that_was_set_aside(talk: Talk) -> Turn:
    before = await own_call(talk)
    await talk.turns.move(before.id, "done")
    versions = talk.house.cortex.runtime.db.repository(VersionsRepository, talk.house.admin.id)
    await versions.drop_from(talk.cid, before.ordinal)
    return await talk.turn()


async def words_of_others(talk: Talk) -> Turn:
    return await talk.turn(is_tainted=True)


async def agents_result(talk: Talk) -> Turn:
    return await talk.turn(channel="result", reads=OUTSIDE)


async def job_that_a_marked_turn_made(talk: Talk) -> Turn:
    return await talk.turn(channel="cron", is_tainted=True, reads=OUTSIDE)


async def unmarked(talk: Talk) -> Turn:
    return await talk.turn()


WAYS: tuple[Callable[[Talk], Awaitable[Turn]], ...] = (
    own_call,
    earlier_turn,
    turn_that_was_set_aside,
    words_of_others,
    agents_result,
    job_that_a_marked_turn_made,
)


async def decided(talk: Talk, call: ToolCall, way: Callable[[Talk], Awaitable[Turn]] = unmarked) -> Decision:
    """What the gate says in a turn of its own: one without a run is ended by the supervisor after some seconds."""
    return await talk.house.cortex.executor.decide(await way(talk), 1, call)


async def granted(talk: Talk, *, is_everywhere: bool) -> list[ToolCall]:
    """A call of each tool that always asks, with a grant, for its place or for itself, that holds."""
    cortex, person, found = talk.house.cortex, talk.house.admin.id, []
    for name in sorted(await cortex.tools.permitted(talk.house.admin, ROLE)):
        tool = cortex.runtime.registry.tools[name]
        if tool.risk != "high" and not tool.confirm:
            continue
        decision = await decided(talk, call := called(tool))
        row = await cortex.runtime.db.repository(ApprovalsRepository, person).get(decision.approval_id)
        scope = scope_of(row.destination, row.detail, row.arguments_hash)
        where, until = None if is_everywhere else talk.cid, cortex.runtime.clock() + timedelta(hours=1)
        await cortex.runtime.db.repository(GrantsRepository, person).add(name, scope, where, until)
        assert (await decided(talk, call)).verdict == "run", name
        found.append(call)
    return found


@pytest.mark.parametrize(
    ("way", "is_everywhere"),
    [
        *((way, False) for way in WAYS[:4]),
        *(pytest.param(way, False, marks=pytest.mark.full) for way in WAYS[4:]),
        (words_of_others, True),
        pytest.param(own_call, True, marks=pytest.mark.full),
    ],
    ids=lambda value: "everywhere" if value is True else "" if value is False else value.__name__,
)
async def test_no_grant_of_any_kind_holds_in_a_marked_turn(
    house: LivingHouse, way: Callable[[Talk], Awaitable[Turn]], is_everywhere: bool
) -> None:
    talk = Talk(house, await house.conversation(role=ROLE))
    calls = await granted(talk, is_everywhere=is_everywhere)
    places = [grant.destination for grant in await house.cortex.approvals.grants(house.admin)]
    assert {" #" in place for place in places} == {True, False}, "grants for exactly one call, and for a place"
    for call in calls:
        decision = await decided(talk, call, way)
        assert decision.verdict != "run", call.name
        if decision.verdict == "ask":
            with pytest.raises(UserError, match="each call needs approval"):
                await house.cortex.approvals.answer(house.admin, decision.approval_id, "conversation")


async def test_a_branch_takes_no_grant_with_it(house: LivingHouse) -> None:
    talk = Talk(house, await house.conversation(role=ROLE))
    calls = await granted(talk, is_everywhere=False)
    for row in await talk.turns.list(talk.cid):
        await talk.turns.move(row.id, "done")
    cid = await house.cortex.conversations.branch(house.admin, talk.cid, f"turn:{talk.cid}:1")
    branch = Talk(house, cid)
    assert {(await decided(branch, call)).verdict for call in calls} == {"ask"}
