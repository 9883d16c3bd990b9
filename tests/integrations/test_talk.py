"""Nextcloud Talk's documented contract, against a double of it: rooms, posts, history, and every refusal in words."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from cortex.base.errors import ServiceDown, ToolFailed
from cortex.integrations.cards.talk import TalkForm, TalkServer
from tests.patience import PATIENCE_S
from tests.talk_server import TalkDouble

FAMILY = "fam1ly00"


@pytest.fixture
def nextcloud() -> Iterator[TalkDouble]:
    with TalkDouble() as double:
        double.room(FAMILY, "Family", at=5, unread=2)
        double.room("0ff1ce00", "Office", at=9)
        yield double


def server(nextcloud: TalkDouble, *, total_s: float = PATIENCE_S, **changed: str) -> TalkServer:
    return TalkServer(TalkForm.model_validate(nextcloud.form(**changed)), total_s=total_s)


async def test_rooms_come_with_the_latest_first(nextcloud: TalkDouble) -> None:
    found = await server(nextcloud).rooms()
    assert [(room.name, room.unread) for room in found] == [("Office", 0), ("Family", 2)]
    assert "2 rooms" in await server(nextcloud).test()


async def test_an_account_that_nobody_invited_is_told_so(nextcloud: TalkDouble) -> None:
    nextcloud.rooms.clear()
    assert "no room" in await server(nextcloud).test()


async def test_a_post_is_made_once_however_often_it_is_tried(nextcloud: TalkDouble) -> None:
    talk = server(nextcloud)
    for _ in range(3):
        await talk.post("call-1", FAMILY, "dinner at 7")
    await talk.post("call-2", FAMILY, "dinner at 7")
    assert nextcloud.texts(FAMILY) == ["dinner at 7", "dinner at 7"]


async def test_a_post_whose_answer_was_lost_is_found_by_the_next_try(nextcloud: TalkDouble) -> None:
    nextcloud.lost = True
    with pytest.raises(ServiceDown, match="It may have been posted all the same"):
        await server(nextcloud, total_s=0.5).post("call-1", FAMILY, "dinner at 7")
    nextcloud.lost = False
    await server(nextcloud).post("call-1", FAMILY, "dinner at 7")
    assert nextcloud.texts(FAMILY) == ["dinner at 7"]


async def test_looking_for_an_earlier_post_marks_nothing_as_read(nextcloud: TalkDouble) -> None:
    await server(nextcloud).post("call-1", FAMILY, "hi")
    assert nextcloud.rooms[FAMILY]["unreadMessages"] == 2
    await server(nextcloud).history(FAMILY, 5, None)
    assert nextcloud.rooms[FAMILY]["unreadMessages"] == 0


async def test_history_skips_what_talk_itself_says_and_goes_back_page_by_page(nextcloud: TalkDouble) -> None:
    said = [nextcloud.says(FAMILY, "Ada", f"line {number}") for number in range(12)]
    for _ in range(230):
        nextcloud.says(FAMILY, "Ada", "{actor} joined the call", messageType="system", systemMessage="call_joined")
    talk = server(nextcloud)
    newest = await talk.history(FAMILY, 5, None)
    assert [post.text for post in newest] == [f"line {number}" for number in range(7, 12)]
    earlier = await talk.history(FAMILY, 5, newest[0].id)
    assert [post.id for post in earlier] == said[2:7]
    assert await talk.history(FAMILY, 5, said[0]) == []


@pytest.mark.parametrize(
    ("text", "parameters", "shown"),
    [
        ("{mention-user1} look", {"mention-user1": {"type": "user", "id": "bob", "name": "Bob"}}, "@Bob look"),
        ("{file}", {"file": {"type": "file", "id": "7", "name": "plan.pdf"}}, "plan.pdf"),
        ("{who} {0}", {}, "{who} {0}"),
        ("{a}", {"a": "no object"}, "{a}"),
        ("{a}", [], "{a}"),
    ],
)
async def test_placeholders_are_shown_by_their_names(
    nextcloud: TalkDouble, text: str, parameters: Any, shown: str
) -> None:
    nextcloud.says(FAMILY, "Ada", text, messageParameters=parameters)
    assert [post.text for post in await server(nextcloud).history(FAMILY, 5, None)] == [shown]


@pytest.mark.parametrize(
    ("status", "headers", "said", "is_down"),
    [
        (401, {}, "user name and app password", True),
        (403, {}, "read-only", False),
        (404, {}, "room no longer exists", False),
        (412, {}, "lobby", False),
        (413, {}, "in parts", False),
        (422, {}, "status 422", False),
        (426, {}, "newer client", True),
        (429, {"Retry-After": "30"}, "too many requests", True),
        (301, {"Location": "https://elsewhere.example/"}, "another address", True),
        (500, {}, "status 500", True),
        (503, {}, "status 503", True),
        (503, {"X-Nextcloud-Maintenance-Mode": "1"}, "maintained", True),
    ],
)
async def test_each_refusal_is_a_sentence(
    nextcloud: TalkDouble, status: int, headers: dict[str, str], said: str, is_down: bool
) -> None:
    nextcloud.faults.append((status, headers))
    with pytest.raises(ToolFailed, match=said) as raised:
        await server(nextcloud).history(FAMILY, 5, None)
    assert isinstance(raised.value, ServiceDown) == is_down
    assert "elsewhere" not in raised.value.message


async def test_states_of_a_room_are_told_as_the_contract_has_them(nextcloud: TalkDouble) -> None:
    talk = server(nextcloud)
    nextcloud.read_only.add(FAMILY)
    with pytest.raises(ToolFailed, match="read-only"):
        await talk.post("a", FAMILY, "hi")
    nextcloud.lobby.add("0ff1ce00")
    with pytest.raises(ToolFailed, match="lobby"):
        await talk.history("0ff1ce00", 5, None)
    nextcloud.read_only.clear()
    nextcloud.most_characters = 1_000
    with pytest.raises(ToolFailed, match="in parts"):
        await talk.post("a", FAMILY, "x" * 2_000)
    assert nextcloud.texts(FAMILY) == []


async def test_what_is_no_nextcloud_is_told(nextcloud: TalkDouble) -> None:
    with pytest.raises(ServiceDown, match="user name and app password"):
        await server(nextcloud, password="wrong-one").test()
    nextcloud.faults.append((404, {}))
    with pytest.raises(ServiceDown, match="no Nextcloud Talk at this address"):
        await server(nextcloud).test()
    for raw in (b"<html>", b"[]", b'{"ocs": {"data": [{"token": "../../x"}]}}'):
        nextcloud.raw = raw
        with pytest.raises(ServiceDown, match="not as Nextcloud Talk does"):
            await server(nextcloud).test()


async def test_a_server_that_is_away_is_told_without_its_address() -> None:
    form = TalkForm.model_validate({"address": "http://127.0.0.1:9", "user": "cortex", "password": "x"})
    with pytest.raises(ServiceDown, match="could not be reached") as raised:
        await TalkServer(form).test()
    assert "127.0.0.1" not in raised.value.message


async def test_a_link_names_a_room_of_this_server_alone(nextcloud: TalkDouble) -> None:
    talk = server(nextcloud)
    for link in (nextcloud.link(FAMILY), f"{nextcloud.address}/call/{FAMILY}/"):
        assert talk.token_of(link) == FAMILY
    for link in ("https://evil.example/call/fam1ly00", FAMILY, f"{nextcloud.address}/call/../{FAMILY}"):
        with pytest.raises(ToolFailed):
            talk.token_of(link)
    with pytest.raises(ToolFailed, match="names no room"):
        await talk.history("../../core", 5, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "cloud.example.org"},
        {"address": "ftp://cloud.example.org"},
        {"address": "https://user:pw@cloud.example.org"},
        {"address": "https://cloud.example.org:99999"},
        {"user": "a:b"},
        {"password": "two words"},
        {"ca": "certificate cannot be read"},
    ],
)
def test_a_form_that_cannot_work_is_refused(wrong: dict[str, str]) -> None:
    fine = {"address": "https://cloud.example.org/index.php/", "user": "cortex", "password": "abc-def"}
    assert TalkForm.model_validate(fine).address == "https://cloud.example.org"
    with pytest.raises(ValidationError):
        TalkForm.model_validate({**fine, **wrong})
