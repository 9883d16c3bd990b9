"""Mails as nobody should write them: each is listed and read, or refused in words, within the limits of the child."""

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.integrations.mail.answers import folder_of, head_of, numbers, placed
from cortex.integrations.mail.values import RawHead
from cortex.ports.foreign import all_of
from cortex.services.mail.reading import FilePiece, ListedHead, TextRead, file_of, heads_of, text_of
from tests.living_house import LivingHouse, living_house
from tests.still_clock import StillClock


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home", clock=StillClock()) as opened:
        yield opened


def raw(uid: int, headers: bytes) -> RawHead:
    return RawHead(uid=uid, flags=(), size=1, at=StillClock().at, headers=headers)


HEADS = [
    b"",
    b"\0\xff\xfe",
    b"From: " + b"a" * 100_000 + b"@example.org\r\nSubject: x\r\n\r\n",
    b"From: =?utf-8?b?////?= <a@b.c>\r\n\r\n",
    b"From: " + b"(" * 5_000 + b"\r\n\r\n",
    b"From: " + b'"' * 5_001 + b"\r\nTo: " + b"<" * 9_000 + b"\r\n\r\n",
    b"Subject: =?utf-8?q?a=0Ab=0D=0ABcc:_x?=\r\n\r\n",
    b"Subject: a\xe4\xf6\r\nFrom: =?iso-8859-1?q?J=F6rg?= <j@example.org>\r\n\r\n",
    b"References: " + b" ".join(b"<%d@x>" % n for n in range(5_000)) + b"\r\nMessage-ID: <end@x>\r\n\r\n",
    b"Message-ID: <a b@x>\r\nIn-Reply-To: <" + b"x" * 2_000 + b"@x>\r\n\r\n",
    b"To: " + b", ".join(b"p%d@example.org" % n for n in range(3_000)) + b"\r\n\r\n",
    b"Subject: " + "日本語\u202e".encode() + b"\r\n\r\n",
]


async def test_any_head_is_listed_and_spoils_no_other(house: LivingHouse) -> None:
    given = [raw(uid, headers) for uid, headers in enumerate([*HEADS, b"Subject: last\r\n\r\n"], start=1)]
    said = await heads_of(house.cortex.foreign, given)
    assert sorted(said) == [one.uid for one in given]
    assert said[len(given)].subject == "last"
    assert "\n" not in said[7].subject
    assert said[8].sender == ["j@example.org", "Jörg"]
    assert (said[9].references[0], said[9].message_id) == ("<0@x>", "<end@x>")
    assert len(said[9].references) <= 50
    assert len(said[11].to) == 50


async def test_deep_and_endless_mails_are_read_within_limits(house: LivingHouse) -> None:
    deep = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(2_000))
    many = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"--b\r\n\r\nx\r\n" * 20_000 + b"--b--\r\n"
    long = b"Subject: long\r\n\r\n" + b"word " * 1_000_000
    page = b"Content-Type: text/html\r\n\r\n" + b"<div>" * 50_000 + b"hello"
    for data in (deep, many, long, page, b"", b"\r\n\r\n", b"\0" * 1_000):
        said = await text_of(house.cortex.foreign, data)
        assert len(said.text) <= 200_000
        assert len(said.files) <= 100


async def test_html_becomes_text_and_nothing_of_it_is_fetched(house: LivingHouse) -> None:
    page = (
        b"Subject: News\r\nFrom: a@b.example\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
        b"<p>Read <b>this</b></p><script>alert(1)</script><img src='https://spy.example/x.gif'>"
        b"<style>p {color: red}</style>"
    )
    said = await text_of(house.cortex.foreign, page)
    assert "Read" in said.text
    assert "alert" not in said.text
    assert "color" not in said.text


async def test_a_name_of_a_file_leads_nowhere(house: LivingHouse) -> None:
    data = (
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/x-y\r\n"
        b'Content-Disposition: attachment; filename="../../etc/passwd"\r\n\r\nroot\r\n--b--\r\n'
    )
    said = await text_of(house.cortex.foreign, data)
    assert [one.size for one in said.files] == [4]
    assert await file_of(house.cortex.foreign, data, 1) == b"root"


async def test_an_answer_of_another_shape_is_refused(house: LivingHouse) -> None:
    order = io.BytesIO(b'{"file": 0}\nSubject: x\r\n\r\nhello')
    with pytest.raises(UserError):
        await all_of(house.cortex.foreign, "mail_text", order, FilePiece)
    with pytest.raises(UserError):
        await all_of(house.cortex.foreign, "mail_heads", io.BytesIO(json.dumps([["x", "!"]]).encode()), ListedHead)
    assert TextRead.model_config["extra"] == "forbid"


def test_what_a_server_answers_is_read_or_passed_over() -> None:
    assert head_of((b"1 (FLAGS (\\Seen))", b"")) is None
    head = head_of((b'1 (UID 7 FLAGS (\\Seen $x \\Answered) RFC822.SIZE 9 INTERNALDATE "99-Foo-1 x"', b"h"))
    assert head is not None
    assert (head.uid, head.flags, head.size, head.at.year) == (7, ["seen", "answered"], 9, 1970)
    assert placed([b"12 3:5 7:9"])[1].uid == 8
    assert len(placed([b"12 1 1:999999999999"])) <= 1_000
    assert placed([b"nonsense"]) == placed(None) == placed([None]) == []
    assert numbers([5, 1, 2, 3, 9]) == "1:3,5,9"
    assert folder_of("INBOX.Entwürfe", ".", ()).role == "drafts"
    assert folder_of("[Gmail]/All Mail", "/", ("\\All",)).is_all
    assert folder_of("Müll", "/", ("\\Trash",)).role == "trash"
