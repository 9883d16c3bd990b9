"""Ends a text ahead of a stop sequence, whatever its server does about that: not a letter of one is told."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class StopText:
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
        return self._told(len(self._held) - max(map(self._begun, self.stops), default=0))

    def rest(self) -> str:
        """Return what was held back, at the end."""
        return self._told(len(self._held))

    def _told(self, length: int) -> str:
        told, self._held = self._held[:length], self._held[length:]
        return told

    def _begun(self, stop: str) -> int:
        """Return how many letters at the end are the beginning of this sequence."""
        longest = min(len(stop) - 1, len(self._held))
        return next((length for length in range(longest, 0, -1) if self._held.endswith(stop[:length])), 0)
