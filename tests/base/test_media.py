"""What a file is, whatever its name says; names that every system takes."""

import io
import zipfile

import pytest

from cortex.base import media

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def zipped(*names: str, first: str = "") -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        if first:
            archive.writestr("mimetype", first)
        for name in names:
            archive.writestr(name, "<x/>")
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("notes.txt", "Grüße".encode(), media.PLAIN),
        ("old.txt", "Grüße".encode("latin-1"), media.PLAIN),
        ("wide.txt", "hello".encode("utf-16"), media.PLAIN),
        ("main.py", b"import os", media.PLAIN),
        ("list.CSV", b"a;b\n1;2", media.CSV),
        ("read.me.md", b"# Hi", media.MARKDOWN),
        ("mail.eml", b"From: a@example.org\n\nHi", media.EMAIL),
        ("mail.eml", b"no head at all", media.PLAIN),
        ("lease.pdf", b"%PDF-1.7 \0\1", media.PDF),
        ("lease.txt", b"%PDF-1.7 \0\1", media.PDF),
        ("letter.docx", zipped("[Content_Types].xml", "word/document.xml"), media.DOCX),
        ("letter.odt", zipped("content.xml", first=media.ODT), media.ODT),
        ("photo.jpg", PNG, "image/png"),
        ("photo.webp", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        ("photo.heic", b"\0\0\0\x18ftypheic", "image/heic"),
        ("drawing.svg", b"<svg onload='alert(1)'/>", media.PLAIN),
        ("photo.png", b"<script>alert(1)</script>", ""),
        ("lease.pdf", b"just words", ""),
        ("archive.zip", zipped("a.txt"), ""),
        ("table.xlsx", zipped("[Content_Types].xml", "xl/workbook.xml"), ""),
        ("program", b"\x7fELF\2\1\1\0", ""),
        ("moving.gif", b"GIF89a\1\0", ""),
        ("film.mp4", b"\0\0\0\x18ftypisom", ""),
        ("nul.txt", b"a\0b", ""),
    ],
)
def test_a_file_is_known_by_what_it_holds(name: str, data: bytes, found: str) -> None:
    sniffer = media.Sniffer()
    for at in range(0, len(data), 7):
        sniffer.add(data[at : at + 7])
    assert sniffer.media_type(name) == found


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Lease 2026.pdf", "Lease 2026.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ann\\lease.pdf", "lease.pdf"),
        ("..", "file"),
        ("", "file"),
        (".htaccess", "htaccess"),
        ("a\0b\x1b[31m\r\n.txt", "ab[31m.txt"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ('what?<is>"this"|*.md', "what__is__this___.md"),
        ("CON.txt", "_CON.txt"),
        ("  spaced   out .txt. ", "spaced out.txt"),
        ("e\u0301t\u00e9.txt", "\u00e9t\u00e9.txt"),
        ("x" * 400 + ".pdf", "x" * 116 + ".pdf"),
        ("\u00e4" * 400 + ".pdf", "\u00e4" * 58 + ".pdf"),
    ],
)
def test_names_are_made_safe(given: str, name: str) -> None:
    assert media.safe_name(given) == name
