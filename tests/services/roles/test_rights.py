"""One rule says what an account may use: in a chat, in a job and in whatever a job starts."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base.errors import UserError
from cortex.base.messages import ToolCall
from cortex.base.role import Channel
from cortex.base.user import User
from cortex.services.jobs.forms import JobForm
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from cortex.toolkit.grants import CHANNEL_LACKS
from tests.living_house import LivingHouse, living_house
from tests.plain_world import PLAIN_TURN
from tests.still_clock import StillClock
from tests.storage.made_time import NEWS

CALL = JobForm(name="Post", kind="call", tool="http_post", arguments='{"url": "http://a.example/"}', when="@daily")
DAILY = replace(NEWS, name="Post")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home", clock=StillClock(datetime(2026, 11, 20, 12, tzinfo=UTC))) as opened:
        yield opened


async def in_chats(house: LivingHouse, user: User) -> frozenset[str]:
    """What the account may use by any role."""
    roles = await house.cortex.roles.names(user)
    found = [await house.cortex.tools.permitted(user, role) for role in roles]
    return frozenset().union(*found)


async def kept_job(house: LivingHouse, user: User, **values: object) -> JobRow:
    """A job as it stands in the table, however it came there."""
    jobs = house.cortex.runtime.db.repository(JobsRepository, user.id)
    return await jobs.add(None, replace(DAILY, **values), datetime(2026, 11, 21, 7, tzinfo=UTC))


async def test_a_member_is_offered_no_tool_for_a_job_that_a_chat_would_not_have(house: LivingHouse) -> None:
    assert "http_post" not in await in_chats(house, house.member)
    with pytest.raises(UserError, match="no tool 'http_post' here that you can use") as refused:
        await house.cortex.jobs.add(house.member, CALL)
    assert refused.value.field == "tool"
    assert (await house.cortex.jobs.add(house.admin, CALL)).tool == "http_post"


@pytest.mark.parametrize("words", [("all",), ("web_post",), ("http_post",), ("http_post", "file", "web", "system")])
@pytest.mark.parametrize("channel", ["cron", "maker", "agent", "result"])
async def test_a_jobs_own_list_never_goes_beyond_what_its_owner_could_have_in_a_chat(
    house: LivingHouse, words: tuple[str, ...], channel: Channel
) -> None:
    for user in (house.admin, house.member):
        job = await kept_job(house, user, tools=words)
        found = await house.cortex.tools.permitted(user, "orchestrator", channel=channel, job_id=job.id)
        assert found <= await in_chats(house, user)
        assert ("http_post" in found) is user.is_admin


@pytest.mark.parametrize("channel", ["agent", "result"])
@pytest.mark.parametrize(("may_make", "lacks"), [(False, "cron"), (True, "maker")], ids=["cron", "maker"])
async def test_what_a_job_starts_lacks_what_the_job_lacks(
    house: LivingHouse, channel: Channel, may_make: bool, lacks: Channel
) -> None:
    for tools in (None, ("all",)):
        job = await kept_job(house, house.admin, tools=tools, may_make_jobs=may_make)
        found = await house.cortex.tools.permitted(house.admin, "admin", channel=channel, job_id=job.id)
        assert found
        assert not found & CHANNEL_LACKS[lacks]
        assert ("cron_add" in found) is may_make


async def test_a_call_that_its_owner_may_not_make_is_to_the_job_an_unknown_tool(house: LivingHouse) -> None:
    job = await kept_job(
        house,
        house.member,
        kind="call",
        prompt="",
        tool="http_post",
        arguments={"url": "http://a.example/"},
        tools=("http_post",),
    )
    await house.cortex.jobs.run_now(house.member, job.id)
    notices, seen = house.cortex.notices, -1
    while not (page := await notices.page(house.member.id)).notices:
        seen = await notices.changed(house.member.id, seen, 30)
    assert "'http_post'" in page.notices[0].row.text


SURFACES = list(product(("admin", "member"), ("chat", "cron", "maker", "agent", "result"), (False, True)))
IN_EVERY_RUN = (
    ("member", "chat", False),
    ("member", "cron", True),
    ("admin", "maker", True),
    ("member", "agent", True),
)


@pytest.mark.parametrize(
    ("rank", "channel", "has_job"),
    [pytest.param(*one, marks=[pytest.mark.full] * (one not in IN_EVERY_RUN)) for one in SURFACES],
)
async def test_on_every_surface_the_gate_knows_the_tools_that_the_one_rule_permits_and_no_other(
    house: LivingHouse, channel: Channel, rank: str, has_job: bool
) -> None:
    user, cortex = getattr(house, rank), house.cortex
    job_id = (await kept_job(house, user, tools=("all",))).id if has_job else ""
    turns, cid = cortex.runtime.db.repository(TurnsRepository, user.id), await house.conversation(user)
    row = await turns.create(NewTurn("turn:1", cid, "x", channel=channel, job_id=job_id, **PLAIN_TURN))
    turn = await cortex.turn_runs.turn_start.start_turn(user.id, row.id)
    assert turn is not None
    permitted = await cortex.tools.permitted(user, "orchestrator", channel=channel, job_id=job_id)
    registry = cortex.runtime.registry
    known: set[str] = set()
    for name in registry.tools:
        call = ToolCall(id=name, name=name, arguments='{"no_tool_has_this": 1}')
        decision = await cortex.executor.decide(turn, 1, call)
        assert decision.result is not None, "wrong arguments never run"
        known |= set() if decision.result.text.startswith("There is no tool named") else {name}
    assert known == permitted
    assert "task_create" in known
    assert user.is_admin or not [name for name in known if registry.tools[name].admin]
    assert known <= await in_chats(house, user)
    found = (await cortex.tools.discover(user, "orchestrator", "add a task", channel=channel, job_id=job_id)).names
    assert set(found) <= known
