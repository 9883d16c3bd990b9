"""Text out of bytes: by a mark at their beginning, by the name of an encoding that they come with, or as they look.

Names are those of the WHATWG Encoding Standard, as `resiliparse` has them, then Python's, which has IANA's, then the
number of a code page, as vendors write them. An encoding is read as what is written under its name in practice: what
says GB 2312 or KS C 5601 holds signs that only the larger GB 18030 and code page 949 have.
"""

import codecs
import re

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

from cortex.integrations.documents.kinds import wide_encoding

SAMPLE_BYTES = 65_536
MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
WINDOWS = {"iso8859-1": "cp1252", "iso8859-2": "cp1250", "iso8859-5": "cp1251", "iso8859-7": "cp1253"}
WINDOWS |= {"iso8859-9": "cp1254", "iso8859-8": "cp1255", "iso8859-6": "cp1256", "iso8859-13": "cp1257"}
LARGER = {"gbk": "gb18030", "gb2312": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932", "big5": "big5hkscs"}
LARGER |= {"iso8859-11": "cp874", "tis-620": "cp874", "iso8859-9": "cp1254", "iso2022_jp": "iso2022_jp_ext"}
NO_ENCODINGS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "palmos"})
OTHERS = {"cswindows31j": "cp932", "csucs4": "utf-32-be", "iso-10646-ucs-4": "utf-32-be", "csunicode": "utf-16-be"}
OTHERS |= {"x-mac-ukrainian": "mac-cyrillic", "x-mac-ce": "mac-latin2", "gb18030-2022": "gb18030"}
ASCII = frozenset({"us-ascii", "ascii", "ansi_x3.4-1968", "646", "iso646-us", "csascii", "us"})
LOST = "\ufffd"
LOST_SHARE = 0.02  # of what is not ASCII: so much may be wrong in what is otherwise as it says
LOST_LETTER = 0.9  # with that, one where there are others
_C1 = re.compile(rb"[\x80-\x9f]")
_HIGH = re.compile(rb"[\x80-\xff]")
_UTF8 = re.compile(r"utf-?8|65001")
_PAGE = re.compile(r"(?:x-|cs)?(?:dos|ibm|cp|windows|win|microsoft-cp|oem|pc|mac)?[-_ ]?0*(\d{3,5})(?:[-_].*)?")
_JAPANESE = re.compile(rb"\x1b[$(][@BIJ]")
_META = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w:.+-]+)|<\?xml[^>]+encoding\s*=\s*["']([\w:.+-]+)""", re.I)


def codec_of(name: str) -> str:
    """Python's name of the encoding that goes by this name, "" for one that nobody registered."""
    name = re.sub(r"^[\s\"']+|[\s\"';]+$", "", name).lower()
    if not name or len(name) > 80:
        return ""
    if _UTF8.search(name):
        return "utf-8"
    found = OTHERS.get(name) or str(map_encoding_to_html5(name))
    if found == "utf-8":  # it knows none of that name
        found = next(filter(None, map(_known, (name, name.removeprefix("x-"), name.replace("-", ""), _page(name)))), "")
    return LARGER.get(found, found)


def _page(name: str) -> str:
    found = _PAGE.fullmatch(name)
    return f"cp{found[1]}" if found else ""


def _known(name: str) -> str:
    """Python's own name of it, "" for what is none, or turns bytes into something that nobody wrote."""
    try:
        found = codecs.lookup(name) if name and name.isascii() and "\0" not in name else None
        if found is None or found.name.replace("-", "_") in NO_ENCODINGS:
            return ""
    except (LookupError, UnicodeError, ValueError):
        return ""
    return found.name if getattr(found, "_is_text_encoding", True) else ""  # as bytes.decode asks too


def decoded(data: bytes, said: str = "") -> str:
    """The text of these bytes. What cannot be read is U+FFFD."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    codec = codec_of(said)
    is_ascii_only = re.sub(r"[\s\"';]", "", said).lower() in ASCII  # with more than that, it is not what it says
    named = "" if is_ascii_only else codec
    tries = [named, "" if codec in ("utf-7", "hz") else "utf-8"]
    for encoding in reversed(tries) if named == "cp1252" else tries:  # nothing is UTF-8 in every letter by chance
        try:
            if encoding:
                return data.decode(encoding)
        except UnicodeError:
            continue
    if named:
        text = data.decode(named, "replace")
        if text.count(LOST) <= LOST_SHARE * len(_HIGH.findall(data)) + LOST_LETTER:
            return text
    return _as_it_looks(data)


def _as_it_looks(data: bytes) -> str:
    found = detect_encoding(data[:SAMPLE_BYTES], html5_compatible=False) or ""
    # What looks like ISO 8859 and uses its control characters is the code page of Windows that has letters there.
    found = WINDOWS.get(found, found) if found == "iso8859-1" or _C1.search(data) else found
    try:
        return data.decode(found, "replace")
    except LookupError:
        return data.decode("cp1252", "replace")


def decoded_file(data: bytes) -> str:
    """The text of a whole file that comes with no name of an encoding."""
    if (encoding := wide_encoding(data)) or (
        encoding := "iso2022_jp_ext" if _JAPANESE.search(data[:SAMPLE_BYTES]) else ""
    ):
        return data.decode(encoding, "replace")
    return decoded(data)


def decoded_page(data: bytes, said: str = "") -> str:
    """The text of a web page: as it came, else as it says at its beginning."""
    if not said and (found := _META.search(data[:4_096])):
        said = (found[1] or found[2]).decode("ascii", "replace")
        said = "utf-8" if codec_of(said).startswith("utf-16") else said  # it could not have been read so far
    return decoded(data, said) if said else decoded_file(data)
