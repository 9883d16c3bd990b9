"""One answer between its protocol's reader and whoever listens: what is thought told from what is said, an end made.

Used by `wire.py` for every protocol. The marks are `marks.py`'s, the loops `runaway.py`'s; what a server sends as
reasoning in fields of its own stays that.
"""

from collections.abc import Iterable

from cortex.base.messages import Message, Opaque, Part, Text, Thinking
from cortex.ports.loop import Delta
from cortex.providers.marks import ReasoningMarks
from cortex.providers.runaway import AnswerGuard
from cortex.providers.terms import Answer


class HeardAnswer:
    """One answer as it is heard. `is_stopped`: it repeats itself without end; nothing more should be taken."""

    def __init__(self, asked: str) -> None:
        """asked: the person's message."""
        self._guard = AnswerGuard(asked)
        self._marks = ReasoningMarks()
        self._raw: list[str] = []
        self._said: list[str] = []
        self._marked: list[str] = []
        self._thought: list[str] = []

    @property
    def is_stopped(self) -> bool:
        """Tell whether it ran away."""
        return self._guard.is_stopped

    def take(self, delta: Delta) -> list[Delta]:
        """The pieces to pass on for this one."""
        if delta.kind != "text":
            self._thought.append(delta.text)
            self._guard.feed("thinking", delta.text)
            return [delta]
        self._raw.append(delta.text)
        return self._pieces_of(self._marks.feed(delta.text))

    def end(self, held: Iterable[Delta], answer: Answer) -> list[Delta]:
        """The last pieces, once nothing more comes; `answer` gets the parts as they are to be kept."""
        found = [piece for delta in held for piece in self.take(delta)]
        is_whole = answer.finish == "stop" or (answer.finish is None and answer.is_over)
        has_calls = Message(speaker="assistant", parts=tuple(answer.parts)).calls
        found += self._pieces_of(self._marks.end(needs_words=is_whole and not has_calls))
        if self.is_stopped and not any(isinstance(part, Text) for part in answer.parts):
            answer.parts.append(Text(text="".join(self._raw)))  # some say what a part is only when it is whole
        if "".join(self._said) != "".join(self._raw):
            answer.parts = self._split_parts(answer.parts)
        return found

    def cut(self, answer: Answer) -> tuple[Message, list[Delta]]:
        """Return what an answer said before it repeated itself, and the pieces that put that in its place."""
        message = Message(speaker="assistant", parts=tuple(self._guard.kept(answer.parts)))
        thought = "".join(part.text for part in message.parts if isinstance(part, Thinking))
        anew = [Delta(kind="thinking", text=thought), Delta(kind="text", text=message.text)]
        return message, [Delta(kind="void", text=""), *(delta for delta in anew if delta.text)]

    def _pieces_of(self, pieces: Iterable[tuple[str, str]]) -> list[Delta]:
        """The pieces of the text; what a server sent as reasoning by itself is told again where all is taken back."""
        found: list[Delta] = []
        for kind, text in pieces:
            if kind == "void":
                self._said.clear()
                self._marked.clear()
                self._guard.feed("void", "")
                again = "".join(self._thought)
                found += [Delta(kind="void", text=""), *([Delta(kind="thinking", text=again)] if again else [])]
                continue
            is_said = kind == "text"
            (self._said if is_said else self._marked).append(text)
            self._guard.feed("text" if is_said else "thinking", text)
            found.append(Delta(kind="text" if is_said else "thinking", text=text))
        return found

    def _split_parts(self, parts: Iterable[Part]) -> list[Part]:
        """The parts with the text as it was told apart; what a provider said of the raw text is of no more use."""
        text, thought = "".join(self._said), "".join(self._marked)
        clean: list[Part] = [Thinking(text=thought)] if thought else []
        clean += [Text(text=text)] if text else []
        found: list[Part] = []
        before: Part | None = None
        for part in parts:
            if isinstance(part, Text):
                found += clean
                clean = []
            elif not (isinstance(part, Opaque) and isinstance(before, Text)):
                found.append(part)
            before = part
        return found
