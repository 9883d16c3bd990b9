"""Bytes of a file as text, or a plain word that they are none."""

from cortex.base.errors import ToolFailed

SAMPLE_BYTES = 8_192
MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def decoded(data: bytes, path: str) -> str:
    """The text of a file in UTF-8, in UTF-16 with its mark, or in Latin-1; ToolFailed when it is not text."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data[:SAMPLE_BYTES]:
        raise ToolFailed(f"{path!r} is not a text file ({len(data)} bytes of binary data).")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
