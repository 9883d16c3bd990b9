"""What of a PDF, DOCX, ODT, web page, table or text was not read is said; what can be read is not left out."""

import io
import re
import zipfile

import pytest

from cortex.integrations.documents import docx as docx_reader
from cortex.integrations.documents import odt as odt_reader
from cortex.integrations.documents import plain
from cortex.integrations.documents.kinds import HEAD_BYTES, Kind, UnreadableError, kind_of
from cortex.integrations.documents.pages import Pages
from cortex.integrations.foreign.documents import ReadingSession
from tests.made_documents import OFFICE, TEXT, WORD, odt, packed, pdf_of, stream

DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"


def told(pages: Pages) -> tuple[str, str]:
    found = pages.found()
    return "\n\n".join(text for _, text in found.pages), found.note


def read_plain(name: str, data: bytes) -> tuple[str, str]:
    pages = Pages()
    kind: Kind = kind_of(data[:HEAD_BYTES], name)
    plain.read(data, pages, kind)
    return told(pages)


def said(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def part(tag: str, body: str) -> str:
    return f'<w:{tag} xmlns:w="{WORD}" xmlns:a="{DRAWING}" xmlns:c="{CHART}">{body}</w:{tag}>'


def a_docx(body: str, **parts: str | bytes) -> tuple[str, str]:
    ends = {"__": "/", "_xml": ".xml", "_htm": ".htm"}
    named = {re.sub("__|_xml|_htm", lambda end: ends[end[0]], name): data for name, data in parts.items()}
    whole = {"[Content_Types].xml": "<Types/>", "word/document.xml": part("document", f"<w:body>{body}</w:body>")}
    pages = Pages()
    docx_reader.read(packed({**whole, **named}), pages)
    return told(pages)


def test_a_docx_is_read_beside_its_body_too() -> None:
    text, note = a_docx(
        said("Body.")
        + f"<w:p><w:r><w:pict><w:txbxContent>{said('in a box')}</w:txbxContent></w:pict></w:r></w:p>"
        + "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell 4711</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
        + "<w:p><w:r><w:t>co</w:t><w:noBreakHyphen/><w:t>op</w:t></w:r></w:p>"
        + '<w:p><w:r><w:t>5 </w:t><w:sym w:font="Symbol" w:char="03A9"/></w:r></w:p>'
        + '<w:p><w:r><w:sym w:font="Wingdings" w:char="F0B7"/><w:t> point</w:t></w:r></w:p>'
        + "<w:ins><w:p><w:r><w:t>put in</w:t></w:r></w:p></w:ins>",
        word__header1_xml=part("hdr", said("Letterhead")),
        word__header2_xml=part("hdr", said("Letterhead")),
        word__footer1_xml=part("ftr", said("Account 12 34")),
        word__footnotes_xml=part("footnotes", said("a footnote")),
        word__endnotes_xml=part("endnotes", said("an endnote")),
        word__comments_xml=part("comments", f'<w:comment w:author="Bo">{said("too dear")}</w:comment>'),
        word__afchunk_htm="<p>laid in <b>words</b></p>",
        word__charts__chart1_xml=part("x", "<c:cat><c:v>Quarter</c:v></c:cat><a:p><a:r><a:t>Sales</a:t></a:r></a:p>"),
        word__diagrams__data1_xml=part("x", "<a:p><a:r><a:t>Boxes and arrows</a:t></a:r></a:p>"),
    )
    for word in (
        *("Body.", "in a box", "cell 4711", "co-op", "5 Ω", "• point", "put in", "Letterhead"),
        *(
            "Account 12 34",
            "a footnote",
            "an endnote",
            "Bo:",
            "too dear",
            "laid in words",
            "Sales",
            "Quarter",
            "Boxes and arrows",
        ),
    ):
        assert word in text, word
    assert text.count("Letterhead") == 1
    assert note == ""


def test_what_of_a_docx_is_not_read_is_counted() -> None:
    text, note = a_docx(
        said("Body.") + "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>",
        **{"word__media__image1.png": b"x", "word__media__image2.png": b"x", "word__embeddings__a.xlsx": b"x"},
        **{"word__afchunk.mht": b"x"},
    )
    assert "gone" not in text
    assert all(part in note for part in ("1 embedded file", "2 pictures", "1 tracked deletion", "1 inserted document"))


def test_what_is_damaged_beside_the_text_costs_no_word_of_it() -> None:
    text, note = a_docx(
        said("Body."),
        word__styles_xml="<broken",
        word__comments_xml="<broken",
        word__header1_xml='<!DOCTYPE a [<!ENTITY x "y">]><a/>',
        word__footer1_xml=part("ftr", said("Foot")),
    )
    assert text == "Body.\n\nFooter:\nFoot"
    assert "3 damaged parts" in note
    with zipfile.ZipFile(io.BytesIO(odt("<text:p>Body.</text:p>"))) as file:
        parts: dict[str, str | bytes] = {name: file.read(name) for name in file.namelist()}
    pages = Pages()
    odt_reader.read(packed({**parts, "styles.xml": "<broken"}), pages)
    assert (told(pages)[0], "1 damaged part" in told(pages)[1]) == ("Body.", True)


def test_drawn_words_are_read_and_old_form_fields_counted() -> None:
    field = "<w:r><w:fldChar><w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData></w:fldChar></w:r>"
    drawn = (
        '<w:p><w:r><w:pict><v:textpath xmlns:v="urn:schemas-microsoft-com:vml" string="DRAFT"/></w:pict></w:r></w:p>'
    )
    words, unread = a_docx(f"<w:p>{field}</w:p>{drawn}")
    assert (words, "1 form field" in unread) == ("DRAFT", True)
    form = 'xmlns:form="urn:oasis:names:tc:opendocument:xmlns:form:1.0"'
    pages = Pages()
    odt_reader.read(odt(f'<form:text {form} form:current-value="950"/><text:p>Rent</text:p>'), pages)
    assert (told(pages)[0], "1 form field" in told(pages)[1]) == ("Rent", True)


def test_a_cell_without_words_is_a_cell() -> None:
    cells = "".join(f"<w:tc>{said(word)}{said(word)}</w:tc>" for word in ("Ada", "", "x", ""))
    assert a_docx(f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>")[0] == "Ada Ada\t\tx x"
    cells = "".join(f"<table:table-cell><text:p>{word}</text:p></table:table-cell>" for word in ("Ada", "", "x"))
    pages = Pages()
    odt_reader.read(odt(f"<table:table><table:table-row>{cells}</table:table-row></table:table>"), pages)
    assert pages.whole() == "Ada\t\tx"


def test_an_odt_is_read_beside_its_body_too() -> None:
    body = (
        "<text:p>Body<office:annotation><dc:creator>Bo</dc:creator><text:p>too dear</text:p></office:annotation>."
        "</text:p>"
        "<table:table><table:table-row><table:table-cell><text:p>cell 4711</text:p></table:table-cell>"
        "</table:table-row></table:table>"
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>gone</text:p></text:deletion>"
        "</text:changed-region></text:tracked-changes>"
    ).replace("<dc:creator>", '<dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">')
    styles = (
        f'<office:document-styles xmlns:office="{OFFICE}" xmlns:text="{TEXT}"><office:styles><text:p>no words</text:p>'
        "</office:styles><office:master-styles><text:p>Letterhead</text:p></office:master-styles></office:document-styles>"
    )
    with zipfile.ZipFile(io.BytesIO(odt(body))) as file:
        parts: dict[str, str | bytes] = {name: file.read(name) for name in file.namelist()}
    pages = Pages()
    parts |= {"styles.xml": styles, "Pictures/a.png": b"x", "Object 1/content.xml": "<a/>"}
    odt_reader.read(packed(parts), pages)
    text, note = told(pages)
    for word in ("Body", "too dear", "Bo", "cell 4711", "Letterhead"):
        assert word in text, word
    assert "gone" not in text
    assert "no words" not in text
    assert all(part in note for part in ("1 embedded document", "1 picture", "1 tracked deletion"))


def a_pdf(*pages: tuple[bytes, bytes], catalog: bytes = b"", more: tuple[bytes, ...] = ()) -> bytes:
    """Pages of drawn content and what else their dictionary holds."""
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    image = stream(b"\xff", b"/Type/XObject/Subtype/Image/Width 1/Height 1/BitsPerComponent 8/ColorSpace/DeviceGray")
    first = 5
    kids = b" ".join(b"%d 0 R" % (first + 2 * number) for number in range(len(pages)))
    objects = [b"<</Type/Catalog/Pages 2 0 R%b>>" % catalog, b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(pages), kids)]
    objects += [font, image]
    for number, (drawn, held) in enumerate(pages):
        head = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]/Resources<</Font<</F 3 0 R>>/XObject<</I 4 0 R>>>>"
        objects += [head + b"/Contents %d 0 R%b>>" % (first + 2 * number + 1, held), stream(drawn)]
    return pdf_of([*objects, *more])


WORDS_DRAWN = b"BT /F 10 Tf 5 50 Td (Read me) Tj ET"
SCAN = b"q 90 0 0 90 5 5 cm /I Do Q"


async def test_a_pdf_says_which_pages_are_pictures_and_reads_forms_and_notes(session: ReadingSession) -> None:
    notes = (
        b"/Annots[<</Type/Annot/Subtype/Widget/FT/Tx/T(rent)/V(950 EUR)/Rect[0 0 9 9]>>"
        b"<</Type/Annot/Subtype/Text/Contents(too dear)/Rect[0 0 9 9]>>]"
    )
    data = a_pdf((WORDS_DRAWN, notes), (SCAN, b""), (WORDS_DRAWN + b" " + SCAN, b""), (b"", b""))
    found = await session.extract(io.BytesIO(data), "a.pdf")
    assert found.pages[0].text == "Read me\n\n[Field rent: 950 EUR]\n[Note: too dear]"
    assert ("page 2 of 4" in found.note, "page 3." in found.note) == (True, True)


STRIPS = b" ".join(b"q 100 0 0 4 0 %d cm /I Do Q" % top for top in range(0, 100, 4))
GROUP = b"/Type/XObject/Subtype/Form/BBox[0 0 1 1]/Resources<</XObject<</I 4 0 R>>>>"


@pytest.mark.parametrize(
    ("drawn", "note"),
    [
        (WORDS_DRAWN + b" " + STRIPS, "Text in large pictures was not read: page 1."),
        (WORDS_DRAWN + b" q 90 0 0 90 5 5 cm /X Do Q", "Text in large pictures was not read: page 1."),
        (WORDS_DRAWN + b" q 9 0 0 9 5 5 cm /X Do Q", ""),
        (b"BT /F 10 Tf 5 50 Td (\\001\\002) Tj ET", "Without text, as of a scan: page 1 of 1."),
    ],
    ids=["strips", "a group", "a small group", "signs that are no letters"],
)
async def test_a_scan_is_known_however_it_is_put_together(session: ReadingSession, drawn: bytes, note: str) -> None:
    data = a_pdf((drawn, b""), more=(stream(b"q 1 0 0 1 0 0 cm /I Do Q", GROUP),))
    found = await session.extract(io.BytesIO(data.replace(b"/I 4 0 R>>>>/C", b"/I 4 0 R/X 7 0 R>>>>/C")), "a.pdf")
    assert found.note == note


async def test_a_pdf_names_the_files_inside(session: ReadingSession) -> None:
    names = b"/Names<</EmbeddedFiles<</Names[(bill.xml) 7 0 R]>>>>"
    file = b"<</Type/Filespec/F(bill.xml)/UF(bill.xml)/EF<</F 8 0 R>>>>"
    data = a_pdf((WORDS_DRAWN, b""), catalog=names, more=(file, stream(b"<a/>", b"/Type/EmbeddedFile")))
    found = await session.extract(io.BytesIO(data), "a.pdf")
    assert ("bill.xml" in found.note, "read" in found.note) == (True, True)


PAGE = (
    "<title>T</title><nav><a href='https://example.org/'>menu words</a></nav><aside class=advert>aside words</aside>"
    "<article><p>{}</p></article><table><tr><th>Rent<td>4711</table><ul><li>item<ul><li>inner</ul></ul><dl><dt>term<dd>meaning</dl>"
    "<div style='display:none'>hidden words</div><form><input value='typed in'><textarea>area</textarea></form>"
    "<noscript>without script</noscript><footer>foot words</footer><img src=x alt='what it shows'>"
).format("main text that is long. " * 40)


def test_a_web_page_that_was_given_is_read_whole() -> None:
    text, note = read_plain("a.html", PAGE.encode())
    for word in (
        *("main text", "menu words", "aside words", "4711", "item", "inner", "term", "meaning", "hidden words"),
        *("typed in", "area", "without script", "foot words", "what it shows"),
    ):
        assert word in text, word
    assert note == ""


@pytest.mark.parametrize(
    ("page", "words", "note"),
    [
        ("<p>a</p><iframe src='b.html'></iframe>", "a", "Not read: a frame (b.html)."),
        ("<p>a</p><iframe srcdoc='<p>inner words</p>'></iframe>", "inner words", ""),
        (
            "<frameset><frame src='x.html'><noframes>no frames here</noframes></frameset>",
            "",
            "Not read: a frame (x.html).",
        ),
        ("<p>a</p><template><p>b</p></template>", "a", "Not read: a template that no program fills in here."),
        ("<p>a</p><object data='c.pdf'>instead</object>", "instead", "Not read: a frame (c.pdf)."),
    ],
)
def test_what_a_web_page_shows_of_elsewhere_is_said(page: str, words: str, note: str) -> None:
    text, found = read_plain("a.html", page.encode())
    assert words in text
    assert found == note


@pytest.mark.parametrize("codec", ["windows-1251", "koi8-r", "utf-8", "iso-8859-5"])
def test_a_web_page_is_in_the_encoding_that_it_names(codec: str) -> None:
    page = f'<html><head><meta http-equiv="Content-Type" content="text/html; charset={codec}"></head><p>Договор</p>'
    assert "Договор" in read_plain("a.html", page.encode(codec))[0]


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "cp1252"])
def test_a_table_is_read_in_each_encoding(codec: str) -> None:
    table = "sep=;\nName;Größe\nÄda;4711\n" + "Bo;12\n" * 30
    text, note = read_plain("a.csv", table.encode(codec))
    assert text.split("\n")[:3] == ["sep=;", "Name;Größe", "Äda;4711"]
    assert note == ""


def test_a_row_with_line_ends_in_quotes_stays_together() -> None:
    rows = "".join(f'{number},"first line\nsecond line"\n' for number in range(41))
    pages = Pages()
    plain.read(rows.encode(), pages, "table")
    assert pages.found().outline[0].startswith("Rows 1 to 40 ")
    assert "Rows 41 to 41" in pages.found().outline[1]
    assert read_plain("a.csv", rows.encode())[0].count("second line") == 41
    stray = 'a,"b\n' + "c,d\n" * 1_000
    assert read_plain("b.csv", stray.encode())[0].count("c,d") == 1_000


def test_a_stray_zero_and_a_wide_row_cost_nothing() -> None:
    wide = ",".join(f"column{number}" for number in range(20_000))
    text, _ = read_plain("a.csv", f"{wide}\na\0b,4711\n".encode())
    assert all(word in text.replace("\n", "") for word in ("column0,", "column19999", "ab,4711"))


def test_letters_that_cannot_be_read_are_counted() -> None:
    _, note = read_plain("a.txt", b"\x81\x8d\x8f words \x81")
    assert "not be read" in note
    assert read_plain("a.txt", "a \ufffd that stood there".encode())[1] == ""


def test_a_long_heading_is_whole_in_the_text() -> None:
    heading = "word " * 60 + "4711"
    assert "4711" in read_plain("a.md", f"# {heading}\n\ntext".encode())[0]


def test_what_is_no_text_is_still_refused() -> None:
    with pytest.raises(UnreadableError, match="cannot read text"):
        kind_of(bytes(range(256)) * 8, "a.bin")
    with pytest.raises(UnreadableError, match="cannot read text"):
        kind_of(b"\0\1\2" * 900, "a.csv")
