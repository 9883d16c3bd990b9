"""A database, a disk, a line or an admin in the middle of a message: nobody else hears of it, nothing is lost."""

import asyncio
import errno
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from cortex.base.errors import DatabaseUnavailable
from cortex.services.content.documents import DocumentsService
from cortex.services.messengers import conversing, door, words
from cortex.storage.approvals import ApprovalsRepository
from cortex.storage.integrations import IntegrationsRepository
from cortex.storage.messengers import AllMessengersRepository, MessengersRepository
from cortex.storage.schema import MessengerPlaceTable
from tests.patience import PATIENCE_S
from tests.scripted_rules import Use, rule
from tests.services.messengers.messenger_house import ADA, BEN, MessengerHouse, messenger_house
from tests.services.messengers.speech_server import SpeechDouble
from tests.telegram import TelegramDouble, buttons_of

WORDS = [f"word{at}" for at in range(2_000)]
JOB = Use("cron_add", {"name": "rain", "when": "every day at 07:00", "prompt": "Will it rain?"})
BUSY = {"error_code": 429, "description": "Too Many Requests: retry after 1", "parameters": {"retry_after": 1}}


@pytest.fixture
def bot() -> Iterator[TelegramDouble]:
    with TelegramDouble() as double:
        yield double


@pytest.fixture
async def house(tmp_path: Path, bot: TelegramDouble) -> AsyncIterator[MessengerHouse]:
    rules = (rule("make a job", JOB, "The job stands."), rule("something long", " ".join(WORDS)))
    async with messenger_house(tmp_path / "home", *rules, bot=bot) as opened:
        yield opened


async def until(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = is_so()
            if await found if asyncio.iscoroutine(found) else found:
                return
            await asyncio.sleep(0.02)


async def test_a_database_that_was_away_ends_no_messenger(
    house: MessengerHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.link(house.house.admin, ADA)
    asked, listed = [], IntegrationsRepository.list

    async def away(_: Any) -> Any:
        asked.append(1)
        raise DatabaseUnavailable("The database is away.")

    monkeypatch.setattr(IntegrationsRepository, "list", away)
    house.bot.says(ADA, "during")
    await until(lambda: len(asked) >= 2)
    monkeypatch.setattr(IntegrationsRepository, "list", listed)
    await house.told(ADA, "You said: during")


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "No space left on device"), KeyError("a fault of ours")])
async def test_one_persons_row_ends_nobody_elses(
    house: MessengerHouse, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    await house.link(house.house.admin, ADA)
    await house.link(house.house.member, BEN)
    came, give = asyncio.Event(), DocumentsService.give

    async def refuse(self: DocumentsService, user: Any, *given: Any, **named: Any) -> Any:
        if user == house.house.admin:
            came.set()
            raise fault
        return await give(self, user, *given, **named)

    monkeypatch.setattr(conversing, "TRIES", 2)
    monkeypatch.setattr(DocumentsService, "give", refuse)
    house.bot.keeps("doc", b"The boiler is in the cellar.")
    house.bot.says(ADA, document={"file_id": "doc", "file_name": "boiler.txt"}, caption="read this")
    await came.wait()
    house.bot.says(BEN, document={"file_id": "doc", "file_name": "boiler.txt"}, caption="and this")
    await house.told(BEN, "You said: and this")
    if isinstance(fault, OSError):
        await house.told(ADA, "boiler.txt cannot be kept")
    monkeypatch.setattr(DocumentsService, "give", give)
    house.bot.says(ADA, "hello again")
    await house.told(ADA, "You said: hello again")


async def test_a_file_comes_through_a_line_that_breaks(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.keeps("doc", b"The boiler is in the cellar.")
    house.bot.cut["getFile"].append("before")
    house.bot.faults["getFile"].append(BUSY)
    house.bot.says(ADA, document={"file_id": "doc", "file_name": "boiler.txt"}, caption="read this")
    await house.told(ADA, "You said: read this")
    events = await house.house.events(await house.conversation(house.house.admin), "message")
    assert [file["name"] for file in events[0].payload["attachments"]] == ["boiler.txt"]


async def test_a_file_that_never_comes_is_said(house: MessengerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.link(house.house.admin, ADA)
    monkeypatch.setattr(conversing, "TRIES", 2)
    house.bot.keeps("doc", b"x")
    house.bot.faults["getFile"].extend([{"error_code": 500, "description": "Internal Server Error"}] * 2)
    house.bot.says(ADA, document={"file_id": "doc", "file_name": "boiler.txt"})
    house.bot.says(ADA, "and this?")
    await house.told(ADA, "boiler.txt did not come through")
    await house.told(ADA, "You said: and this?")


async def test_a_reply_that_surely_did_not_go_out_is_sent_again(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.faults["sendMessage"].append(BUSY)
    house.bot.says(ADA, "/help")
    await house.told(ADA, "Write to Cortex here as on its page")
    house.bot.cut["sendMessage"].append("after")
    house.bot.says(ADA, "/help")
    await house.told(ADA, "Cortex was interrupted while it sent a message")
    assert sum("Write to Cortex here" in text for text in house.bot.texts(11)) == 2


async def test_a_greeting_that_did_not_go_out_is_sent_again(house: MessengerHouse) -> None:
    house.bot.faults["sendMessage"].append(BUSY)
    await house.link(house.house.admin, ADA)


async def test_who_was_taken_off_the_card_commands_nothing(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    await house.link(house.house.member, BEN)
    house.bot.says(BEN, "make a job about rain")
    question = await house.told(BEN, "Will it rain?")
    integrations = house.cortex.integrations
    await integrations.share(house.house.admin, "telegram", "", [], [house.house.admin.id])
    asked = len(house.model.log)
    assert await house.pressed(BEN, question, "Allow") == words.NOT_OPEN
    house.bot.says(BEN, "/last")
    await house.told(BEN, "not open to you here", times=1)
    house.bot.says(BEN, "do something")
    await house.told(BEN, "not open to you here", times=2)
    assert len(house.model.log) == asked
    assert await house.cortex.approvals.pending(house.house.member)
    await integrations.share(house.house.admin, "telegram", "", [], [])
    house.bot.says(BEN, "and now")
    await house.told(BEN, "You said: and now")


async def test_a_chat_that_takes_nothing_is_not_asked_for_ever(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.without_rights.add(11)
    house.bot.says(ADA, "first")
    await until(lambda: sum(name == "sendMessage" for name, _ in house.bot.asked) >= 3)
    house.bot.without_rights.clear()
    house.bot.says(ADA, "second")
    await house.told(ADA, "You said: second")
    assert not any("interrupted" in text for text in house.bot.texts(11))


async def test_a_question_that_nobody_was_shown_is_notified(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.blocked.add(11)
    house.bot.says(ADA, "make a job about rain")
    await until(lambda: house.cortex.approvals.pending(house.house.admin))
    asked = (await house.cortex.approvals.pending(house.house.admin))[0]
    conversation = await house.conversation(house.house.admin)
    own = house.house.rows(MessengersRepository)
    seq = (await house.house.until(conversation, "approval", state="asked")).seq

    async def is_past() -> bool:
        row = await own.chat(conversation)
        return row is not None and row.told_seq >= seq

    await until(is_past)
    assert (await house.house.rows(ApprovalsRepository).get(asked.id)).notify_at is not None
    await until(lambda: not house.cortex.streams.is_watched(house.house.admin.id, conversation))


async def test_a_question_that_a_broken_line_cut_is_put_again(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.cut["sendMessage"].append("before")
    house.bot.says(ADA, "make a job about rain")
    question = await house.told(ADA, "Will it rain?")
    assert await house.pressed(ADA, question, "Allow") == "Allowed."
    await house.told(ADA, "The job stands.")


async def test_a_long_question_has_no_button(tmp_path: Path, bot: TelegramDouble) -> None:
    long = Use("cron_add", {"name": "rain", "when": "every day at 07:00", "prompt": "Will it rain? " * 200})
    async with messenger_house(tmp_path / "home", rule("make a job", long, "It stands."), bot=bot) as house:
        await house.link(house.house.admin, ADA)
        bot.says(ADA, "make a job about rain")
        question = await house.told(ADA, "This is only its beginning")
        assert buttons_of(question) == []
        asked = (await house.cortex.approvals.pending(house.house.admin))[0]
        below = [[{"text": "Allow", "callback_data": f"y:{asked.id}"}]]
        forged = {**question, "reply_markup": {"inline_keyboard": below}}
        assert await house.pressed(ADA, forged, "Allow") == "This can be answered on Cortex's page only."


async def test_a_voice_message_is_heard_once_whatever_comes_between(
    house: MessengerHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.link(house.house.admin, ADA)
    kept, cuts = MessengersRepository.set_inbox, [1]

    async def cut(self: MessengersRepository, id: str, **values: Any) -> None:
        if values.get("turn_id") and cuts:
            cuts.pop()
            speech.says = "buy some beer"
            raise DatabaseUnavailable("The database is away.")
        await kept(self, id, **values)

    with SpeechDouble("buy some bread") as speech:
        await house.cortex.integrations.save(house.house.admin, "speech", "", speech.form, is_new=True)
        monkeypatch.setattr(MessengersRepository, "set_inbox", cut)
        house.bot.keeps("voice", b"OggS and sound")
        house.bot.says(ADA, voice={"file_id": "voice", "duration": 2})
        await until(lambda: not cuts)
        house.bot.says(ADA, "and?")  # with which the row is taken up again
        await house.told(ADA, "You said: and?")
    events = await house.house.events(await house.conversation(house.house.admin), "message")
    assert [event.payload["text"] for event in events] == ["buy some bread", "and?"]
    assert len(speech.heard) == 1


async def test_the_place_is_kept_while_a_request_takes_long(
    house: MessengerHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "RENEW_S", 0.05)
    await house.link(house.house.admin, ADA)
    house.bot.faults["getUpdates"].append({**BUSY, "parameters": {"retry_after": 300}})
    house.bot.says(ADA, "wakes the request that is open")
    times: set[object] = set()

    async def is_renewed() -> bool:
        async with house.cortex.runtime.db.read_transaction() as repository:
            session = repository(AllMessengersRepository).session
            table = MessengerPlaceTable
            rows = await session.execute(table.__table__.select().where(table.account == ""))
            times.update(row.held_until for row in rows)
        return len(times) >= 4

    await until(lambda: not house.bot.faults["getUpdates"])
    await until(is_renewed)


async def test_a_chat_is_told_by_whoever_has_the_place(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "first")
    await house.told(ADA, "You said: first")
    conversation = await house.conversation(house.house.admin)
    await hold(house, "another", timedelta(hours=1))
    await house.house.say(conversation, "from the page")
    row = await house.house.rows(MessengersRepository).chat(conversation)
    assert row is not None
    own = house.house.rows(MessengersRepository)
    assert not await own.begin_part(row, "telegram", "daemon")
    assert not any("from the page" in text for text in house.bot.texts(11))
    await hold(house, "", timedelta())
    await house.told(ADA, "You said: from the page")
    assert sum("You said: from the page" in text for text in house.bot.texts(11)) == 1


async def hold(house: MessengerHouse, holder: str, life: timedelta) -> None:
    """Give the place to another process."""
    async with house.cortex.runtime.db.transaction() as repository:
        session = repository(AllMessengersRepository).session
        values = {"holder": holder, "held_until": house.cortex.runtime.clock() + life}
        await session.execute(update(MessengerPlaceTable).where(MessengerPlaceTable.account == "").values(**values))


async def test_who_is_unlinked_gets_no_further_part(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.cut["sendMessage"].append("")
    house.bot.faults["sendMessage"].extend([{**BUSY, "error_code": 500, "description": "x"}] * 2)
    link = (await house.cortex.messenger_links.list(house.house.admin))[0].link
    send = house.bot._send_message

    def once(body: Any) -> Any:
        said = send(body)
        if "word1 " in body["text"]:
            asyncio.run_coroutine_threadsafe(
                house.cortex.messenger_links.unlink(house.house.admin, link.id), loop
            ).result()
        return said

    loop = asyncio.get_running_loop()
    house.bot.faults.clear()
    house.bot._send_message = once
    house.bot.says(ADA, "something long")
    await house.told(ADA, "word1 ")
    house.bot.says(ADA, "am I a stranger?")
    await house.told(ADA, "enter the code", times=2)
    assert not any(WORDS[-1] in text for text in house.bot.texts(11))


async def test_a_stop_and_a_press_are_heard_ahead_of_a_file_that_takes_long(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "make a job about rain")
    question = await house.told(ADA, "Will it rain?")
    house.bot.keeps("doc", b"The boiler is in the cellar.")
    house.bot.faults["getFile"].append({**BUSY, "parameters": {"retry_after": 600}})
    house.bot.says(ADA, document={"file_id": "doc", "file_name": "boiler.txt"}, caption="read this")
    await asyncio.to_thread(house.bot.until_asked, "getFile")
    assert await house.pressed(ADA, question, "Deny") == "Denied."


async def test_work_that_is_stopped_is_said_there(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    await house.cortex.stop_all.stop(house.house.admin, house.house.admin)
    house.bot.says(ADA, "are you there")
    await house.told(ADA, "Work is stopped in Cortex")


async def test_a_question_answered_on_the_page_loses_its_buttons(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "make a job about rain")
    question = await house.told(ADA, "Will it rain?")
    assert buttons_of(question)
    asked = (await house.cortex.approvals.pending(house.house.admin))[0]
    await house.cortex.approvals.answer(house.house.admin, asked.id, "once")
    await house.told(ADA, "The job stands.")
    await until(
        lambda: not buttons_of(next(one for one in house.bot.sent if one["message_id"] == question["message_id"]))
    )


async def test_a_late_press_says_whether_it_holds(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "make a job about rain")
    question = await house.told(ADA, "Will it rain?")
    house.bot.faults["answerCallbackQuery"].append(
        {"error_code": 400, "description": "Bad Request: query is too old and response timeout expired"}
    )
    house.bot.presses(ADA, question, "Allow")
    await house.told(ADA, "Allowed.")
    await house.told(ADA, "The job stands.")
    assert not buttons_of(next(one for one in house.bot.sent if one["message_id"] == question["message_id"]))
