"""A message that wants what cannot be used here: a note for the model, a line for the person whose answer needed it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.lacking import PERHAPS
from cortex.base.user import User
from cortex.services.turns.planning import DraftSettings
from tests.lamps import LampCortex
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import Fault, ScriptedServer, Use, rule

WISH = "turn off the kitchen lights"
TITLE = "Lamp server"
SENTENCE = "Lamp server is not set up. An admin can do it under Integrations."
ASK = "Lamp server is not set up here: ask whoever runs Cortex."
PAGE = "/admin/integrations#lamps"
NOTE = "(Lamp server is not set up here. If you cannot answer without it, name it; else leave it out.)"
TYPED = {"address": "http://lamps.lan", "token": "lamp-token"}
MAYBE = ("is the house empty", "are the kids home yet", "is it dark in the hall", "anyone in?")  # neither sure nor not
NEEDED = f"Das Licht bleibt an: {TITLE} ist hier nicht eingerichtet."


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home", of=LampCortex) as opened:
        yield opened


async def lines(house: LivingHouse, cid: str, user: User | None = None) -> list[tuple[str, str]]:
    """What was told in the conversation, and the page to go to."""
    return [(one.payload["text"], one.payload["page"]) for one in await house.events(cid, "notice", user=user)]


async def perhaps(house: LivingHouse) -> str:
    """One of MAYBE that the model of today thinks may need what is not set up."""
    for text in MAYBE:
        if PERHAPS in await house.cortex.tools.explain(house.admin, "orchestrator", text):
            return text
    raise AssertionError("write another message of which it cannot be told")


async def told(house: LivingHouse, text: str, *, user: User | None = None, role: str = "orchestrator") -> str:
    """What the receipt of this message says cannot be used, "" for nothing."""
    found = await house.cortex.tools.explain(user or house.admin, role, text)
    return str(found.get("setup", {}).get("text", ""))


@pytest.mark.parametrize(
    "answer",
    [NEEDED, "I can't control your lights, since I don't have a tool for that."],
    ids=["names it, in any language", "says that it cannot"],
)
async def test_an_answer_that_needs_it_is_followed_by_one_line(house: LivingHouse, answer: str) -> None:
    with ScriptedServer(rule("kitchen lights", answer)) as model:
        await house.connect(model)
        cid = await house.conversation()
        await house.say(cid, WISH)
    assert NOTE in str(model.log[0].body["messages"][-1])
    assert len(model.log) == 1, "no other tool does in its place"
    assert await lines(house, cid) == [(SENTENCE, PAGE)]
    kinds = [one.kind for one in await house.events(cid)]
    assert kinds[-2:] == ["notice", "turn.end"]
    assert kinds.index("part.end") < kinds.index("notice")


@pytest.mark.parametrize(
    "answer",
    ["Which lights do you mean?", "A lamp server keeps lamps.", "Lamp servers"],
    ids=["words", "small", "more"],
)
async def test_an_answer_that_does_without_leaves_nothing_to_read(house: LivingHouse, answer: str) -> None:
    with ScriptedServer(rule("kitchen lights", answer)) as model:
        await house.connect(model)
        cid = await house.conversation()
        await house.say(cid, WISH)
    assert await lines(house, cid) == []
    assert "setup" in (await house.receipts(cid))[0]


async def test_a_model_that_tried_to_call_it_all_the_same_leaves_the_line(house: LivingHouse) -> None:
    order = Use("ha_get_states", {"domain": "light"}, is_blind=True)
    with ScriptedServer(rule("kitchen lights", order, "Es ging leider schief.")) as model:
        await house.connect(model)
        cid = await house.conversation()
        await house.say(cid, WISH)
    assert await lines(house, cid) == [(SENTENCE, PAGE)]


@pytest.mark.parametrize(
    ("answer", "has_line"),
    [
        ("I don't know whether anybody is there, since I can't see that.", True),
        ("Das kann ich leider nicht sehen.", True),
        ("Yes: I am here for you.", False),
        (f"Welcome home! A {TITLE} would know.", False),
    ],
)
async def test_what_is_perhaps_meant_is_said_once_the_answer_comes_to_nothing(
    house: LivingHouse, answer: str, has_line: bool
) -> None:
    said = await perhaps(house)
    with ScriptedServer(rule(said, answer)) as model:
        await house.connect(model)
        cid = await house.conversation()
        await house.say(cid, said)
    assert "not set up" not in str(model.log[0].body["messages"][-1])
    assert await lines(house, cid) == ([(SENTENCE, PAGE)] if has_line else [])


async def test_what_is_perhaps_meant_is_not_said_where_another_tool_did_something(house: LivingHouse) -> None:
    said, order = await perhaps(house), Use("task_list", {}, is_blind=True)
    with ScriptedServer(rule(said, order, "I don't know whether anybody is there, since I can't see that.")) as model:
        await house.connect(model)
        cid = await house.conversation()
        await house.say(cid, said)
    assert await lines(house, cid) == []


async def test_an_answer_that_names_it_is_not_tried_again_with_other_tools(house: LivingHouse) -> None:
    says = f"I don't have a tool to remind you of your reminders or to add a reminder: {TITLE} is not set up."
    with ScriptedServer(rule("lights", says, "again")) as model:
        await house.connect(model)
        cid = await house.conversation()
        await house.say(cid, WISH)
    assert len(model.log) == 1
    assert await lines(house, cid) == [(SENTENCE, PAGE)]


async def test_a_member_reads_whom_to_ask_and_is_sent_to_no_page(house: LivingHouse) -> None:
    cid = await house.conversation(house.member)
    await house.say(cid, WISH, user=house.member)
    assert await lines(house, cid, house.member) == [(ASK, "")]
    assert await told(house, WISH, user=house.member) == ASK


async def test_the_offline_model_says_it_too(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, WISH)
    (part,) = await house.events(cid, "part.end")
    assert f"{TITLE} is not" in part.payload["text"]
    assert await lines(house, cid) == [(SENTENCE, PAGE)]


async def test_the_line_comes_once_a_conversation_unless_the_same_is_asked_again(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, WISH)
    await house.say(cid, "dim the lamp in the hall to 30 percent")
    assert await lines(house, cid) == [(SENTENCE, PAGE)]
    again = await house.say(cid, WISH)
    assert await lines(house, cid) == [(SENTENCE, PAGE)] * 2
    anew = await house.cortex.chat.again(house.admin, again)
    await house.until(cid, "turn.end", turn=anew)
    assert [one.turn_id for one in await house.events(cid, "notice")][-1] == anew
    other = await house.conversation()
    await house.say(other, WISH)
    assert await lines(house, other) == [(SENTENCE, PAGE)]


async def test_a_line_that_went_out_of_view_comes_again(house: LivingHouse) -> None:
    cid = await house.conversation()
    first = await house.say(cid, WISH)
    edited = await house.cortex.chat.edit(house.admin, first, "dim the lamp in the hall to 30 percent")
    await house.until(cid, "turn.end", turn=edited)
    assert await lines(house, cid) == [(SENTENCE, PAGE)] * 2


async def test_the_model_gets_one_short_note_behind_the_message(house: LivingHouse) -> None:
    receipt = await house.cortex.tools.explain(house.member, "orchestrator", WISH)
    assert 0 < receipt["notes_tokens"] <= 30
    assert not [one for one in receipt["sent"] if one["category"] == "ha"]


@pytest.mark.parametrize("text", ["hello", "write a poem about the sea", "add milk to my shopping list", "thanks!"])
async def test_other_messages_say_nothing_of_it(house: LivingHouse, text: str) -> None:
    assert await told(house, text) == ""


async def test_a_role_that_only_talks_says_nothing_of_it(house: LivingHouse) -> None:
    assert await told(house, WISH, role="chat") == ""


async def test_once_it_is_set_up_nothing_is_said(house: LivingHouse) -> None:
    await house.cortex.integrations.save(house.admin, "lamps", "", TYPED, is_new=True)
    receipt = await house.cortex.tools.explain(house.member, "orchestrator", WISH)
    assert "setup" not in receipt
    assert "ha_call_service" in [one["name"] for one in receipt["sent"]]


async def test_a_search_for_tools_answers_the_same(house: LivingHouse) -> None:
    tools = house.cortex.tools
    assert (await tools.discover(house.admin, "orchestrator", "switch off a lamp")).text.startswith(SENTENCE)
    found = await tools.discover(house.member, "orchestrator", "switch off a lamp")
    assert found.text.startswith(ASK)
    assert not [name for name in found.names if name.startswith("ha_")]
    assert "set up" not in (await tools.discover(house.member, "orchestrator", "add a task")).text


# --- what is there and cannot be used all the same ------------------------------------------------------------------


async def test_what_is_switched_off_is_said_to_be(house: LivingHouse) -> None:
    await house.cortex.integrations.save(house.admin, "lamps", "", TYPED, is_new=True)
    await house.cortex.integrations.switch(house.admin, "lamps", "", is_on=False)
    admin = await told(house, WISH)
    assert ("switched off" in admin, "Integrations" in admin) == (True, True)
    asks = "Lamp server is switched off here: ask whoever runs Cortex."
    assert await told(house, WISH, user=house.member) == asks


async def test_what_is_given_to_others_alone_is_said_to_be(house: LivingHouse) -> None:
    integrations = house.cortex.integrations
    await integrations.save(house.admin, "lamps", "", TYPED, is_new=True)
    await integrations.share(house.admin, "lamps", "", ["research"], [])
    closed = "Lamp server is not open to you in this role."
    admin = await told(house, WISH)
    assert (admin.startswith(closed), "Integrations" in admin) == (True, True)
    await integrations.share(house.admin, "lamps", "", [], [house.admin.id])
    assert await told(house, WISH) == ""
    asked = await told(house, WISH, user=house.member)
    assert (asked.startswith(closed[:-1]), "ask whoever" in asked) == (True, True)


async def test_a_tool_that_an_admin_switched_off_is_named_with_its_page(house: LivingHouse) -> None:
    name = "reminders_add"
    await house.cortex.tool_settings.change(house.admin, name, is_on=False, sending="needed", asks_first=False)
    wish = "remind me at six to take the bins out"
    receipt = await house.cortex.tools.explain(house.admin, "orchestrator", wish)
    assert receipt["setup"]["text"].startswith(f"{name} is switched")
    assert receipt["setup"]["page"] == f"/admin/tools/{name}"
    asked = await told(house, wish, user=house.member)
    assert (name in asked, "ask whoever" in asked) == (True, True)


async def test_what_is_switched_off_with_all_that_reaches_outside_is_said_so(house: LivingHouse) -> None:
    await house.cortex.stop_all.switch_outward_off(house.admin)
    receipt = await house.cortex.tools.explain(house.admin, "orchestrator", "read https://example.org/news for me")
    assert all(part in receipt["setup"]["text"] for part in ("web_read", "reach outside"))
    assert receipt["setup"]["page"] == "/stop-all"


async def test_a_tool_that_the_person_set_to_never_is_named_to_them(house: LivingHouse) -> None:
    planning = house.cortex.planning
    wish, never = "remind me at six to take the bins out", DraftSettings(choices={"reminders_add": "never"})
    drafted = await planning.preview(house.member, None, wish, "auto", composed=never)
    assert all(part in drafted["setup"]["text"] for part in ("reminders_add", "“never”"))
    assert "setup" not in await planning.preview(house.member, None, "thanks!", "auto", composed=never)


async def test_a_tool_of_another_role_is_named_with_that_role(house: LivingHouse) -> None:
    text = "reminders_add is a tool of the role orchestrator. Choose that role to use it."
    assert await told(house, "remind me at six to take the bins out", role="research") == text
    roles = house.cortex.roles
    await roles.change(house.admin, "orchestrator", {"tools": ("web",)})
    assert "orchestrator" not in await told(house, "remind me at six to take the bins out", role="research")


async def test_all_tools_and_none_are_told_alike_and_chat_only_nothing(house: LivingHouse) -> None:
    explain = house.cortex.tools.explain
    assert (await explain(house.admin, "orchestrator", WISH, mode="all"))["setup"]["text"] == SENTENCE
    assert "setup" not in await explain(house.admin, "orchestrator", WISH, mode="chat")


async def test_what_is_sent_while_a_turn_runs_is_heard_as_well(house: LivingHouse) -> None:
    model = ScriptedServer(rule("lights", NEEDED), rule("shell", Use("shell_exec", {"command": "true"})))
    with model:
        await house.connect(model)
        cid = await house.conversation()
        await house.cortex.chat.send_message(house.admin, cid, "run `true` in the shell")
        asked = await house.until(cid, "approval", state="asked")
        await house.send_meanwhile(cid, asked.payload["approval"], "once", WISH)
        await house.until(cid, "turn.end")
    assert await lines(house, cid) == [(SENTENCE, PAGE)]


async def test_a_model_that_does_not_answer_leaves_no_line(house: LivingHouse) -> None:
    with ScriptedServer() as model:
        model.fail(Fault(kind="status", status=401))
        await house.connect(model)
        cid = await house.conversation()
        await house.say(cid, WISH)
    assert (SENTENCE, PAGE) not in await lines(house, cid)
