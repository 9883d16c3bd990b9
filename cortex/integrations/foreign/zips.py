"""The files of a ZIP archive, unpacked in memory one after the other within limits. Nothing is written by its name.

What an archive says of sizes is not believed: bytes are counted as they come. Used by readers, in `program.py` only.
"""

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence

from cortex.integrations.documents.kinds import UnreadableError

MARK = b"PK"
CHUNK_BYTES = 1_048_576
LOCAL_HEADER_BYTES = 30
DAMAGED = "This archive is damaged and cannot be read."
OVERLAP = "This archive is damaged: several of its files are the same bytes. It was not read."
FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    ValueError,
    OSError,
)


class MemberError(Exception):
    """One file of the archive cannot be read; the message says what it is, as the heading of a count."""


class Archive:
    """An opened archive. UnreadableError where it is none, or holds more than `most` files."""

    def __init__(self, data: bytes, *, most: int, total_bytes: int) -> None:
        try:
            self._file = zipfile.ZipFile(io.BytesIO(data))
        except FAULTS as error:
            raise UnreadableError(DAMAGED) from error
        if len(self._file.filelist) > most:
            raise UnreadableError(f"This archive contains more than {most:,} files and was not read.")
        self._left_bytes = total_bytes
        self.files: Sequence[zipfile.ZipInfo] = [one for one in self._file.infolist() if not one.is_dir()]
        end = -1
        for one in sorted(self._file.infolist(), key=lambda each: each.header_offset):
            if one.header_offset < end:
                raise UnreadableError(OVERLAP)
            end = one.header_offset + LOCAL_HEADER_BYTES + one.compress_size

    def chunks(self, info: zipfile.ZipInfo, most_bytes: int) -> Iterator[bytes]:
        """The content, piece by piece; MemberError. UnreadableError once the whole archive unpacks to too much."""
        if info.flag_bits & 1:
            raise MemberError("Files with a password")
        size_bytes = 0
        try:
            with self._file.open(info) as member:
                while chunk := member.read(CHUNK_BYTES):
                    size_bytes += len(chunk)
                    self._left_bytes -= len(chunk)
                    if self._left_bytes < 0:
                        raise UnreadableError("This archive unpacks to far more than is read, and was not taken.")
                    if size_bytes > most_bytes:
                        raise MemberError(f"Files that unpack to more than {most_bytes / 1e6:g} MB")
                    yield chunk
        except RuntimeError as error:  # zipfile's word for a password, and its NotImplementedError
            raise MemberError("Files with a password, or packed in an unknown way") from error
        except FAULTS as error:
            raise MemberError("Damaged files") from error


def shown(name: str) -> str:
    """A file's name in a sentence: short, on one line."""
    return "".join(sign if sign.isprintable() else "?" for sign in name.rpartition("/")[2])[:60]
