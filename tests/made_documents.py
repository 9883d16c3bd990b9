"""Documents for tests, made by hand: small PDF, DOCX and ODT files, and whatever a hostile one needs."""

import io
import zipfile
import zlib
from collections.abc import Sequence

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"


def pdf_of(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """A PDF of these objects, numbered from 1; the first is the catalog."""
    made, places = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, start=1):
        places.append(len(made))
        made += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    made += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(
        made + b"trailer\n<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, start)
    )


def stream(data: bytes, marks: bytes = b"", *, is_packed: bool = False) -> bytes:
    """A stream object's body."""
    if is_packed:
        data, marks = zlib.compress(data), marks + b"/Filter/FlateDecode"
    return b"<</Length %d%b>>\nstream\n%b\nendstream" % (len(data), marks, data)


def pdf(*texts: str, chapters: Sequence[tuple[str, int]] = (), catalog: bytes = b"", trailer: bytes = b"") -> bytes:
    """A PDF with a page for each text, a line a line; chapters: title and page, numbered from 1, of its outline."""
    pages_at, count = 4, len(texts)
    outline_at = pages_at + 2 * count
    kids = b" ".join(b"%d 0 R" % (pages_at + 2 * number) for number in range(count))
    marks = b"/Outlines %d 0 R" % outline_at if chapters else b""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R%b%b>>" % (marks, catalog),
        b"<</Type/Pages/Count %d/Kids[%b]>>" % (count, kids),
    ]
    objects.append(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
    for number, text in enumerate(texts):
        drawn = b"".join(b"(%b)'\n" % _quoted(line) for line in text.split("\n"))
        page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R>>"
        objects += [page % (pages_at + 2 * number + 1), stream(b"BT /F 10 Tf 12 TL 50 800 Td\n%bET" % drawn)]
    if chapters:
        last = outline_at + len(chapters)
        objects.append(b"<</Type/Outlines/First %d 0 R/Last %d 0 R/Count %d>>" % (outline_at + 1, last, len(chapters)))
        for place, (title, number) in enumerate(chapters, start=outline_at + 1):
            following = b"/Next %d 0 R" % (place + 1) if place < last else b""
            target = pages_at + 2 * (number - 1)
            mark = b"<</Title(%b)/Parent %d 0 R/Dest[%d 0 R/Fit]%b>>"
            objects.append(mark % (_quoted(title), outline_at, target, following))
    return pdf_of(objects, trailer)


def _quoted(text: str) -> bytes:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("cp1252")


def packed(parts: dict[str, str | bytes]) -> bytes:
    """A ZIP file; what is named `mimetype` is not compressed."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in parts.items():
            how = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            file.writestr(zipfile.ZipInfo(name), data, compress_type=how)
    return made.getvalue()


def docx(body: str, *, head: str = "", styles: str = "") -> bytes:
    """A DOCX with this XML in its body; head: what stands ahead of it, such as a document type."""
    parts: dict[str, str | bytes] = {"[Content_Types].xml": "<Types/>"}
    parts["word/document.xml"] = f'{head}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    if styles:
        parts["word/styles.xml"] = f'<w:styles xmlns:w="{WORD}">{styles}</w:styles>'
    return packed(parts)


def odt(body: str, *, manifest: str = "") -> bytes:
    """An ODT with this XML as its text."""
    parts: dict[str, str | bytes] = {"mimetype": "application/vnd.oasis.opendocument.text"}
    if manifest:
        parts["META-INF/manifest.xml"] = manifest
    spaces = (
        f'xmlns:office="{OFFICE}" xmlns:text="{TEXT}" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    )
    parts["content.xml"] = (
        f"<office:document-content {spaces}><office:body><office:text>{body}"
        "</office:text></office:body></office:document-content>"
    )
    return packed(parts)
