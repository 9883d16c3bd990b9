"""What answers mean that a good homeserver does not give: refusals, broken shapes, floods; and texts as events."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from cortex.base.errors import ServiceDown, ToolFailed
from cortex.integrations.cards.matrix import MatrixForm
from cortex.integrations.matrix import events
from cortex.integrations.matrix.client import PART_UNITS, MatrixAccount
from cortex.integrations.matrix.events import MatrixRoom, Me
from cortex.ports.messengers import Button, ChatClosed, NotSent, RemoteFile
from tests.matrix import Store
from tests.matrix_double import ADA, ME, ROOM, MatrixDouble

KEPT = f"{ROOM} {ADA}"


@pytest.fixture
def double() -> Iterator[MatrixDouble]:
    with MatrixDouble() as there:
        yield there


def account(double: MatrixDouble, store: Store | None = None, **changed: Any) -> MatrixAccount:
    form = {"address": double.address, "user": ME, "password": SecretStr("pw"), **changed}
    return MatrixAccount(MatrixForm.model_validate(form), store or Store())


async def test_a_login_is_made_once_and_kept(double: MatrixDouble) -> None:
    store = Store()
    await account(double, store).typing(KEPT)
    await account(double, store).typing(KEPT)
    assert double.logins == [""]
    double.tokens.clear()  # ended by the server
    await account(double, store).typing(KEPT)
    assert double.logins == ["", "DEVICE1"]
    assert await account(double, store, user="@other:house.test").account() == ME
    assert double.logins == ["", "DEVICE1", ""]


async def test_one_that_is_refused_says_so_and_waits(double: MatrixDouble) -> None:
    with pytest.raises(NotSent, match="does not accept") as refused:
        await account(double, password=SecretStr("wrong")).typing(KEPT)
    assert refused.value.wait_s == 60
    with pytest.raises(NotSent, match="does not accept"):
        await account(double, password=SecretStr(""), token=SecretStr("syt_old")).typing(KEPT)


@pytest.mark.parametrize(
    ("status", "said", "kind", "wait_s"),
    [
        (429, {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 1500}, NotSent, 1.5),
        (429, {"errcode": "M_LIMIT_EXCEEDED"}, NotSent, 5.0),
        (429, {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 10**12}, NotSent, 3_600.0),
        (502, {}, NotSent, 5.0),
        (403, {"errcode": "M_FORBIDDEN"}, ChatClosed, None),
        (404, {"errcode": "M_NOT_FOUND"}, ChatClosed, None),
        (413, {"errcode": "M_TOO_LARGE"}, ToolFailed, None),
        (200, "<html>", ServiceDown, None),
        (503, "<html>", ServiceDown, None),
    ],
)
async def test_what_a_no_means(
    double: MatrixDouble, status: int, said: Any, kind: type[Exception], wait_s: float | None
) -> None:
    double.faults["send"].append((status, said))
    with pytest.raises(kind) as refused:
        await account(double).send(KEPT, "hello", once="one")
    assert getattr(refused.value, "wait_s", None) == wait_s
    assert not isinstance(refused.value, ServiceDown) or status != 413
    assert "secret words" not in str(refused.value)


async def test_nobody_else_reads_and_nothing_plain_goes_into_an_encrypted_room(double: MatrixDouble) -> None:
    double.state.append({"type": "m.room.encryption", "content": {"algorithm": "m.megolm.v1.aes-sha2"}})
    with pytest.raises(NotSent, match="encrypted"):
        await account(double).send(KEPT, "hello")
    with pytest.raises(ChatClosed, match="encrypted"):
        await account(double).send(ROOM, "hello")
    double.state[:] = [member(ME), member(ADA), member("@ola:house.test", "invite")]
    with pytest.raises(ChatClosed, match="alone"):
        await account(double).send(KEPT, "hello")
    assert double.sent == []
    double.state[:] = [member(ME), member(ADA), member("@ola:house.test", "leave")]
    await account(double).send(KEPT, "hello")
    assert len(double.sent) == 1


async def test_the_same_word_is_the_same_event(double: MatrixDouble) -> None:
    await account(double).send(KEPT, "hello", once="one")
    await account(double).send(KEPT, "hello", once="one")
    await account(double).send(KEPT, "hello", once="two")
    assert len(double.sent) == 2


async def test_a_server_that_forgot_its_own_words_is_asked_anew(double: MatrixDouble) -> None:
    double.faults["sync"].append((400, {"errcode": "M_INVALID_PARAM"}))
    got = await account(double).receive(7, 0, "s_of_another_life")
    assert (got.items, got.upto, got.cursor) == ((), 7, "s1")


async def test_events_of_any_shape_hold_up_none_behind_them(double: MatrixDouble) -> None:
    odd: list[Any] = [None, [], {"msgtype": []}, {"m.relates_to": 9}]
    bad: list[Any] = [None, 3, {}, {"type": "m.room.message"}, {"type": 1, "sender": 2, "event_id": 3, "content": 4}]
    bad += [{**said("x"), "content": content} for content in odd]
    bad += [{**said("x"), "content": {"msgtype": "m.text", "body": "b", "m.relates_to": {"rel_type": "m.replace"}}}]
    bad += [{**said("x"), "content": {"msgtype": "m.image", "body": "b", "url": "https://evil.example/x"}}]
    double.timeline[:] = [*bad, said("still here")]
    found = await account(double).receive(0, 0, "s0")
    assert [item.text for item in found.items if item.text] == ["still here"]
    assert found.items[-1].is_own


@pytest.mark.parametrize(
    "answer", [[], "x", 3, {"rooms": []}, {"next_batch": "s", "rooms": {"join": []}}, {"rooms": {}}]
)
async def test_a_sync_of_another_shape_is_a_fault_of_the_server(double: MatrixDouble, answer: Any) -> None:
    double.faults["sync"].append((200, answer))
    with pytest.raises(ServiceDown, match="place"):
        await account(double).receive(0, 0, "s0")


async def test_a_file_that_is_too_large_is_cut_off(double: MatrixDouble) -> None:
    double.file = b"x" * 3_000_000
    told = RemoteFile(id="mxc://house.test/abc", name="a.bin", size_bytes=10)
    with pytest.raises(ToolFailed, match=r"a\.bin is larger than 1 MB"):
        await account(double).fetch(told, 1_000_000)
    with pytest.raises(ToolFailed, match="larger"):
        await account(double).fetch(RemoteFile(id="file:///etc/passwd", name="p"), 1_000_000)
    assert await account(double).fetch(told, 4_000_000) == double.file


@pytest.mark.parametrize(
    "sign", ["&", "漢", "😀", '"', "\\", "<", "**a** ", "[a](https://example.org/" + "b" * 90 + ") "]
)
def test_every_part_is_an_event_that_a_server_takes(sign: str) -> None:
    double = MatrixAccount(MatrixForm(address="https://h.test", user=ME, password=SecretStr("p")), Store())
    parts = double.parts(sign * (3 * PART_UNITS // len(sign)))
    assert parts
    for part in parts:
        content = events.content_of(part, (), is_silent=False)
        assert len(json.dumps(content, ensure_ascii=False).encode()) < 64_000


def test_a_question_says_how_it_is_answered() -> None:
    buttons = (Button(words="Allow", choice="y:1"), Button(words="Deny", choice="n:1"))
    content = events.content_of("<b>Run?</b>\n<pre>a\nb</pre>", buttons, is_silent=True)
    assert content[events.ANSWERS] == {"👍": "y:1", "👎": "n:1"}
    assert content["body"].startswith("Run?\na\nb\n\n👍 Allow · 👎 Deny")
    assert content["formatted_body"].startswith("<b>Run?</b><br><pre>a\nb</pre><br><br>👍")
    assert content["msgtype"] == "m.notice"


@pytest.mark.parametrize(
    ("text", "mentions", "is_addressed", "left"),
    [
        ("Cortex: hello", [], True, "hello"),
        ("cortex, hello", [], True, "hello"),
        (f"hello {ME}", [], True, "hello"),
        ("hello", [ME], True, "hello"),
        ("I told Cortex so", [], False, "I told Cortex so"),
        ("Cortexes are fine", [], False, "Cortexes are fine"),
        ("hello", ["@ola:house.test"], False, "hello"),
    ],
)
def test_who_is_addressed_in_a_group(text: str, mentions: list[str], is_addressed: bool, left: str) -> None:
    group = MatrixRoom(id=ROOM, members=frozenset({ME, ADA, "@ola:house.test"}), name="Family")
    event = said(text)
    event["content"]["m.mentions"] = {"user_ids": mentions}
    item = events.read(event, group, Me(id=ME, name="Cortex"))
    assert item is not None
    assert (item.is_addressed, item.text, item.group, item.is_own) == (is_addressed, left, "Family", False)


def test_what_was_said_before_cortex_was_asked_in_is_not_heard() -> None:
    asked, joined = member(ME, "invite"), {**member(ME), "unsigned": {"prev_content": {"membership": "invite"}}}
    renamed = {**member(ME), "unsigned": {"prev_content": {"membership": "join"}}}
    rows = [said("old"), asked, said("new"), joined, said("newer"), renamed, said("newest")]
    texts = [row["content"].get("body") for row in events.heard_since(rows, ME)]
    assert texts == ["new", None, "newer", None, "newest"]


@pytest.mark.parametrize("user", ["cortex", "@cortex", "cortex:example.org", "@a b:c", "@:c"])
def test_a_user_is_written_in_full(user: str) -> None:
    with pytest.raises(ValidationError, match="@name:server"):
        MatrixForm(address="https://h.test", user=user, password=SecretStr("p"))


def test_a_key_is_needed() -> None:
    with pytest.raises(ValidationError, match="enter the password"):
        MatrixForm(address="https://h.test", user=ME)


def said(text: str) -> dict[str, Any]:
    content = {"msgtype": "m.text", "body": text}
    return {"type": "m.room.message", "sender": ADA, "event_id": "$a", "content": content}


def member(id: str, how: str = "join") -> dict[str, Any]:
    return {"type": "m.room.member", "sender": id, "state_key": id, "content": {"membership": how}}
