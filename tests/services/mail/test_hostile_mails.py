"""Mails as nobody should write them: each is listed and read, or refused in words, within the limits of the child."""

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.integrations.mail import answers
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


def heads_in(*answer: object) -> list[RawHead]:
    return list(answers.heads_of(answers.fetched(answer), 100))


def test_what_a_server_answers_is_read_or_passed_over() -> None:
    assert heads_in(b"1 (FLAGS (\\Seen))") == []
    told = b'1 (UID 7 FLAGS (\\Seen $x \\Answered) RFC822.SIZE 9 INTERNALDATE "99-Foo-1 x" BODY[H] {1}'
    (head,) = heads_in((told, b"h"), b")")
    assert (head.uid, head.flags, head.size, head.at.year) == (7, ["seen", "answered"], 9, 1970)
    assert answers.placed([b"12 3:5 7:9"])[1].uid == 8
    assert len(answers.placed([b"12 1 1:999999999999"])) <= 1_000
    assert answers.placed([b"nonsense"]) == answers.placed(None) == answers.placed([None]) == []
    assert answers.numbers([5, 1, 2, 3, 9]) == "1:3,5,9"


def test_what_a_server_says_unasked_takes_no_head_away() -> None:
    told = b"1 (UID 7 FLAGS () BODY[HEADER.FIELDS (FROM)] {9}"
    flags = b"1 (UID 7 FLAGS (\\Seen))"
    for answer in ([(told, b"From: a@b"), b")", flags], [flags, (told, b"From: a@b"), b")"]):
        (head,) = heads_in(*answer)
        assert head.headers == b"From: a@b"
    (head,) = heads_in(b'1 (UID 7 BODY[HEADER.FIELDS (FROM)] "")')
    assert head.headers == b""
    for year in (b"01-Jan-0001", b"31-Dec-9999"):
        (head,) = heads_in((b'1 (UID 7 INTERNALDATE "' + year + b' 00:00:00 +0000" BODY[H] {1}', b"x"), b")")
        assert 1970 <= head.at.year <= 2100


def roles_of(*lines: bytes | tuple[bytes, bytes]) -> dict[str, str]:
    found = [one for one in map(answers.listed, lines) if one is not None]
    return {one.name: one.role for one in answers.folders_of(found)}


def test_a_part_is_played_by_what_the_server_marks_or_by_a_name_at_the_top() -> None:
    assert roles_of(b'() "." INBOX.Entw&APw-rfe')["Entwürfe"] == "drafts"
    assert roles_of(b'(\\Trash) "/" M&APw-ll')["Müll"] == "trash"
    marked = roles_of(
        b'(\\HasNoChildren) "/" "Archiv 2019/Drafts"',
        b'(\\Drafts) "/" Drafts',
        b'(\\Drafts) "/" shared/ben/Drafts',
        b'() "/" Old/Trash',
        b'() "/" Customers/Bulk',
        b'() "/" INBOX',
    )
    assert [name for name, role in marked.items() if role] == ["Inbox", "Drafts"]
    assert next(iter(marked)) == "Inbox"
    gmail = [
        b'(\\All \\HasNoChildren) "/" "[Gmail]/All Mail"',
        b'(\\Important) "/" "[Gmail]/Important"',
        b'(\\Flagged) "/" "[Gmail]/Starred"',
        b'(\\Sent) "/" "[Gmail]/Sent Mail"',
    ]
    assert roles_of(*gmail)["[Gmail]/All Mail"] == "archive"
    found = [one for one in map(answers.listed, gmail) if one is not None]
    assert [one.name for one in answers.folders_of(found) if not one.is_all] == ["[Gmail]/Sent Mail"]


def test_a_folder_that_has_no_name_is_passed_over_and_spoils_no_other() -> None:
    lines: list[bytes | tuple[bytes, bytes]] = [
        b'() "/" "R&D"',
        b'() "/" "a\\\\b\\"c"',
        (b'() "/" {3}', b"x y"),
        b"nonsense",
        b'() "/" "' + b"x" * 2_000 + b'"',
    ]
    assert list(roles_of(*lines)) == ['a\\b"c', "x y"]


def test_numbers_that_no_column_holds_are_none() -> None:
    assert answers.number([b"9" * 20], 32) == 0
    assert answers.number([b"4294967295"], 32) == 4294967295
    assert answers.uids_in([b"1 2", b"3 x 99999999999", None]) == [1, 2, 3]
