"""People write to Cortex by Telegram: linked, heard, answered; through the whole daemon, against the double."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import Conflict, UserError
from cortex.services.notices.notices import NoticeDraft
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository
from cortex.storage.turns import TurnsRepository
from tests.made_pictures import drawn
from tests.scripted_rules import Use, rule
from tests.services.messengers.messenger_house import ADA, BEN, OLA, MessengerHouse, messenger_house
from tests.services.messengers.speech_server import SpeechDouble
from tests.telegram import TOKEN, TelegramDouble, buttons_of

GROUP: dict[str, Any] = {"id": -1001, "type": "supergroup", "title": "Family"}
WORDS = [f"word{at}" for at in range(2_000)]
JOB = Use("cron_add", {"name": "rain", "when": "every day at 07:00", "prompt": "Will it rain?"})
SHELL = Use("shell_exec", {"command": "echo tidied up"})
TASK = Use("task_create", {"title": "milk"})


@pytest.fixture
def bot() -> Iterator[TelegramDouble]:
    with TelegramDouble() as double:
        yield double


@pytest.fixture
async def house(tmp_path: Path, bot: TelegramDouble) -> AsyncIterator[MessengerHouse]:
    rules = (
        rule("add milk", TASK, "Milk is on the list."),
        rule("be bold", "**Bold** and `a<b`"),
        rule("make a job", JOB, "The job stands."),
        rule("tidy up in the shell", SHELL, "Tidied."),
        rule("something long", f"{' '.join(WORDS)}\n\nthe end"),
    )
    async with messenger_house(tmp_path / "home", *rules, bot=bot) as opened:
        yield opened


async def test_a_linked_person_is_answered_in_the_chat_that_the_page_shows(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "good morning")
    await house.told(ADA, "You said: good morning")

    conversation = await house.conversation(house.house.admin)
    events = await house.house.events(conversation, "message")
    assert [event.payload["text"] for event in events] == ["good morning"]

    await house.house.say(conversation, "and from the page")
    await house.told(ADA, "You wrote on the page:")
    answer = await house.told(ADA, "You said: and from the page")
    assert answer["disable_notification"] is True
    assert house.bot.texts(22) == []


async def test_tools_are_a_line_and_markdown_is_drawn(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "add milk")
    message = await house.told(ADA, "Milk is on the list.")
    assert "✓ <i>Add milk" in message["text"]
    house.bot.says(ADA, "be bold")
    assert (await house.told(ADA, "Bold and"))["text"] == "<b>Bold</b> and <code>a&lt;b</code>"


async def test_a_stranger_gets_one_line_and_no_answer(house: MessengerHouse) -> None:
    for word in ("hello", "are you there", "add milk"):
        house.bot.says(OLA, word)
    await house.told(OLA, "enter the code")
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "after the stranger")
    await house.told(ADA, "You said: after the stranger")
    assert len(house.bot.texts(44)) == 1
    assert len(house.model.log) == 1


async def test_a_code_links_once_and_a_wrong_one_never(house: MessengerHouse) -> None:
    code = await house.code(ADA)
    links = house.cortex.messenger_links
    with pytest.raises(UserError, match="wrong or too old"):
        await links.link(house.house.admin, "00000000" if code != "00000000" else "11111111")
    assert (await links.look(house.house.admin, f"{code[:4]} {code[4:]}")).name == "Ada (@ada_at_home)"
    await links.link(house.house.admin, code)
    with pytest.raises(UserError, match="wrong or too old"):
        await links.link(house.house.member, code)
    other = await house.code(OLA)
    with pytest.raises(Conflict, match="linked there already"):
        await links.link(house.house.admin, other)


async def test_orders(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "first")
    await house.told(ADA, "You said: first")
    before = await house.conversation(house.house.admin)
    house.bot.says(ADA, "/new")
    await house.told(ADA, "This is a new chat")
    house.bot.says(ADA, "/last")
    await house.told(ADA, "There is no answer in this chat yet")
    house.bot.says(ADA, "second")
    await house.told(ADA, "You said: second")
    assert await house.conversation(house.house.admin) != before
    house.bot.says(ADA, "/model")
    await house.told(ADA, "Write /model and a name")
    house.bot.says(ADA, "/model M")
    await house.told(ADA, "From the next message on: m")
    house.bot.says(ADA, "stop")
    await house.told(ADA, "No answer is being written")
    house.bot.says(ADA, "/last")
    await house.told(ADA, "You said: second", times=2)


async def test_an_edited_message_is_answered_anew(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    message = house.bot.says(ADA, "good mourning")
    await house.told(ADA, "You said: good mourning")
    house.bot.edits(ADA, message, "good morning")
    await house.told(ADA, "You said: good morning")
    house.bot.edits(ADA, message, "good evening")
    await house.told(ADA, "You said: good evening")
    turns = (await house.cortex.chat.log(house.house.admin, await house.conversation(house.house.admin))).folded().turns
    assert [turn.text for turn in turns] == ["good evening"]


async def test_who_is_unlinked_is_a_stranger_again(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "one")
    await house.told(ADA, "You said: one")
    link = (await house.cortex.messenger_links.list(house.house.admin))[0].link
    await house.cortex.messenger_links.unlink(house.house.admin, link.id)
    house.bot.says(ADA, "two")
    await house.told(ADA, "enter the code", times=2)
    assert not any("two" in text for text in house.bot.texts(11))


async def test_a_yes_is_bound_to_the_person_and_the_question(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    await house.link(house.house.member, BEN)
    house.bot.says(ADA, "make a job about rain")
    question = await house.told(ADA, "Will it rain?")
    assert [one["text"] for one in buttons_of(question)] == ["Allow", "Deny"]

    assert await house.pressed(BEN, {**question, "chat_id": 22}, "Allow") == "This question is not for you."
    assert await house.cortex.approvals.pending(house.house.admin)
    before = dict(question)
    assert await house.pressed(ADA, question, "Allow") == "Allowed."
    await house.told(ADA, "The job stands.")
    assert [job.name for job in await jobs(house)] == ["rain"]

    assert "allowed before" in await house.pressed(ADA, before, "Allow")
    assert len(await jobs(house)) == 1


async def test_a_late_yes_goes_on_in_the_same_chat(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "make a job about rain")
    question = await house.told(ADA, "Will it rain?")
    house.bot.says(ADA, "good morning")
    await house.told(ADA, "You said: good morning")
    assert await house.pressed(ADA, question, "Allow") == "Allowed."
    await house.told(ADA, "Done. Scheduled: rain")


async def test_what_weighs_heavily_is_answered_on_the_page(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "tidy up in the shell")
    question = await house.told(ADA, "Answer it on the page:")
    assert buttons_of(question) == []
    asked = (await house.cortex.approvals.pending(house.house.admin))[0]
    forged = {**question, "reply_markup": {"inline_keyboard": [[{"text": "Allow", "callback_data": f"y:{asked.id}"}]]}}
    assert await house.pressed(ADA, forged, "Allow") == "This can be answered on Cortex's page only."
    assert await house.cortex.approvals.pending(house.house.admin)


async def test_a_long_answer_comes_in_parts(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "say something long")
    await house.told(ADA, "the end")
    words = " ".join(house.bot.texts(11)[1:]).split()
    assert words == [*WORDS, "the", "end"]


async def test_files_and_albums_come_with_the_message(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    for at, color in enumerate(("red", "blue")):
        house.bot.keeps(f"photo{at}", drawn("PNG", (40 + at, 20), color=color))
        photo = [{"file_id": "small", "width": 9, "height": 9}, {"file_id": f"photo{at}", "width": 90, "height": 90}]
        house.bot.says(ADA, photo=photo, media_group_id="a", caption="" if at else "what is on these?")
    house.bot.keeps("doc", b"The boiler is in the cellar.")
    house.bot.says(ADA, document={"file_id": "doc", "file_name": "boiler.txt"}, caption="read this")
    await house.told(ADA, "You said: read this")
    events = await house.house.events(await house.conversation(house.house.admin), "message")
    files = [[file["name"] for file in event.payload.get("attachments", ())] for event in events]
    assert [len(names) for names in files] == [2, 1]
    assert files[1] == ["boiler.txt"]


async def test_a_voice_message_without_a_speech_service_says_so(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.keeps("voice", b"OggS")
    house.bot.says(ADA, voice={"file_id": "voice", "duration": 2})
    await house.told(ADA, "no speech service is set up")
    assert house.model.log == []


async def test_a_voice_message_is_what_its_person_said(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    with SpeechDouble("buy some bread") as speech:
        admin = house.house.admin
        assert "answers" in await house.cortex.integrations.test(admin, "speech", "", speech.form)
        await house.cortex.integrations.save(admin, "speech", "", speech.form, is_new=True)
        house.bot.keeps("voice", b"OggS and sound")
        house.bot.says(ADA, voice={"file_id": "voice", "duration": 2})
        await house.told(ADA, "You said: buy some bread")
        assert speech.heard[-1] == b"OggS and sound"
    rows = await house.house.rows(TurnsRepository).list(await house.conversation(admin))
    assert [row.is_tainted for row in rows] == [False]


async def test_the_card_says_what_is_wrong(house: MessengerHouse) -> None:
    admin, integrations = house.house.admin, house.cortex.integrations
    assert "@our_cortex_bot" in await integrations.test(admin, "telegram", "", house.bot.form())
    with pytest.raises(UserError, match="does not accept the bot's token"):
        await integrations.test(admin, "telegram", "", house.bot.form(token=f"1{TOKEN}"))
    house.bot.webhook = "https://example.org/hook"
    with pytest.raises(UserError, match="a webhook is set"):
        await integrations.test(admin, "telegram", "", house.bot.form())


async def test_forwarded_and_quoted_words_are_outside_text(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "make a job", forward_origin={"type": "user", "sender_user": OLA, "date": 1})
    question = await house.told(ADA, "Answer it on the page:")
    assert buttons_of(question) == []
    house.bot.says(ADA, "what is this?", reply_to_message={"from": OLA, "text": "the bins go out", "message_id": 1})
    await house.told(ADA, "You said: what is this?")
    turns = house.house.rows(TurnsRepository)
    rows = await turns.list(await house.conversation(house.house.admin))
    assert [row.is_tainted for row in rows] == [True, True]


async def test_a_group_that_is_not_allowed_hears_its_id_alone(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "@our_cortex_bot add milk", chat=GROUP)
    await asyncio.to_thread(house.bot.until, GROUP["id"], f"its id is {GROUP['id']}")
    assert house.model.log == []


async def test_a_notice_goes_to_the_linked_chat(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    draft = NoticeDraft(key="k", kind="reminder", title="Water the plants", text="*now*", is_tainted=False)
    await house.cortex.notices.preferences.change(house.house.admin, content=["telegram"])
    await house.cortex.notices.notify(house.house.admin.id, draft)
    assert "\n\n*now*\n\n" in (await house.told(ADA, "Water the plants"))["text"]
    assert house.bot.texts(22) == []


async def test_what_is_refused_is_tried_again_and_what_nobody_knows_is_said(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    wait = {"error_code": 429, "description": "Too Many Requests: retry after 1", "parameters": {"retry_after": 1}}
    house.bot.faults["sendMessage"] += [wait, {"error_code": 502, "description": "Bad Gateway"}]
    house.bot.says(ADA, "first")
    await house.told(ADA, "You said: first")
    house.bot.cut["sendMessage"].append("after")
    house.bot.says(ADA, "second")
    await house.told(ADA, "Cortex was interrupted while it sent a message")
    house.bot.says(ADA, "third")
    await house.told(ADA, "You said: third")
    texts = house.bot.texts(11)[1:]
    assert [sum(word in text for text in texts) for word in ("first", "second", "third")] == [1, 1, 1]


async def test_who_blocked_the_bot_holds_up_nobody(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    await house.link(house.house.member, BEN)
    house.bot.blocked.add(11)
    house.bot.says(ADA, "anybody there")
    house.bot.says(BEN, "hello")
    await house.told(BEN, "You said: hello")
    house.bot.blocked.clear()
    house.bot.says(ADA, "again")
    await house.told(ADA, "You said: again")


async def jobs(house: MessengerHouse) -> list[JobRow]:
    return list(await house.house.rows(JobsRepository).list())
