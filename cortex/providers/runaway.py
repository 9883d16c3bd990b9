"""Sees that an answer repeats itself without end, as small models do, so that the stream can be stopped.

Pure; `heard.py` asks it of each answer. It errs on the side of going on: what
people ask for may repeat (tables, refrains, zeros), and the limit of output tokens ends the rest.
"""

import re
from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from cortex.base.messages import Part, Text, Thinking

_LOOK_EACH = 64  # characters between two looks
_PROBE = 24  # the last characters, whose appearance before gives the length of a round
_ROUND_MOST = 400
_ROUNDS = 10
_LENGTH = 1_000  # characters that say the same again and again
_SIGNS, _SIGNS_LENGTH = 4, 1_500  # rounds of so few characters are rules, dots, blanks
_IN_CODE, _ASKED = 4, 6  # times as long in a fence, where data stands, and where the person named a number of things
_LENGTH_MOST = 10_000
_TAIL = 12_000
_SENTENCE = re.compile(r"[\n.!?。]+")
_SENTENCE_LEAST, _SENTENCE_MOST = 24, 1_000
_NO_WORD, _WORD_LEAST = re.compile(r"[\W\d_]+"), 3  # a number that counts up is nothing new
_SEEN_MOST = 4_096
_STALE_SEEN, _STALE_LENGTH = 5, 1_600  # a sentence is stale when it came so often; so many characters of such
_KEPT_LEAST = 40
# A number of ten and more that is no date, time or year, or a word that asks for many.
_MANY = re.compile(
    r"(?<![\d:.,/-])(?!(?:19|20)\d\d\b)\d{2,5}(?![\d:.,/-]*\d)|\b(?:hundred|thousand|dozen|times|repeat|hundert|tausend"
    r"|wiederhol|cien|mil|veces|cent|mille|fois|cento|volte)",
    re.IGNORECASE,
)


class Runaway:
    """One answer. Once `feed` says that it runs away, `kept` is how many of its first characters say something new."""

    def __init__(self, asked: str = "") -> None:
        """asked: the person's message."""
        self.kept = 0
        self._patience = _ASKED if _MANY.search(asked) else 1
        self._fed = 0
        self._unread = ""
        self._tail = ""
        self._is_code = False
        self._line = ""
        self._open = ""
        self._seen: dict[int, tuple[int, int]] = {}  # sentences: how often each came, where it ended the second time
        self._stale = self._stale_kept = 0
        self._short: set[str] = set()

    def feed(self, text: str) -> bool:
        """Tell whether the answer with this piece repeats itself without end."""
        self._unread += text
        looks = len(self._unread) // _LOOK_EACH
        for at in range(0, looks * _LOOK_EACH, _LOOK_EACH):
            if self._look(self._unread[at : at + _LOOK_EACH]):
                return True
        self._unread = self._unread[looks * _LOOK_EACH :]
        return False

    def _look(self, text: str) -> bool:
        self._fed += len(text)
        self._tail = (self._tail + text)[-_TAIL:]
        self._note_fences(text)
        return self._is_stale(text) or self._goes_round()

    def _note_fences(self, text: str) -> None:
        *lines, rest = (self._line + text).split("\n")
        for line in lines:
            self._is_code ^= line.lstrip().startswith(("```", "~~~"))
        self._line = rest[:_PROBE]

    def _needed(self, length: int) -> int:
        return min(_LENGTH_MOST, length * self._patience * (_IN_CODE if self._is_code else 1))

    def _goes_round(self) -> bool:
        """Tell whether the end of the text is one round, again and again."""
        tail = self._tail
        probe = tail[-_PROBE:]
        at = tail.rfind(probe, 0, len(tail) - 1)
        while at >= 0 and (length := len(tail) - len(probe) - at) <= _ROUND_MOST:
            if _is_round(tail, length, max(4 * length, _PROBE * 8)):  # its own round, and no multiple of that
                needed = self._needed(_SIGNS_LENGTH if length <= _SIGNS else _LENGTH)
                return _is_round(tail, length, max(needed, _ROUNDS * length)) and self._keep(length)
            at = tail.rfind(probe, 0, at + len(probe) - 1)
        return False

    def _keep(self, length: int) -> bool:
        begins = len(self._tail) - length
        while begins > 0 and self._tail[begins - 1] == self._tail[begins - 1 + length]:
            begins -= 1
        kept = begins + max(2 * length, _KEPT_LEAST)
        end = _SENTENCE.search(self._tail, kept - 1, kept + length)  # twice, and to the end of that sentence
        self.kept = self._fed - len(self._tail) + (end.end() if end else kept)
        return True

    def _is_stale(self, text: str) -> bool:
        """Tell whether nothing but sentences that came often before were said for long, in whatever order."""
        *ended, self._open = _SENTENCE.split(self._open + text)
        upto = self._fed - len(self._open)
        self._open = self._open[-_SENTENCE_MOST:]
        for sentence in (one.strip() for one in ended):
            if len(sentence) < _SENTENCE_LEAST:
                self._note_short(sentence)
                continue
            count, second = self._seen.pop(hash(sentence), (0, 0))
            self._seen[hash(sentence)] = (count + 1, upto if count == 1 else second)
            if count < _STALE_SEEN:
                self._stale = self._stale_kept = 0
                continue
            self._stale += len(sentence)
            self._stale_kept = max(self._stale_kept, second)
        while len(self._seen) > _SEEN_MOST:
            del self._seen[next(iter(self._seen))]
        if self._stale < self._needed(_STALE_LENGTH):
            return False
        self.kept = self._stale_kept
        return True

    def _note_short(self, sentence: str) -> None:
        """A short one is something new where its words are: a list may say the same of each of its items."""
        words = _NO_WORD.sub("", sentence)
        if len(words) < _WORD_LEAST or words in self._short:
            return
        self._stale = self._stale_kept = 0
        if len(self._short) < _SEEN_MOST:
            self._short.add(words)


class AnswerGuard:
    """The words and the thoughts of one answer, each watched for itself."""

    def __init__(self, asked: str) -> None:
        """asked: the person's message."""
        self._asked = asked
        self._guards: dict[str, Runaway] = {}
        self._kept: tuple[str, int] | None = None

    @property
    def is_stopped(self) -> bool:
        """Tell whether it ran away."""
        return self._kept is not None

    def feed(self, kind: Literal["text", "thinking", "void"], text: str) -> bool:
        """Tell whether the answer with this piece repeats itself without end."""
        if kind == "void":
            self._guards.clear()
            return False
        guard = self._guards.setdefault(kind, Runaway(self._asked))
        if guard.feed(text):
            self._kept = kind, guard.kept
        return self.is_stopped

    def kept(self, parts: Sequence[Part]) -> list[Part]:
        """Keep what is worth it of the stopped answer: its words up to where they repeat, the reasoning before.

        Reasoning that repeats itself leaves nothing but words that were said; a call that had begun is none.
        """
        kind, rest = self._kept or ("text", 0)
        found: list[Part] = []
        for part in parts:
            if isinstance(part, Thinking) and kind == "text":
                found.append(part)
            elif isinstance(part, Text) and kind == "text":
                text = part.text[:rest]
                rest -= len(text)
                found += [replace(part, text=text.rstrip())] if text.strip() else []
            elif isinstance(part, Text):
                found.append(part)
        return found


def _is_round(text: str, length: int, span: int) -> bool:
    """Tell whether the last `span` characters say again what stands `length` characters before each of them."""
    return len(text) >= span + length and text[-span:] == text[-span - length : -length]
