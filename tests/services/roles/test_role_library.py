"""A person's own roles: made, copied, deleted and brought back; none of them grants more than its person has."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cortex.base.errors import Conflict, CortexError, NotFound, UserError
from cortex.base.role import Role
from cortex.base.user import User
from cortex.services.roles.files import fields_of, written
from cortex.services.workshop.role_library import RoleLibrary
from cortex.storage.audit import AuditRepository
from cortex.storage.home import Home, Homes
from cortex.storage.integrations import IntegrationRow, IntegrationsRepository
from cortex.storage.jobs import JobsRepository
from cortex.storage.turns import TurnsRepository
from tests.living_house import LivingHouse
from tests.patience import PATIENCE_S
from tests.storage.made_time import NEWS

WORDS = st.lists(st.sampled_from(["web", "tasks", "file_read", "ha"]), unique=True).map(tuple)


def home_of(house: LivingHouse, user: User) -> Home:
    return Homes(house.cortex.runtime.settings.home).home_of(user.id)


def library(house: LivingHouse) -> RoleLibrary:
    return house.cortex.role_library


async def failure(house: LivingHouse, cid: str, turn_id: str) -> str:
    await house.until(cid, "turn.end", turn=turn_id, state="failed")
    return (await house.rows(TurnsRepository).get(turn_id)).error


@given(
    role=st.builds(
        Role,
        name=st.just("mine"),
        prompt=st.sampled_from(["", "Hello.", "Be brief.\n\n---\nAnd kind: yes."]),
        tools=st.just(("all",)) | WORDS,
        admin_tools=WORDS,
        core=WORDS,
        mode=st.sampled_from(["auto", "chat", "all"]),
        models=st.lists(
            st.sampled_from(["fast one", "gpt:4.1", "a/b", "a, b", "x: #y", "yes", "it's [1]", '"q"', "C # code"]),
            unique=True,
        ).map(tuple),
        max_rounds=st.none() | st.integers(1, 25),
        budget_tokens=st.none() | st.integers(1, 9_000),
        budget_usd=st.none() | st.sampled_from([0.5, 2.0]),
        tool_budget_tokens=st.none() | st.integers(1, 9_000),
        is_admin_only=st.booleans(),
    )
)
def test_a_role_that_is_written_reads_as_the_same_role(role: Role) -> None:
    assert Role(**{"name": "mine", "prompt": "", **fields_of(written(role), "roles/mine.md")}) == role


async def test_a_copy_takes_words_tools_and_settings(house: LivingHouse) -> None:
    cortex, me = house.cortex, house.admin
    await cortex.models.set_chain(me, ["offline"], "research")
    await cortex.roles.change(me, "research", {"max_rounds": 4, "tools": ["tasks"]})
    assert await library(house).make(me, " Garden  Helper ", "", "research") == "garden_helper"
    before = (await cortex.roles.in_force(me, "research")).role
    assert (await cortex.roles.role(me, "garden_helper")) == replace(before, name="garden_helper")
    assert (await cortex.models.registry(me)).roles["garden_helper"] == ("offline",)
    await library(house).make(me, "other", "Speak of plants.", "research")
    assert (await cortex.roles.role(me, "other")).prompt == "Speak of plants."
    found = await cortex.runtime.db.repository(AuditRepository, me.id).list()
    assert [row.subject for row in found if row.action == "role.made"] == ["other", "garden_helper"]


async def test_a_role_that_begins_as_none_has_no_tools(house: LivingHouse) -> None:
    await library(house).make(house.member, "poet", "Answer in verse.", "")
    role = await house.cortex.roles.role(house.member, "poet")
    assert (role.tools, role.admin_tools, role.prompt) == ((), (), "Answer in verse.")


@pytest.mark.parametrize(
    ("name", "prompt", "source", "field"),
    [
        ("", "Hi", "", "name"),
        ("../up", "Hi", "", "name"),
        ("1st", "Hi", "", "name"),
        ("grün", "Hi", "", "name"),
        ("x" * 41, "Hi", "", "name"),
        ("new", "Hi", "", "name"),
        ("orchestrator", "Hi", "", "name"),
        ("admin", "Hi", "", "name"),
        ("poet", "  ", "", "prompt"),
        ("poet", "x" * 12_001, "", "prompt"),
        ("poet", "Hi", "nowhere", "role"),
        ("poet", "Hi", "admin", "role"),
    ],
)
async def test_what_cannot_be_a_role_names_its_field(
    house: LivingHouse, name: str, prompt: str, source: str, field: str
) -> None:
    with pytest.raises(UserError) as refused:
        await library(house).make(house.member, name, prompt, source)
    assert refused.value.field == field
    assert await house.cortex.roles.own(house.member) == ()


async def test_nobody_makes_a_role_that_grants_more_than_they_have(house: LivingHouse) -> None:
    cortex, bob = house.cortex, house.member
    could = await cortex.tools.grantable(bob)
    for number, source in enumerate(["", *await cortex.roles.names(bob)]):
        made = await library(house).make(bob, f"mine_{number}", "Hi", source)
        assert await cortex.tools.permitted(bob, made) <= could | {"tools_discover", "tool_call"}
    assert await cortex.tools.grantable(bob) == could


async def test_a_name_that_opens_an_outside_system_is_an_admins_to_give(house: LivingHouse) -> None:
    row = IntegrationRow(kind="home_assistant", name="", settings={}, roles=("butler",))
    async with house.cortex.runtime.db.transaction() as repository:
        await repository(IntegrationsRepository).save(row, house.admin.id)
    with pytest.raises(UserError, match="reserved for an admin role"):
        await library(house).make(house.member, "butler", "Serve.", "")
    assert await library(house).make(house.admin, "butler", "Serve.", "") == "butler"


async def test_a_deleted_role_says_what_used_it_and_lets_it_go_on_elsewhere(house: LivingHouse) -> None:
    cortex, me = house.cortex, house.admin
    await library(house).make(me, "poet", "Answer in verse.", "chat")
    await cortex.models.set_chain(me, ["offline"], "poet")
    await cortex.roles.change(me, "poet", {"max_rounds": 3})
    await cortex.preferences.change(me, {"role": "poet"}, roles=("poet",))
    cid, other = await house.conversation(role="poet"), await house.conversation()
    job = await cortex.runtime.db.repository(JobsRepository, me.id).add(None, replace(NEWS, role="poet"), None)
    use = await library(house).use(me, "poet")
    assert ([one.id for one in use.conversations], [one.id for one in use.jobs]) == ([cid], [job.id])
    assert use.begins_chats
    await library(house).remove(me, "poet", "research")
    assert "poet" not in await cortex.roles.names(me)
    assert "poet" not in (await cortex.models.registry(me)).roles
    assert [(await cortex.conversations.get(me, id)).role for id in (cid, other)] == ["research", "orchestrator"]
    assert (await cortex.runtime.db.repository(JobsRepository, me.id).get(job.id)).role == "research"
    assert (await cortex.preferences.get(me)).role == "research"
    await library(house).give(me, cid, "coder")  # since then chosen by hand: stays
    await library(house).restore(me, "poet")
    assert (await cortex.conversations.get(me, cid)).role == "coder"
    assert (await cortex.runtime.db.repository(JobsRepository, me.id).get(job.id)).role == "poet"
    assert (await cortex.preferences.get(me)).role == "poet"
    assert (await cortex.models.registry(me)).roles["poet"] == ("offline",)
    assert (await cortex.roles.role(me, "poet")).max_rounds == 3
    assert await library(house).removed(me) == []


async def test_a_conversation_whose_role_is_gone_stays_readable_and_says_so_in_words(house: LivingHouse) -> None:
    cortex, me = house.cortex, house.admin
    await library(house).make(me, "poet", "Answer in verse.", "chat")
    cid = await house.conversation(role="poet")
    await house.say(cid, "hello")
    said = len(await house.events(cid))
    await library(house).remove(me, "poet")
    assert len(await house.events(cid)) == said
    assert (await cortex.composer.composer(me, await cortex.conversations.get(me, cid))).is_role_missing
    turn_id = await cortex.chat.send_message(me, cid, "add milk to my shopping list")
    told = await failure(house, cid, turn_id)
    assert ("'poet'" in told, "admin, chat, coder" in told) == (True, True)
    with pytest.raises(UserError, match="no role 'wizard'"):
        await library(house).give(me, cid, "wizard")
    await library(house).give(me, cid, "chat")
    again = await cortex.chat.again(me, turn_id)
    await house.until(cid, "turn.end", turn=again, state="done")


async def test_a_job_whose_role_is_gone_fails_in_words(house: LivingHouse) -> None:
    cortex, me = house.cortex, house.admin
    job = await cortex.runtime.db.repository(JobsRepository, me.id).add(None, replace(NEWS, role="gone"), None)
    await cortex.jobs.run_now(me, job.id)
    async with asyncio.timeout(PATIENCE_S):
        while not (row := await cortex.runtime.db.repository(JobsRepository, me.id).get(job.id)).conversation_id:  # noqa: ASYNC110 - nobody tells a test
            await asyncio.sleep(0.05)
    end = await house.until(row.conversation_id, "error")
    assert "'gone'" in end.payload["text"]


async def test_a_deletion_that_was_cut_loses_nothing(house: LivingHouse) -> None:
    cortex, me = house.cortex, house.admin
    await library(house).make(me, "poet", "Answer in verse.", "chat")
    cid = await house.conversation(role="poet")
    text = (await home_of(house, me).read("roles/poet.md")).text
    await library(house).remove(me, "poet", "chat")
    await home_of(house, me).write("roles/poet.md", text)  # as if it had been cut ahead of its last step
    await library(house).remove(me, "poet", "chat")
    await library(house).restore(me, "poet")
    assert (await cortex.conversations.get(me, cid)).role == "poet"


async def test_what_ships_stays_and_what_is_anothers_is_unknown(house: LivingHouse) -> None:
    cortex, me = house.cortex, house.admin
    await library(house).make(house.member, "poet", "Answer in verse.", "chat")
    for name in ("orchestrator", "poet", "../poet"):
        with pytest.raises(NotFound):
            await library(house).remove(me, name)
    with pytest.raises(NotFound):
        await library(house).restore(me, "poet")
    await home_of(house, me).write("roles/chat.md", "---\nmax_rounds: 2\n---\nMine.\n")
    cid = await house.conversation(role="chat")
    await library(house).remove(me, "chat")
    assert (await cortex.roles.role(me, "chat")).max_rounds is None
    assert (await cortex.conversations.get(me, cid)).role == "chat"


async def test_a_role_comes_back_only_where_its_name_is_free(house: LivingHouse) -> None:
    me = house.admin
    await library(house).make(me, "poet", "Answer in verse.", "chat")
    await library(house).remove(me, "poet")
    await library(house).make(me, "poet", "Answer in prose.", "chat")
    with pytest.raises(Conflict, match="There is a role named 'poet' again"):
        await library(house).restore(me, "poet")
    with pytest.raises(UserError, match="no role 'poet' to continue in"):
        await library(house).remove(me, "poet", "poet")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tools: [webb, tasks]", "roles/mine.md: 'tools' names 'webb', which is no tool and no category. Did you mean"),
        ("core: [xyzzy]", "roles/mine.md: 'core' names 'xyzzy', which is no tool and no category."),
        ("models: [gone]", "roles/mine.md: 'models' names 'gone', which is none of your models."),
    ],
)
async def test_a_name_that_names_nothing_is_said_on_the_page_and_by_the_doctor(
    house: LivingHouse, text: str, says: str
) -> None:
    cortex, me = house.cortex, house.admin
    await home_of(house, me).write("roles/mine.md", f"---\n{text}\n---\nHi\n")
    assert [one for one in (await cortex.role_defaults.get(me, "mine")).unknown if one.startswith(says)]
    findings = {one.text: one.state for one in await cortex.doctor.examine(of=me) if one.name == "roles of ada"}
    assert [state for told, state in findings.items() if told.startswith(says)] == ["warn"]


async def test_a_role_that_is_not_there_is_said_where_it_is_named(house: LivingHouse) -> None:
    cortex, me = house.cortex, house.admin
    await cortex.runtime.db.repository(JobsRepository, me.id).add(None, replace(NEWS, role="gone"), None)
    await cortex.preferences.change(me, {"role": "gone"}, roles=("gone",))
    (told,) = [one.text for one in await cortex.doctor.examine(of=me) if one.name == "roles of ada"]
    assert all(part in told for part in ("'gone'", "job 'News'", "new chats"))


@pytest.mark.parametrize(
    ("keys", "kind", "origin"),
    [
        ("tools: [tasks]", "list", "yours"),
        ("tools: false", "none", "yours"),
        ("tools: all", "all", "yours"),
        ("mode: chat", "none", "default"),
    ],
)
async def test_a_role_says_whether_its_tools_are_a_list_or_none(
    house: LivingHouse, keys: str, kind: str, origin: str
) -> None:
    await home_of(house, house.admin).write("roles/mine.md", f"---\n{keys}\n---\nHi\n")
    found = await house.cortex.role_defaults.get(house.admin, "mine")
    assert (found.tools_kind, found.tools_from) == (kind, origin)


async def test_a_role_says_that_its_tools_are_the_shipped_default(house: LivingHouse) -> None:
    found: dict[str, Any] = {}
    for name in ("research", "chat"):
        one = await house.cortex.role_defaults.get(house.member, name)
        found[name] = (one.tools_kind, one.tools_from, one.is_own, one.ships)
    assert found == {"research": ("shipped", "shipped", False, True), "chat": ("none", "shipped", False, True)}


async def test_a_file_that_cannot_be_read_is_no_reason_to_lose_it(house: LivingHouse) -> None:
    me = house.admin
    await home_of(house, me).write("roles/mine.md", "---\ntools: [tasks\n---\nHi\n")
    with pytest.raises(UserError):
        await library(house).make(me, "copy", "", "mine")
    await library(house).remove(me, "mine")
    await library(house).restore(me, "mine")
    with pytest.raises(CortexError, match="must end with"):
        await house.cortex.roles.role(me, "mine")
