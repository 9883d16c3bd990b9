"""People write to Cortex by Matrix: linked, heard, answered; through the whole daemon, on a real Synapse."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from cortex.base.errors import UserError
from cortex.integrations.cards.matrix import MatrixForm
from cortex.integrations.matrix.client import MatrixAccount
from cortex.ports.messengers import ChatClosed
from cortex.services.notices.notices import NoticeDraft
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository
from cortex.storage.turns import TurnsRepository
from tests.made_pictures import drawn
from tests.matrix import MatrixTown, Store
from tests.scripted_rules import Use, rule
from tests.services.messengers.messenger_house import MessengerHouse, messenger_house
from tests.services.messengers.speech_server import SpeechDouble

WORDS = [f"word{at}" for at in range(2_000)]
JOB = Use("cron_add", {"name": "rain", "when": "every day at 07:00", "prompt": "Will it rain?"})
SHELL = Use("shell_exec", {"command": "echo tidied up"})
TASK = Use("task_create", {"title": "milk"})


@pytest.fixture
async def house(tmp_path: Path, town: MatrixTown) -> AsyncIterator[MessengerHouse]:
    rules = (
        rule("add milk", TASK, "Milk is on the list."),
        rule("be bold", "**Bold** and `a<b`\n\n```\nx\ny\n```"),
        rule("make a job", JOB, "The job stands."),
        rule("tidy up in the shell", SHELL, "Tidied."),
        rule("something long", f"{' '.join(WORDS)}\n\nthe end"),
    )
    async with messenger_house(tmp_path / "home", *rules, bot=town) as opened:
        yield opened


async def test_a_linked_person_is_answered_in_the_chat_that_the_page_shows(
    house: MessengerHouse, town: MatrixTown
) -> None:
    ada, ben, *_ = town.people
    await house.link(house.house.admin, ada)
    town.says(ada, "good morning")
    await house.told(ada, "You said: good morning")

    conversation = await house.conversation(house.house.admin)
    events = await house.house.events(conversation, "message")
    assert [event.payload["text"] for event in events] == ["good morning"]

    await house.house.say(conversation, "and from the page")
    answer = await house.told(ada, "You said: and from the page")
    assert answer["msgtype"] == "m.notice"
    assert await asyncio.to_thread(town.texts, ben["id"]) == []


async def test_tools_are_a_line_and_markdown_is_drawn(house: MessengerHouse, town: MatrixTown) -> None:
    ada = town.people[0]
    await house.link(house.house.admin, ada)
    town.says(ada, "add milk")
    message = await house.told(ada, "Milk is on the list.")
    assert "✓ <i>Add milk" in message["formatted_body"]
    assert message["body"].startswith("✓ Add milk")
    town.says(ada, "be bold")
    drawn = await house.told(ada, "Bold and")
    assert drawn["formatted_body"] == "<b>Bold</b> and <code>a&lt;b</code><br><br><pre>x\ny</pre>"
    assert drawn["body"] == "Bold and a<b\n\nx\ny"


async def test_a_stranger_gets_one_line_and_no_answer(house: MessengerHouse, town: MatrixTown) -> None:
    ada, _, _, ola = town.people
    for word in ("hello", "are you there", "add milk"):
        town.says(ola, word)
    await house.told(ola, "enter the code")
    await house.link(house.house.admin, ada)
    town.says(ada, "after the stranger")
    await house.told(ada, "You said: after the stranger")
    assert len(await asyncio.to_thread(town.texts, ola["id"])) == 1
    assert len(house.model.log) == 1


async def test_orders(house: MessengerHouse, town: MatrixTown) -> None:
    ada = town.people[0]
    await house.link(house.house.admin, ada)
    town.says(ada, "!help")
    assert "!new begins another chat" in (await house.told(ada, "!model NAME"))["text"]
    town.says(ada, "first")
    await house.told(ada, "You said: first")
    before = await house.conversation(house.house.admin)
    town.says(ada, "!new")
    await house.told(ada, "This is a new chat")
    town.says(ada, "second")
    await house.told(ada, "You said: second")
    assert await house.conversation(house.house.admin) != before
    town.says(ada, "!model")
    await house.told(ada, "Write !model and a name")
    town.says(ada, "!model M")
    await house.told(ada, "From the next message on: m")
    town.says(ada, "stop")
    await house.told(ada, "No answer is being written")
    town.says(ada, "!last")
    await house.told(ada, "You said: second", times=2)


async def test_an_edited_message_is_answered_anew_and_a_deleted_one_stays_on_the_page(
    house: MessengerHouse, town: MatrixTown
) -> None:
    ada, admin = town.people[0], house.house.admin
    await house.link(admin, ada)
    message = town.says(ada, "good mourning")
    await house.told(ada, "You said: good mourning")
    town.edits(ada, message, "good morning")
    await house.told(ada, "You said: good morning")
    turns = (await house.cortex.chat.log(admin, await house.conversation(admin))).folded().turns
    assert [turn.text for turn in turns] == ["good morning"]
    town.deletes(ada, message)
    await house.told(ada, "That message was deleted here only")


async def test_a_yes_is_a_reaction_bound_to_the_person_and_the_question(
    house: MessengerHouse, town: MatrixTown
) -> None:
    ada, ben, *_ = town.people
    admin = house.house.admin
    await house.link(admin, ada)
    await house.link(house.house.member, ben)
    town.says(ada, "make a job about rain")
    question = await house.told(ada, "Will it rain?")
    assert "👍 Allow · 👎 Deny" in question["text"]

    approval = (await house.cortex.approvals.pending(admin))[0].id
    forged = {"msgtype": "m.text", "body": "yes?", "cortex.answers": {"👍": f"y:{approval}"}}
    own = town.sends_event(ben, forged)
    town.reacts(ben, {"id": own, "room": town.rooms[ben["id"]]}, "👍")
    town.says(ben, "after these")
    await house.told(ben, "You said: after these")
    assert await house.cortex.approvals.pending(admin)

    town.reacts(ada, question, "🎉")
    town.reacts(ada, question, "👍️")  # as Element sends it
    await house.told(ada, "Allowed.")
    await house.told(ada, "The job stands.")
    assert [job.name for job in await jobs(house)] == ["rain"]

    town.reacts(ada, question, "👍🏽")
    await house.told(ada, "allowed before")
    assert len(await jobs(house)) == 1


async def test_what_weighs_heavily_is_answered_on_the_page(house: MessengerHouse, town: MatrixTown) -> None:
    ada = town.people[0]
    await house.link(house.house.admin, ada)
    town.says(ada, "tidy up in the shell")
    question = await house.told(ada, "Answer it on the page:")
    assert "cortex.answers" not in question
    town.reacts(ada, question, "👍")
    town.says(ada, "and now?")
    await house.told(ada, "You said: and now?")
    assert await house.cortex.approvals.pending(house.house.admin)


async def test_a_long_answer_comes_in_parts(house: MessengerHouse, town: MatrixTown) -> None:
    ada = town.people[0]
    await house.link(house.house.admin, ada)
    town.says(ada, "say something long")
    await house.told(ada, "the end")
    texts = await asyncio.to_thread(town.texts, ada["id"])
    parts = [text for text in texts if text.lstrip().startswith("word")]
    assert len(parts) > 2
    assert " ".join(parts).split() == [*WORDS, "the", "end"]


async def test_files_pictures_and_captions_come_with_the_message(house: MessengerHouse, town: MatrixTown) -> None:
    ada = town.people[0]
    await house.link(house.house.admin, ada)
    picture = town.uploads(ada, drawn("PNG", (40, 20), color="red"), "image/png")
    town.says(ada, "what is on this?", msgtype="m.image", filename="cat.png", url=picture)
    await house.told(ada, "You said: what is on this?")
    paper = town.uploads(ada, b"The boiler is in the cellar.", "text/plain")
    town.says(ada, "boiler.txt", msgtype="m.file", url=paper)
    town.says(ada, "read it")
    await house.told(ada, "You said: read it")
    events = await house.house.events(await house.conversation(house.house.admin), "message")
    files = [[file["name"] for file in event.payload.get("attachments", ())] for event in events]
    assert files == [["cat.png"], ["boiler.txt"], []]
    assert events[1].payload["text"] == ""


async def test_a_voice_message_is_what_its_person_said(house: MessengerHouse, town: MatrixTown) -> None:
    ada, admin = town.people[0], house.house.admin
    await house.link(admin, ada)
    with SpeechDouble("buy some bread") as speech:
        await house.cortex.integrations.save(admin, "speech", "", speech.form, is_new=True)
        sound = town.uploads(ada, b"OggS and sound", "audio/ogg")
        voice = {"msgtype": "m.audio", "url": sound, "org.matrix.msc3245.voice": {}}
        town.says(ada, "Voice message.ogg", more=voice)
        await house.told(ada, "You said: buy some bread")
        assert speech.heard[-1] == b"OggS and sound"


async def test_quoted_words_are_outside_text(house: MessengerHouse, town: MatrixTown) -> None:
    ada, ben, *_ = town.people
    room = town.room(ada["id"], ben["id"], is_direct=False, name="Family")
    await house.link(house.house.admin, ada)
    bins = town.says(ben, "the bins go out", chat=room)
    own = town.says(ada, "good morning")
    answer = await house.told(ada, "You said: good morning")
    town.says(ada, "thanks", more={"m.relates_to": {"m.in_reply_to": {"event_id": answer["id"]}}})
    await house.told(ada, "You said: thanks")
    town.says(ada, "what is this?", more={"m.relates_to": {"m.in_reply_to": {"event_id": bins}}})
    await house.told(ada, "You said: what is this?")
    rows = await house.house.rows(TurnsRepository).list(await house.conversation(house.house.admin))
    assert [row.is_tainted for row in rows] == [False, False, True]
    assert own


async def test_a_group_is_heard_by_leave_when_addressed_and_has_no_tools(
    house: MessengerHouse, town: MatrixTown
) -> None:
    ada, ben, _, ola = town.people
    admin = house.house.admin
    await house.link(admin, ada)
    room = town.room(ada["id"], ben["id"], ola["id"], is_direct=False, name="Family")

    def answers(text: str) -> Callable[[dict[str, Any]], bool]:
        return lambda event: event["sender"] == town.cortex and text in event.get("content", {}).get("body", "")

    joined = lambda event: event["sender"] == town.cortex and event["type"] == "m.room.member"  # noqa: E731
    await asyncio.to_thread(town.until_event, ada["id"], room, joined)
    town.says(ada, f"{town.cortex} add milk", chat=room)
    await asyncio.to_thread(town.until_event, ada["id"], room, answers(f"its id is {room}"))
    assert house.model.log == []

    form = town.form(groups=room)
    await house.cortex.integrations.save(admin, town.kind, "", form, is_new=False)
    house.cortex.messenger_watch.wake()
    town.says(ola, f"{town.cortex} add milk", chat=room)
    town.says(ada, "not for Cortex", chat=room)
    named = {"m.mentions": {"user_ids": [town.cortex]}}
    town.says(ada, "Cortex: are you there?", chat=room, more=named)
    answer = await asyncio.to_thread(town.until_event, ada["id"], room, answers("You said: are you there?"))
    said = {"m.relates_to": {"m.in_reply_to": {"event_id": answer["event_id"]}}}
    town.says(ada, "and where?", chat=room, more=said)
    await asyncio.to_thread(town.until_event, ada["id"], room, answers("You said: and where?"))
    bodies = [seen.body for seen in house.model.log]
    assert len(bodies) == 2
    assert not any(body.get("tools") for body in bodies)
    assert "not for Cortex" not in str(bodies)


async def test_nothing_plain_goes_into_an_encrypted_room(house: MessengerHouse, town: MatrixTown) -> None:
    ada, admin = town.people[0], house.house.admin
    sealed = town.rooms[ada["id"]] = town.room(ada["id"], is_encrypted=True)
    line = await house.told(ada, "enter the code")
    assert line["room"] != sealed
    left = await asyncio.to_thread(town.until_event, ada["id"], sealed, lambda event: "reason" in event["content"])
    assert "cannot read encrypted rooms" in left["content"]["reason"]
    code = re.search(r"(\d{4} \d{4})", line["text"])
    assert code
    await house.cortex.messenger_links.link(admin, code[1])
    town.says(ada, "good morning")
    await house.told(ada, "You said: good morning")
    before = await house.conversation(admin)

    first = town.rooms[ada["id"]]
    state = f"/_matrix/client/v3/rooms/{quote(first)}/state/m.room.encryption/"
    town.call(ada["id"], "PUT", state, {"algorithm": "m.megolm.v1.aes-sha2"})
    await house.house.say(before, "from the page")
    await house.told(ada, "this chat is not encrypted")
    second = await house.told(ada, "You said: from the page")
    assert second["room"] not in (first, sealed)
    town.says(ada, "and on it goes")
    await house.told(ada, "You said: and on it goes")
    assert await house.conversation(admin) == before
    for room in (first, sealed):
        events = await asyncio.to_thread(town.events, ada["id"], room)
        at = next(at for at, event in enumerate(events) if event["type"] == "m.room.encryption")
        assert not [one for one in events[at:] if one["sender"] == town.cortex and one["type"] == "m.room.message"]


async def test_another_room_is_made_once_whatever_is_killed(town: MatrixTown) -> None:
    ada = str(town.people[0]["id"])
    there = MatrixAccount(MatrixForm.model_validate(town.form()), Store())
    sealed = town.room(ada, is_encrypted=True)
    first = await there.enter(f"{sealed} {ada}")  # and the process ends before it is known here
    assert await there.enter(f"{sealed} {ada}") == first
    assert sealed not in first
    open_room = town.room(ada)
    assert await there.enter(f"{open_room} {ada}") == f"{open_room} {ada}"
    with pytest.raises(ChatClosed):
        await there.enter(f"!nowhere:house.test {ada}")
    with pytest.raises(ChatClosed, match="encrypted"):
        await there.enter(town.room(ada, is_encrypted=True, is_direct=False))


async def test_what_is_a_persons_own_goes_nowhere_where_others_read(house: MessengerHouse, town: MatrixTown) -> None:
    ada, _, _, ola = town.people
    admin = house.house.admin
    await house.link(admin, ada)
    town.says(ada, "good morning")
    await house.told(ada, "You said: good morning")
    room, conversation = town.rooms[ada["id"]], await house.conversation(admin)
    town.call(ada["id"], "POST", f"/_matrix/client/v3/rooms/{quote(room)}/invite", {"user_id": ola["id"]})
    town.call(ola["id"], "POST", f"/_matrix/client/v3/rooms/{quote(room)}/join", {})
    await house.house.say(conversation, "for nobody else")
    town.says(ada, f"{town.cortex} who is here?", chat=room)
    await house.told(ada, "does not answer in this group")
    del town.rooms[ada["id"]]
    town.says(ada, "alone again")
    await house.told(ada, "You said: alone again")
    assert not any("for nobody else" in text for text in await asyncio.to_thread(town.texts, ola["id"]))


async def test_who_is_unlinked_is_a_stranger_again(house: MessengerHouse, town: MatrixTown) -> None:
    ada, admin = town.people[0], house.house.admin
    await house.link(admin, ada)
    town.says(ada, "one")
    await house.told(ada, "You said: one")
    link = (await house.cortex.messenger_links.list(admin))[0].link
    await house.cortex.messenger_links.unlink(admin, link.id)
    town.says(ada, "two")
    await house.told(ada, "enter the code", times=2)
    assert not any("two" in text for text in await asyncio.to_thread(town.texts, ada["id"]))


async def test_the_card_says_what_is_wrong_and_leaves_no_login_behind(house: MessengerHouse, town: MatrixTown) -> None:
    admin, integrations = house.house.admin, house.cortex.integrations
    assert town.cortex in await integrations.test(admin, "matrix", "", town.form())
    with pytest.raises(UserError, match="does not accept Cortex's login"):
        await integrations.test(admin, "matrix", "", town.form(password="wrong"))
    with pytest.raises(UserError, match="does not accept Cortex's login"):
        await integrations.test(admin, "matrix", "", town.form(token="syt_wrong"))
    with pytest.raises(UserError, match="Enter it again"):
        await integrations.test(admin, "matrix", "", town.form(password="", user="@other:house.test"))
    devices = town.call(town.cortex, "GET", "/_matrix/client/v3/devices")["devices"]
    assert len([one for one in devices if one.get("display_name") == "Cortex"]) <= 1


async def test_a_notice_goes_to_the_linked_chat(house: MessengerHouse, town: MatrixTown) -> None:
    ada, admin = town.people[0], house.house.admin
    await house.link(admin, ada)
    draft = NoticeDraft(key="k", kind="reminder", title="Water the plants", text="*now*", is_tainted=False)
    await house.cortex.notices.preferences.change(admin, content=["matrix"])
    await house.cortex.notices.notify(admin.id, draft)
    assert "\n\n*now*\n\n" in (await house.told(ada, "Water the plants"))["text"]


async def test_what_is_refused_or_broken_off_arrives_once(house: MessengerHouse, town: MatrixTown) -> None:
    ada = town.people[0]
    await house.link(house.house.admin, ada)
    wait = (429, {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": 700})
    town.faults["send"] += [wait, (502, {"errcode": "M_UNKNOWN"})]
    town.says(ada, "first")
    await house.told(ada, "You said: first")
    for how in ("after", "before"):
        town.cut["send"].append(how)
        town.says(ada, how)
        await house.told(ada, f"You said: {how}")
    ended = (401, {"errcode": "M_UNKNOWN_TOKEN", "error": "Invalid access token", "soft_logout": False})
    town.faults["send"].append(ended)
    town.says(ada, "the login ended")
    await house.told(ada, "You said: the login ended")
    texts = await asyncio.to_thread(town.texts, ada["id"])
    said = ("first", "after", "before", "the login ended")
    assert [sum(f"You said: {word}" in text for text in texts) for word in said] == [1] * 4
    assert not any("interrupted" in text for text in texts)


async def test_much_that_came_meanwhile_is_caught_up_in_order(tmp_path: Path, town: MatrixTown) -> None:
    ada = town.people[0]
    async with messenger_house(tmp_path / "home", bot=town) as house:
        await house.link(house.house.admin, ada)
        town.says(ada, "before")
        await house.told(ada, "You said: before")
    for at in range(60):  # more than a sync holds
        town.says(ada, f"meanwhile {at}.")
    async with messenger_house(tmp_path / "home", bot=town) as house:
        await house.told(ada, "You said: meanwhile 59.")
        texts = [text.split("\n")[0] for text in await asyncio.to_thread(town.texts, ada["id"]) if "meanwhile" in text]
    assert texts == [f"You said: meanwhile {at}." for at in range(60)]


async def jobs(house: MessengerHouse) -> list[JobRow]:
    return list(await house.house.rows(JobsRepository).list())
