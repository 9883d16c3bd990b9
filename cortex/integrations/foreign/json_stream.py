"""The values of a JSON text that is too long to be held as a whole: elements of arrays, or values, in a row.

Only one element at a time is unfolded. Numbers of absurd length, NaN and infinities are no numbers here.
"""

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

ENTRY_CHARACTERS = 40_000_000
DONE_CHARACTERS = 1_000_000  # read before what is done is let go
LONGEST_INTEGER = 24
LISTS_MOST = 10_000  # in a row, as files that were put together
_BLANK = re.compile(r"[ \t\r\n]*")
_BEGINS = re.compile(r'[\[{"]')


class BrokenJsonError(Exception):
    """Raised where nothing more can be read. `at_character`: 0 where none of it is JSON."""

    def __init__(self, at_character: int) -> None:
        super().__init__(f"past character {at_character:,}")
        self.at_character = at_character


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else 0.0


_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=lambda _: None)


class _Text:
    """The text as far as it has come. `at`: where we are in it; `past`: how much was let go before."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._decoder: codecs.IncrementalDecoder | None = None
        self.held, self.at, self.past, self.is_whole = "", 0, 0, False

    def more(self, characters: int) -> bool:
        """Read at least so much more, where there is so much; whether there was any. UnicodeDecodeError."""
        made: list[str] = []
        while characters > 0 and not self.is_whole:
            chunk = next(self._chunks, b"")
            if self._decoder is None:
                wide = chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
                self._decoder = codecs.getincrementaldecoder("utf-16" if wide else "utf-8-sig")()
            self.is_whole = not chunk
            made.append(self._decoder.decode(chunk, self.is_whole))
            characters -= len(made[-1])
        if self.at > DONE_CHARACTERS:
            self.held, self.past, self.at = self.held[self.at :], self.past + self.at, 0
        self.held += "".join(made)
        return bool(made and any(made))

    def next_sign(self) -> str:
        """The next that is no blank, "" at the end; `at` is there."""
        while True:
            self.at = _BLANK.match(self.held, self.at).end()  # type: ignore[union-attr]  # it always matches
            if self.at < len(self.held):
                return self.held[self.at]
            if not self.more(DONE_CHARACTERS):
                return ""

    def value(self) -> Any:  # Any: whatever the text says
        """The value that begins here; BrokenJsonError."""
        while True:
            try:
                found, end = _DECODER.raw_decode(self.held, self.at)
            except (ValueError, RecursionError) as error:
                so_far = len(self.held) - self.at
                if isinstance(error, ValueError) and so_far < ENTRY_CHARACTERS and self.more(max(so_far, 65_536)):
                    continue  # twice as much, so that all tries together cost twice the last
                raise BrokenJsonError(max(self.past + self.at, 1)) from error  # it began as JSON does
            if end < len(self.held) or not self.more(65_536):  # a number may go on behind what is held
                self.at = end
                return found


def values(chunks: Iterable[bytes]) -> Iterator[Any]:
    """Each value in turn; BrokenJsonError where it ends to be JSON, whatever was given until then."""
    text = _Text(chunks)
    try:
        first = text.next_sign()
        if not _BEGINS.match(first):
            raise BrokenJsonError(0)
        is_list, ends = False, 0
        while (sign := text.next_sign()) and ends < LISTS_MOST:
            if sign == ("]" if is_list else "["):
                ends += is_list
                is_list = not is_list
                text.at += 1
            else:
                yield text.value()
            if text.next_sign() == ",":
                text.at += 1
        if is_list or sign:
            raise BrokenJsonError(text.past + text.at)
    except UnicodeDecodeError as error:
        raise BrokenJsonError(text.past + text.at) from error
