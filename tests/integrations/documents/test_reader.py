"""Text out of documents, page by page, and what hostile ones end in. All are read by the real program, shut in."""

import io

import pytest

from cortex.integrations.foreign.documents import LIMITS, DocumentReader, ReadingSession
from cortex.integrations.sandbox import Sandbox
from cortex.ports.documents import Extracted
from tests.integrations.documents.hostile import ACT, HOSTILE
from tests.made_documents import docx, odt, pdf

OLD_OFFICE = (
    "This file is locked with a password or in an old Office format. Save it as DOCX or PDF without a password."
)
SHORTENED = "Only the beginning was read: the document is very long."
BROKEN = "This file is damaged or too complex to be read."
DAMAGED = "This document is damaged and cannot be read."
DAMAGED_PDF = "This PDF is damaged and cannot be read."
ENTITIES = "This document holds a definition of entities, which documents do not need, and was not read."
NO_TEXT = "This PDF has no text: its pages are pictures, as of a scan."
NOTES = {
    "a ZIP bomb": "This document unpacks to far more than a document contains, and was not read.",
    "a million laughs": ENTITIES,
    "an entity that is a file of the server": ENTITIES,
    "elements in elements": "This document is nested too deeply to be read.",
    "page breaks alone": SHORTENED,
    "a locked ODT": "This document is locked with a password. Save a copy without one and add that.",
    "a locked DOCX": OLD_OFFICE,
    "thirty thousand parts": "This document has far more parts than documents have, and was not read.",
    "a DOCX cut off": DAMAGED,
    "a DOCX whose XML is cut off": DAMAGED,
    "text that is called DOCX": "Its name ends in .docx, but it is not a DOCX document, or it is damaged.",
    "an archive in an archive": "This is an archive. Unpack it and add the files that you need.",
    "a packed text": "This is an archive; it contains no text that Cortex can read.",
    "a spreadsheet": "Cortex does not read spreadsheets and presentations. Save it as CSV or PDF.",
    "a locked PDF": "This PDF is locked with a password. Save a copy without one and add that.",
    "a PDF of nothing": DAMAGED_PDF,
    "a PDF cut off": DAMAGED_PDF,
    "pages that hold themselves": DAMAGED_PDF,
    "lists in lists": NO_TEXT,
    "a page that unpacks to 200 MB": NO_TEXT,
    "a form that draws itself": BROKEN,
    "a scan": NO_TEXT,
    "a picture that is called PDF": "This is a picture; it contains no text that Cortex can read.",
    "a PDF that is called DOCX": "Its name ends in .docx, but it is a PDF. Rename it, then it can be read.",
    "a program that is called text": "This is a program; it contains no text that Cortex can read.",
    "a mail in a mail": "0 of 1 parts read. Not read: parts nested more than 30 deep.",
    "a line of ten million signs": SHORTENED,
    "nothing": "This file contains no text.",
}
READ = {
    "a PDF with a script": "Read me",
    "a PDF that starts a program": "Read me",
    "a PDF that is an archive too": "Read me",
    "a picture with a script": "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    "a web page with a script": "# T\n\nRead me",
    "an attachment that climbs": "Subject: bill\n\nSee there.\n\n[../../.ssh/authorized_keys]\n\nMZ",
    "a mail in no encoding": "Subject: x\n\nRead me",
    "signs that nobody sees": "Rent gpj.exe",
    "a page that tells the model to act": ACT,
    "a name with tricks": "Read me",
}


async def read(session: ReadingSession, name: str, data: bytes) -> Extracted:
    return await session.extract(io.BytesIO(data), name)


async def test_hostile_files_end_in_a_sentence_or_in_harmless_text(session: ReadingSession) -> None:
    found = {what: await read(session, name, make()) for what, (name, make) in HOSTILE.items()}
    assert {what: one.note for what, one in found.items() if one.note} == NOTES
    assert {what: one.pages[0].text for what, one in found.items() if what in READ} == READ
    assert max(sum(len(page.text) for page in one.pages) for one in found.values()) <= 3_000_000
    assert max(len(one.pages) for one in found.values()) <= 3_001


async def test_a_pdf_of_three_hundred_pages_is_read_page_by_page(session: ReadingSession) -> None:
    texts = [f"Clause {number}.\nNothing else is here." for number in range(1, 301)]
    texts[211] += "\nPets: one small dog (or cat) is allowed."
    found = await read(session, "contract.pdf", pdf(*texts, chapters=[("Rent", 1), ("Animals", 210)]))
    assert [page.number for page in found.pages if "Pets" in page.text] == [212]
    assert (len(found.pages), found.is_paged, found.note) == (300, True, "")
    assert found.outline == ("Rent (page 1)", "Animals (page 210)")


async def test_a_docx_keeps_headings_tables_and_the_pages_that_word_noted(session: ReadingSession) -> None:
    styles = '<w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>'
    body = (
        '<w:p><w:pPr><w:pStyle w:val="berschrift2"/></w:pPr><w:r><w:t>Miete</w:t></w:r></w:p>'
        "<w:p><w:r><w:t>Erste </w:t></w:r><w:r><w:t>Seite</w:t></w:r><w:del><w:r><w:t>weg</w:t></w:r></w:del></w:p>"
        '<w:p><w:r><w:br w:type="page"/></w:r></w:p><w:p><w:r><w:lastRenderedPageBreak/><w:t>Zweite</w:t></w:r></w:p>'
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Hund</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>ja</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    )
    found = await read(session, "a.docx", docx(body, styles=styles))
    assert [page.text for page in found.pages] == ["## Miete\n\nErste Seite", "Zweite\n\nHund\tja"]
    assert (found.outline, found.is_paged) == (("  Miete (page 1)",), True)


async def test_an_odt_keeps_headings_and_what_notes_say(session: ReadingSession) -> None:
    body = (
        '<text:h text:outline-level="1">Miete</text:h><text:p>Kein<text:s/>Hund'
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Doch.</text:p></text:note-body>"
        "</text:note></text:p><text:tracked-changes><text:p>weg</text:p></text:tracked-changes>"
    )
    found = await read(session, "a.odt", odt(body))
    assert [page.text for page in found.pages] == ["# Miete\n\nDoch.\n\nKein Hund"]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-16", "Die Straße"),
        ("cp1252", "Die Straße ist für Hunde gesperrt \u2013 außer für größere."),
        ("cp1250", "Žluťoučký kůň úpěl ďábelské ódy. Nájemní smlouva na byt."),
        ("cp1251", "Договор аренды квартиры. Домашние животные не допускаются."),
        ("shift_jis", "賃貸契約書。ペットの飼育は禁止されています。"),
    ],
)
async def test_old_encodings_are_found_out(session: ReadingSession, encoding: str, text: str) -> None:
    assert (await read(session, "a.txt", text.encode(encoding))).pages[0].text == text


async def test_text_is_cut_into_parts_at_headings(session: ReadingSession) -> None:
    text = "".join(f"# Chapter {number}\n\n{'word ' * 300}\n\n" for number in range(3)) + "```\n# no heading\n```"
    found = await read(session, "a.md", text.encode())
    assert [page.title for page in found.pages] == ["Chapter 0", "Chapter 1", "Chapter 2"]
    assert found.outline[-1] == "Chapter 2 (part 3)"


async def test_functions_are_the_outline_of_code(session: ReadingSession) -> None:
    found = await read(
        session, "a.py", b"import os\n\n\nclass Dog:\n    def bark(self): ...\n\n\nasync def walk(): ...\n"
    )
    assert found.outline == ("Dog (part 1)", "walk (part 1)")


async def test_a_program_that_hangs_is_ended_and_the_next_file_is_read() -> None:
    """The limit of the daemon's own side, for whatever the program's limits do not catch."""
    hasty = DocumentReader(Sandbox(), is_boxed=False, limits=type(LIMITS)(timeout_s=0.0))
    async with hasty.session() as session:
        assert "too long" in (await read(session, "a.txt", b"x")).note
        assert "too long" in (await read(session, "a.txt", b"x")).note


async def test_without_a_sandbox_no_native_parser_sees_a_pdf() -> None:
    async with DocumentReader(Sandbox(), is_boxed=False).session() as session:
        assert "sandbox" in (await read(session, "a.pdf", pdf("Read me"))).note
        assert (await read(session, "a.docx", docx("<w:p><w:r><w:t>Read me</w:t></w:r></w:p>"))).pages[
            0
        ].text == "Read me"
