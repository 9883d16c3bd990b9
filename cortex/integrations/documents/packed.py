"""The XML inside a DOCX or ODT: a ZIP file, of which single parts are unpacked as they are read, within a limit.

A part may name no document type, so there are no entities to grow and nothing outside is looked up.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from xml.parsers import expat

from cortex.integrations.documents.kinds import UnreadableError

XML_BYTES = 64_000_000
ENTRIES_MOST = 20_000
DEPTH_MOST = 500
CHUNK_BYTES = 4_194_304  # expat before 2.6 looks through an unfinished piece anew with each chunk: few, then
DAMAGED = "This document is damaged and cannot be read."
LOCKED = "This document is locked with a password. Save a copy without one and add that."

Start = Callable[[str, dict[str, str]], None]
End = Callable[[str], None]
Text = Callable[[str], None]


class Package:
    """An opened document. `left_bytes`: how much may still be unpacked of it."""

    def __init__(self, data: bytes) -> None:
        try:
            self._file = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
            raise UnreadableError(DAMAGED) from error
        if len(self._file.filelist) > ENTRIES_MOST:
            raise UnreadableError("This document has far more parts than documents have, and was not read.")
        self.names = frozenset(self._file.namelist())
        self._left_bytes = XML_BYTES

    def parse(self, name: str, *, start: Start, end: End | None = None, text: Text | None = None) -> None:
        """Read a part, calling back with each element (`namespace name`) and text; UnreadableError in a sentence."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse
        parser.CharacterDataHandler = text
        depth = 0

        def opened(tag: str, marks: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            if depth > DEPTH_MOST:
                raise UnreadableError("This document is nested too deeply to be read.")
            start(tag, marks)

        def closed(tag: str) -> None:
            nonlocal depth
            depth -= 1
            if end is not None:
                end(tag)

        parser.StartElementHandler = opened
        parser.EndElementHandler = closed
        for chunk in self._unpacked(name):
            _feed(parser, chunk)
        _feed(parser, b"", is_last=True)

    def content(self, name: str) -> bytes:
        """A part as it is, within the same limit; UnreadableError in a sentence."""
        return b"".join(self._unpacked(name))

    def _unpacked(self, name: str) -> Iterator[bytes]:
        try:
            if self._file.getinfo(name).flag_bits & 1:
                raise UnreadableError(LOCKED)
            with self._file.open(name) as part:
                while chunk := part.read(CHUNK_BYTES):
                    self._left_bytes -= len(chunk)
                    if self._left_bytes < 0:
                        raise UnreadableError(
                            "This document unpacks to far more than a document contains, and was not read."
                        )
                    yield chunk
        except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as error:
            raise UnreadableError(DAMAGED) from error


def _feed(parser: expat.XMLParserType, chunk: bytes, *, is_last: bool = False) -> None:
    try:
        parser.Parse(chunk, is_last)
    except expat.ExpatError as error:
        raise UnreadableError(DAMAGED) from error


def _refuse(*_: object) -> None:
    raise UnreadableError(
        "This document holds a definition of entities, which documents do not need, and was not read."
    )
