"""No word of a mail is lost without a sign: all parts are read in their order, and what was not is on its card."""

import io
from base64 import b64encode
from collections.abc import Callable

import pytest

from cortex.integrations.documents import mail
from cortex.integrations.documents.charsets import codec_of
from cortex.integrations.documents.kinds import HEAD_BYTES, kind_of
from cortex.integrations.documents.pages import Pages
from cortex.integrations.foreign.documents import ReadingSession


def mixed(*parts: str, kind: str = "mixed", head: str = "") -> bytes:
    inner = "".join(f"--b\n{part}\n" for part in parts)
    return f'Subject: s\n{head}Content-Type: multipart/{kind}; boundary="b"\n\n{inner}--b--\n'.encode()


def text(words: str, *, kind: str = "plain", head: str = "") -> str:
    return f"Content-Type: text/{kind}\n{head}\n{words}"


def encoded(words: str) -> str:
    return b64encode(words.encode()).decode()


def read(data: bytes) -> tuple[str, str]:
    """All text of a mail, and its note."""
    pages = Pages()
    assert kind_of(data[:HEAD_BYTES], "a.eml") == "mail"
    mail.read(data, pages)
    found = pages.found()
    return "\n\n".join(text for _, text in found.pages), found.note


PDF = 'Content-Type: application/pdf; name="bill.pdf"\nContent-Transfer-Encoding: base64\n\nJVBERi0='
HTML = "<table><tr><td>Code</td><td>4711</td></tr></table><ul><li>first</li></ul><nav>menu words</nav>"
INVITATION = (
    "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Meet\\, all\nLOCATION:Ro\n om five\nDTSTART:20270101T100000Z\nEND:VEVENT\n"
)
WORDS: dict[str, tuple[bytes, list[str], str]] = {
    "a plain part that is empty": (
        mixed(text(""), text(HTML, kind="html"), kind="alternative"),
        ["Code", "4711", "first", "menu words"],
        "",
    ),
    "a plain part that points to the other": (
        mixed(text("View this in HTML."), text(HTML, kind="html"), kind="alternative"),
        ["4711", "View this in HTML."],
        "",
    ),
    "an HTML part with less": (
        mixed(text("The code is 4711, bring it."), text("<p>Hello</p>", kind="html"), kind="alternative"),
        ["The code is 4711", "Hello"],
        "",
    ),
    "forms that differ in one number": (
        mixed(
            text("Pay 100 euros by May, please."),
            text("<p>Pay 110 euros by May, please.</p>", kind="html"),
            kind="alternative",
        ),
        ["Pay 100 euros", "Pay 110 euros"],
        "",
    ),
    "forms in forms": (
        mixed(
            text("short"),
            'Content-Type: multipart/related; boundary="r"\n\n--r\n'
            + text("<p>long form with 4711</p>", kind="html")
            + "\n--r\nContent-Type: image/png; name=logo.png\n\nx\n--r--",
            kind="alternative",
        ),
        ["4711", "short"],
        "2 of 3 parts read. Not read: logo.png.",
    ),
    "what is attached to one of the forms": (
        mixed(
            text("see yes no"),
            'Content-Type: multipart/mixed; boundary="r"\n\n--r\n'
            + text("<p>see yes no</p>", kind="html")
            + "\n--r\nContent-Type: message/rfc822\n\nSubject: the old matter\nFrom: zoe@x\n\nsee"
            + "\n--r\n"
            + text("yes\nno", head="Content-Disposition: attachment; filename=votes.txt\n")
            + "\n--r--",
            kind="alternative",
        ),
        ["see yes no", "Forwarded mail:", "zoe@x", "the old matter", "see", "[votes.txt]", "yes\nno"],
        "",
    ),
    "a forwarded mail that is called a file": (
        mixed(
            text("x"),
            "Content-Type: application/octet-stream; name=old.eml\n\nSubject: old\n"
            f"Content-Transfer-Encoding: base64\n\n{encoded('the 4711')}",
        ),
        ["x", "Forwarded mail:", "old", "the 4711"],
        "",
    ),
    "words with colons where headers may be": (
        mixed("Note: the 4711 is here", "https://example.org/ is there\n\nand more"),
        ["Note: the 4711 is here", "https://example.org/ is there", "and more"],
        "",
    ),
    "a list's footer": (
        mixed(text("Body."), text("To leave the list, write to x.")),
        ["Body.", "To leave the list"],
        "",
    ),
    "text between attachments": (
        mixed(text("one"), PDF, text("two"), PDF, text("three")),
        ["one", "bill.pdf", "two", "bill.pdf", "three"],
        "3 of 5 parts read. Not read: bill.pdf, bill.pdf.",
    ),
    "a text that is attached": (
        mixed(text("See there."), text("the 4711", head="Content-Disposition: attachment; filename=notes.txt\n")),
        ["See there.", "[notes.txt]", "the 4711"],
        "",
    ),
    "a forwarded mail": (
        mixed(text("fyi"), "Content-Type: message/rfc822\n\nSubject: inner matter\nFrom: bo@x\n\nkept words"),
        ["fyi", "Subject: inner matter", "kept words"],
        "",
    ),
    "a forwarded mail in base64": (
        mixed("Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n" + encoded("Subject: in\n\nkept")),
        ["Subject: in", "kept"],
        "",
    ),
    "a digest": (
        mixed("\nSubject: first\n\none", "\nSubject: second\n\ntwo", kind="digest"),
        ["first", "one", "second", "two"],
        "",
    ),
    "a root that does not come first": (
        mixed("Content-Type: image/gif\nContent-ID: <i>\n\nx", text("<b>root 4711</b>", kind="html"), kind="related"),
        ["root 4711"],
        "1 of 2 parts read. Not read: image/gif.",
    ),
    "an invitation": (mixed(text("Come."), text(INVITATION, kind="calendar")), ["Come.", "Meet, all", "Room five"], ""),
    "enriched text": (mixed(text("<bold>Big</bold> <<4711>", kind="enriched")), ["Big <4711>"], ""),
    "a report": (
        mixed(
            text("It came back."),
            "Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; bo@x",
            "Content-Type: text/rfc822-headers\n\nSubject: the old matter",
            kind="report",
        ),
        ["It came back.", "Final-Recipient: rfc822; bo@x", "the old matter"],
        "",
    ),
    "a text of no known type": (
        mixed(text("a"), "Content-Type: application/octet-stream; name=notes.md\n\nthe 4711"),
        ["[notes.md]", "the 4711"],
        "",
    ),
    "a boundary in single quotes": (
        b"Subject: s\nContent-Type: multipart/mixed; boundary='b'\n\n--'b'\n\nin it\n--'b'--",
        ["s\n\nin it"],
        "",
    ),
    "a mark ahead of the headers": (b"\xef\xbb\xbfSubject: kept\n\nwords", ["Subject: kept", "words"], ""),
    "blank lines ahead of the headers": (
        b"\n\nSubject: kept\nContent-Type: text/html\n\n<b>wo</b>rds",
        ["Subject: kept\n\nwords"],
        "",
    ),
    "a mail in wide letters": ("Subject: kept\n\nwörds".encode("utf-16"), ["Subject: kept\n\nwörds"], ""),
    "a signed mail": (
        mixed(text("signed words"), "Content-Type: application/pgp-signature; name=s.asc\n\nx", kind="signed"),
        ["signed words"],
        "1 of 2 parts read. Not read: s.asc (a signature).",
    ),
    "S/MIME": (
        b"Subject: s\nContent-Type: application/pkcs7-mime; smime-type=signed-data; name=smime.p7m\n\nx",
        [],
        "0 of 1 parts read. Not read: smime.p7m (signed with S/MIME: its text is inside).",
    ),
    "Outlook's own": (
        mixed(text("a"), "Content-Type: application/ms-tnef; name=winmail.dat\n\nx"),
        ["a"],
        "1 of 2 parts read. Not read: winmail.dat (Outlook's own format).",
    ),
    "PGP in the text": (
        mixed(text("-----BEGIN PGP MESSAGE-----\nx")),
        ["PGP MESSAGE"],
        "A part is encrypted with PGP.",
    ),
    "a file written into the text": (
        mixed(text("before\nbegin 644 a.bin\n#0V%T\n`\nend\nafter")),
        ["before", "after"],
        "1 of 2 parts read. Not read: a.bin.",
    ),
    "words around the parts": (
        b"Subject: s\nContent-Type: multipart/mixed; boundary=b\n\nahead of all\n--b\n\nin it\n--b--\nfooter behind\n",
        ["ahead of all", "in it", "footer behind"],
        "",
    ),
    "an end that is missing": (
        b"Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nkept 4711",
        ["kept 4711"],
        "",
    ),
    "a boundary that never comes": (
        b"Subject: s\nContent-Type: multipart/mixed; boundary=b\n\nkept 4711",
        ["kept 4711"],
        "",
    ),
    "no boundary": (b"Subject: s\nContent-Type: multipart/mixed\n\nkept 4711", ["kept 4711"], ""),
    "flowed lines": (
        mixed(text("a long \nline\n> of her \n> words", head="", kind='plain; format=flowed; delsp="no"')),
        ["a long line", "> of her words"],
        "",
    ),
    "flowed lines without blanks": (
        mixed(text("Wort \nteil", kind="plain; format=flowed; delsp=yes")),
        ["Wortteil"],
        "",
    ),
    "base64 with a footer in the open": (
        mixed(
            text(
                encoded("the 4711") + "\n____________________\nlist words here",
                head="Content-Transfer-Encoding: base64\n",
            )
        ),
        ["the 4711", "list words here"],
        "",
    ),
    "base64 cut, with a stray sign": (
        mixed(text(encoded("the code is 4711")[:-3].replace("Y", "!Y", 1), head="Content-Transfer-Encoding: base64\n")),
        ["the code is"],
        "",
    ),
    "text that is not base64 as it says": (
        mixed(text("plain 4711 words", head="Content-Transfer-Encoding: base64\n")),
        ["plain 4711 words"],
        "",
    ),
    "bad quoted-printable": (
        mixed(text("a=XXb=\nc =3D4711", head="Content-Transfer-Encoding: Quoted-Printable \n")),
        ["=4711"],
        "",
    ),
    "uuencode as the way": (
        mixed(text("begin 644 x\n#0V%T\n`\nend", head="Content-Transfer-Encoding: x-uuencode\n")),
        ["Cat"],
        "",
    ),
}


@pytest.mark.parametrize("what", WORDS)
def test_all_words_are_read_in_their_order(what: str) -> None:
    data, words, note = WORDS[what]
    whole, found_note = read(data)
    at = 0
    for word in words:
        where = whole.find(word, at)
        assert where >= 0, (word, whole)
        at = where if "Only in the form" in whole else where + len(word)
        at = 0 if "Only in the form" in whole else at
    assert found_note == note


def test_a_kept_web_page_is_read_as_the_mail_that_it_is() -> None:
    page = mixed(text("<p>Gruss</p>", kind="html"), kind="related")
    assert {kind_of(page[:HEAD_BYTES], f"page{ending}") for ending in (".mht", ".MHTML")} == {"mail"}


def test_the_same_words_in_two_forms_are_read_once() -> None:
    plain = "Dear Ada,\nthe meeting about\nthe roof is on Monday.\n* bring the plan\nsee https://example.org/a"
    html = "<p>Dear Ada,</p><p>the meeting about the roof is on <b>Monday</b>.</p><ul><li>bring the plan</li></ul>"
    html += '<p>see <a href="https://example.org/a">https://example.org/a</a></p>'
    whole, _ = read(mixed(text(plain), text(html, kind="html"), kind="alternative"))
    assert whole.count("roof") == 1
    assert "Only in the form" not in whole


HEADERS: dict[str, bytes] = {
    "an address that is none": b"From: <<@@>, a@b <c\nTo: :;,,;\n\n",
    "a date that is none": b"Date: Mon, 99 Foo 20266 99:99:99 +9999\n\n",
    "an unknown encoding in a word": b"Subject: =?x-none?Q?a=FF?= =?utf-8?B?####?= =?utf-8?Q?=?=\n\n",
    "a zero": b"Subject: a\0b\nX: \0\n\n",
    "raw bytes": "Subject: Grüße\nFrom: Ä <a@b>\n\n".encode("latin-1"),
    "a line of a megabyte": b"Subject: " + b"x" * 1_000_000 + b"\n\n",
    "a line without a colon": b"Subject: a\nthis is no header\nFrom: a@b\n\n",
    "a mailbox's line": b"From a@b Thu Jan  1 00:00:00 1970\nSubject: a\n\n",
    "only a blank line": b"\n",
    "a type that is none": b"Content-Type: ;;;=; charset=\n\n",
    "a type twice": b"Content-Type: text/plain\nContent-Type: ((((\n\n",
    "a broken parameter": b"Content-Type: text/plain; charset*0*=utf-8''%; charset*x*=; name*=x'y'%zz\n\n",
    "an id that is none": b"Message-ID: <[@\nReferences: <\n\n",
    "many folds": b"Subject: a" + b"\n b" * 5_000 + b"\n\n",
    "no space, odd case": b'SUBJECT:a\ncontent-TYPE :TEXT/Plain ; Charset = "UTF-8 " \n\n',
    "a way that is none": b"Content-Transfer-Encoding: 8 bit; x=y\n\n",
    "sender in comments": b'From: (((((((a) <b@c>\nSender: "\n\n',
}


@pytest.mark.parametrize("what", HEADERS)
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"], ids=["unix", "mail", "old mac"])
def test_no_header_costs_the_text(what: str, ends: str) -> None:
    data = HEADERS[what] + "The code is 4711, grüße.\nSecond line.".encode()
    whole, note = read(data.replace(b"\n", ends.encode()))
    assert "The code is 4711, grüße.\nSecond line." in whole
    assert "no header" not in whole
    assert note == ""


def test_encoded_words_are_joined_and_cut_letters_too() -> None:
    data = b"Subject: =?utf-8?B?w7w=?= =?utf-8?Q?=C3?=\n =?utf-8?Q?=B6_x?= and =?ks_c_5601-1987?B?sKG/oQ==?=\n\nx"
    assert read(data)[0].startswith("Subject: üö x and 가에")


@pytest.mark.parametrize(
    ("name", "codec", "words"),
    [
        ("ks_c_5601-1987", "cp949", "똠방각하"),
        ("gb2312", "gb18030", "朱镕基 €"),
        ("GBK", "gb18030", "㐂 words"),
        ("x-sjis", "cp932", "①髙橋"),
        ("Shift_JIS", "cp932", "㈱ ⅷ"),
        ("iso-8859-8-i", "iso8859-8", "שלום"),
        ("unicode-1-1-utf-7", "utf-7", "Grüße +1"),
        ("windows-874", "cp874", "สวัสดี €"),
        ("tis-620", "cp874", "สวัสดี"),
        ("x-mac-roman", "mac-roman", "Straße"),
        ("x-mac-cyrillic", "mac-cyrillic", "Договор"),
        ("cp-850", "cp850", "Größe"),
        ("dos-437", "cp437", "Größe"),
        ("utf8mb4", "utf-8", "Größe 😀"),
        ('"utf-8 "', "utf-8", "Größe"),
        ("iso-8859-1", "cp1252", "“Größe” €"),
        ("latin-9", "iso8859-15", "Größe €"),
        ("iso-2022-jp", "iso2022_jp", "賃貸契約書"),
        ("hz-gb-2312", "hz", "中文"),
        ("iso-2022-kr", "iso2022_kr", "한국어"),
        ("cswindows31j", "cp932", "①"),
        ("big5-hkscs", "big5hkscs", "繁體 嘅"),
        ("koi8-ru", "koi8-u", "Київ"),
        ("ibm-1251", "cp1251", "Договор"),
        ("iso-10646-ucs-2", "utf-16-le", "wide"),
        ("us-ascii", "utf-8", "not Äscii"),
        ("iso-8859-1", "utf-8", "Größe"),
        ("utf-8", "cp1252", "Herr Müller kommt"),
    ],
)
def test_an_encoding_is_known_by_each_of_its_names(name: str, codec: str, words: str) -> None:
    head = f"Subject: s\nContent-Type: text/plain; charset={name}\nContent-Transfer-Encoding: base64\n\n"
    assert read(head.encode() + b64encode(words.encode(codec)))[0].partition("\n\n")[2] == words


@pytest.mark.parametrize(
    "name", ["rot13", "zlib", "punycode", "unicode_escape", "idna", "undefined", "", "x" * 5000, "\0"]
)
def test_what_is_no_encoding_of_texts_is_not_taken_for_one(name: str) -> None:
    assert codec_of(name) == ""


HOSTILE: dict[str, Callable[[], bytes]] = {
    "many parts": lambda: mixed(*("\nx" for _ in range(20_000))),
    "deep parts": lambda: b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(3_000)
    ),
    "mails in mails": lambda: b"Content-Type: message/rfc822\n\n" * 30_000 + b"x",
    "many headers": lambda: b"X: y\n" * 500_000 + b"\nx",
    "lines that are no headers": lambda: b"Subject: a\n" + b"no header\n" * 500_000 + b"From: x\n\nx",
    "many encoded words": lambda: b"Subject: " + b"=?utf-8?Q?a?= " * 100_000 + b"\n\nx",
    "many forms": lambda: mixed(*(text(f"word{n} " * 2_000) for n in range(400)), kind="alternative"),
    "begins without an end": lambda: mixed(text("begin 644 a\n" * 100_000 + "\nend")),
    "semicolons in an open quote": lambda: mixed(*[text("x", kind=f'plain; x="{";" * 90_000}')] * 9),
    "marks without an end": lambda: mixed(text("<param>" * 400_000, kind="enriched")),
    "a boundary that begins each line": lambda: b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n" * 1_000_000,
}


async def test_hostile_mails_end_within_bounds(session: ReadingSession) -> None:
    found = {what: await session.extract(io.BytesIO(make()), "a.eml") for what, make in HOSTILE.items()}
    assert {what: one.processor_s for what, one in found.items() if one.processor_s > 15} == {}
    cut_off = ("too long and was stopped", "too much memory", "too complex")
    assert {what: one.note for what, one in found.items() if any(end in one.note for end in cut_off)} == {}


@pytest.mark.parametrize(("name", "codec"), [("x-cp437", "cp437"), ("x-mac-greek", "mac-greek")])
def test_an_encoding_that_a_program_marks_as_its_own_is_known(name: str, codec: str) -> None:
    assert codec_of(name) == codec
