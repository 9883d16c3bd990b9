"""An answer as a program hears it: words as they come, up to a stop; a sign of life while there are none; its end."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from msgspec import Struct, field

from cortex.base.errors import CortexError
from cortex.base.messages import ToolCall, Usage

WORKING_S = 10.0  # without a word: then a sign of life keeps the connection open
AGAIN = "\n\n"
Failure = Literal["", "quota", "model", "stopped", "request", "busy"]


class Said(Struct, frozen=True):
    """More of the answer."""

    text: str


class Thought(Struct, frozen=True):
    """More of the model's reasoning."""

    text: str


class Anew(Struct, frozen=True):
    """A sign that the answer so far is void: the model is asked again. Who cannot take it back raises BrokenOff."""


class Working(Struct, frozen=True):
    """Nothing new for a while; `waits`: what waits for the person's word, "" for nothing."""

    waits: str = ""


class Finished(Struct, frozen=True, kw_only=True):
    """The end. `failure`: "" for an answer that came to its end; `text`: why it did not, for a person to read.

    `answer`: the whole of it, where that is not just what was told. `param`, `code`: of the failure, in OpenAI's words.
    """

    finish: Literal["stop", "length", "tool_calls"] = "stop"
    usage: Usage = field(default_factory=Usage)
    calls: tuple[ToolCall, ...] = ()
    failure: Failure = ""
    text: str = ""
    answer: str = ""
    param: str = ""
    code: str = ""


class BrokenOff(CortexError):
    """An answer broke off after some of it was told, so that it cannot begin again."""

    status = 502


Piece = Said | Thought | Anew | Working
Tell = Callable[[Piece], Awaitable[None]]


class Voice(Struct):
    """The words said so far: parts grow, end and begin anew; words that are out cannot be taken back.

    `said`: the whole of it. `_shown`: part -> what of it is out.
    """

    said: str = ""
    _shown: dict[str, str] = field(default_factory=dict)
    _last: str = ""

    def heard(self, part: str, text: str) -> str:
        """Return what to say now that this part stands so; "" for nothing. One that began anew is said again, whole."""
        known = self._shown.get(part, "")
        if not text or text == known:
            return ""
        if part == self._last and text.startswith(known):
            new = text[len(known) :]
        else:
            new = (AGAIN if self.said else "") + (text[len(known) :] if text.startswith(known) else text)
        self._shown[part], self._last = text, part
        self.said += new
        return new

    @property
    def last_part(self) -> str:
        """The part that was said last, whole: what came before it were words on the way."""
        return self._shown.get(self._last, "")


class StopText(Struct):
    """Streamed text up to the first of these sequences. What may be the beginning of one is held back."""

    stops: Sequence[str]
    is_met: bool = False
    _held: str = ""

    def feed(self, text: str) -> str:
        """Return what of it may be told by now."""
        if self.is_met:
            return ""
        self._held += text
        found = [at for stop in self.stops if (at := self._held.find(stop)) >= 0]
        if found:
            self.is_met = True
            told, self._held = self._held[: min(found)], ""
            return told
        return self._released(len(self._held) - max(map(self._begun, self.stops), default=0))

    def rest(self) -> str:
        """Return what was held back, at the end."""
        return self._released(len(self._held))

    def _released(self, length: int) -> str:
        told, self._held = self._held[:length], self._held[length:]
        return told

    def _begun(self, stop: str) -> int:
        """Return how many letters at the end are the beginning of this sequence."""
        longest = min(len(stop) - 1, len(self._held))
        return next((length for length in range(longest, 0, -1) if self._held.endswith(stop[:length])), 0)
