"""Splits an answer's text, as it streams, into what is said and what is thought, by the marks that models put there.

Pure; `heard.py` sends each piece through it. Marks count at the very beginning of an answer only: further on, in
quotes and in code they are words, so that "what does <think> mean?" can be answered. Tables of marks by the reasoning
parsers of vLLM and SGLang, Open WebUI's tags, OpenAI's harmony format (read 2026-11-27).
"""

import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

Kind = Literal["text", "thinking", "void"]
Piece = tuple[Kind, str]

_TAGS = (
    "think", "thinking", "thought", "thoughts", "reason", "reasoning", "seed:think", "longcat_think", "scratchpad",
    "antthinking", "inner_thoughts",
)  # fmt: skip
# How reasoning begins, how it ends. The plain sentences are Granite's.
_PAIRS: tuple[tuple[str, str], ...] = (
    *((f"<{tag}>", f"</{tag}>") for tag in _TAGS),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought", "<channel|>"),
    ("<unused94>thought", "<unused95>"),
    ("Here is my thought process:", "Here is my response:"),
    ("Here's my thought process:", "Here's my response:"),
)
# Harmony of a server that left its marks out: "analysisThe user …assistantfinalHello".
_BARE = ("analysis", re.compile(r"assistant(?:final|(?=commentary))"))
# What some put around the answer itself behind their reasoning; the later ones also without any.
_AROUND = (
    ("<answer>", "</answer>"),
    ("<response>", "</response>"),
    ("<output>", "</output>"),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
)
_AROUND_ALONE = _AROUND[3:]
_HARMONY = ("<|start|>", "<|channel|>")
_MESSAGE, _CALL = "<|message|>", "<|call|>"
_ENDS = ("<|end|>", "<|return|>", _CALL, "<|start|>", "<|channel|>")
_LAST = re.compile("|".join(map(re.escape, _ENDS)))
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
# Ends that stand alone where the server's own template began the reasoning.
_LONE = tuple(end for _, end in _PAIRS if end[0] in "<[◁" and end != "<channel|>")
_LONE_END = re.compile("|".join(map(re.escape, _LONE)), re.IGNORECASE)
_BEGIN = re.compile("|".join(re.escape(begin) for begin, _ in _PAIRS if begin[0] in "<[◁"), re.IGNORECASE)
_BLANK_MOST, _HEADER_MOST = 1_000, 400  # characters that are waited through for a mark to begin, or to be whole
_SPOKEN_MOST = 100  # end marks that are words: then it is no longer looked at each
_PIECE = 16_384  # characters that are looked at together
_EDGE = 64  # blanks at the end of reasoning that are left out
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_SENTENCE = re.compile(r"[ \t]+\S")
_ITEM = re.compile(r"[ \t]*(?:(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+\**|\|.*)")  # a list that names marks, a table of them
_QUOTES = "`'\"\u201d\u2019»"
_STOPS = ".!?。\uff01\uff1f"


class _Block(Struct, frozen=True):
    """Reasoning that is under way: the mark that began it, and what ends it."""

    begin: str
    end: re.Pattern[str]
    ends: tuple[str, ...]


class ReasoningMarks:
    """One answer. `feed` and `end` give (kind, text) in order; the same text gives the same, however it is cut.

    `void` says: all that was given so far is taken back, and what follows is the whole of it anew.
    """

    def __init__(self) -> None:
        """Nothing has come."""
        self._held = ""  # has come, and waits for what follows
        self._step: Callable[[], bool] = self._start
        self._is_over = False
        self._out: list[Piece] = []
        self._raw: list[str] = []
        self._said: list[str] = []
        self._thought: list[str] = []
        self._block: _Block | None = None
        self._blanks = 0  # between reasoning and answer
        self._spoken = 0  # end marks that were words
        self._is_lone = False  # reasoning that was found by its end alone
        self._around = ""
        self._is_call = False

    def feed(self, text: str) -> list[Piece]:
        """Return what is known of the answer with this piece."""
        for at in range(0, len(text), _PIECE):  # each mark moves what is held: of a long text that takes seconds
            piece = text[at : at + _PIECE]
            self._raw.append(piece)
            self._held += piece
            while self._step():
                pass
        return self._pieces()

    def end(self, *, needs_words: bool = False) -> list[Piece]:
        """The rest. needs_words: the model ended by itself and nothing but this is in its answer.

        Then reasoning that never ended is what it had to say, and so is what stands before a lone mark at the end.
        """
        self._is_over = True
        pieces = self._pieces()
        is_open = self._block is not None or self._is_lone
        is_plain = self._block is not None and self._block.begin[0] not in "<[◁"  # words, which need mean nothing
        if not (is_open and (needs_words or is_plain)) or "".join(self._said).strip():
            return pieces
        whole = "".join(self._thought) if self._is_lone or self._is_mark() else "".join(self._raw)
        return [("void", ""), ("text", whole)] if whole.strip() else pieces

    def _is_mark(self) -> bool:
        """Tell whether what began the reasoning stands as models put it, not as a sentence about it would begin."""
        begin = self._block.begin if self._block else ""
        is_tag = begin.startswith("<") and begin[1:2].isalpha()
        follows = _SENTENCE.match("".join(self._raw).lstrip()[len(begin) :])
        return begin[:1] in tuple("<[◁") and not (is_tag and follows)

    def _pieces(self) -> list[Piece]:
        while self._step():
            pass
        joined: list[Piece] = []
        for kind, text in self._out:
            if joined and joined[-1][0] == kind:
                joined[-1] = (kind, joined[-1][1] + text)
            else:
                joined.append((kind, text))
        self._out.clear()
        return joined

    def _say(self, text: str) -> None:
        if text:
            self._said.append(text)
            self._out.append(("text", text))

    def _think(self, text: str) -> None:
        if text:
            self._thought.append(text)
            self._out.append(("thinking", text))

    def _void(self) -> None:
        self._out[:] = [("void", "")] if self._said or self._thought else []
        self._said.clear()
        self._thought.clear()

    def _go(self, step: Callable[[], bool], held: str | None = None) -> bool:
        self._step = step
        if held is not None:
            self._held = held
        return True

    # --- the beginning ------------------------------------------------------------------------------------------

    def _start(self) -> bool:
        text = self._held.lstrip()
        if not text and not self._is_over and len(self._held) <= _BLANK_MOST:
            return False
        if len(self._held) - len(text) > _BLANK_MOST:
            return self._go(self._talk)
        low = text.lower()
        for begin, end in _PAIRS:
            if low.startswith(begin.lower()):
                pattern = re.compile(re.escape(end), re.IGNORECASE)
                self._block = _Block(text[: len(begin)], pattern, (end,))
                return self._go(self._reason, text[len(begin) :])
        if text.startswith(_HARMONY):
            return self._go(self._header, text)
        if self._begins_around(text, _AROUND_ALONE):
            return True
        if self._begins_bare(text):
            return True
        if found := _LONE_END.match(text):
            return self._begin_with_end(text, found.end())
        marks = [begin for begin, _ in (*_PAIRS, *_AROUND_ALONE)] + [*_HARMONY, *_LONE, _BARE[0] + "A"]
        if text and not self._is_over and any(mark.lower().startswith(low) for mark in marks):
            return False
        return self._go(self._talk)

    def _begins_bare(self, text: str) -> bool:
        begin, end = _BARE
        following = text[len(begin) : len(begin) + 1]
        if not text.startswith(begin) or not following.isupper():
            return False
        self._block = _Block(begin, end, ("assistantfinal", "assistantcommentary"))
        return self._go(self._reason, text[len(begin) :])

    def _begin_with_end(self, text: str, upto: int) -> bool:
        """The end of reasoning that the server's template began and that had no words."""
        if len(text) < upto + 2 and not self._is_over:
            return False
        if _is_spoken_of("", text[upto:]):
            return self._go(self._plain)
        return self._go(self._behind, text[upto:])

    def _begins_around(self, text: str, pairs: tuple[tuple[str, str], ...]) -> bool:
        for begin, end in pairs:
            if text.lower().startswith(begin.lower()):
                self._around = end
                return self._go(self._wrapped, text[len(begin) :])
        return False

    # --- reasoning ----------------------------------------------------------------------------------------------

    def _reason(self) -> bool:
        block = self._block
        blanks = len(self._held) - len(self._held.lstrip())
        if block is None or (not self._thought and blanks == len(self._held) <= _BLANK_MOST and not self._is_over):
            return False
        if not self._thought and blanks <= _BLANK_MOST:
            self._held = self._held[blanks:]
        found = block.end.search(self._held)
        if found is None:
            kept = 0 if self._is_over else _partial(self._held, block.ends)
            return self._keep_back(len(self._held) - kept)
        behind = self._held[found.end() :]
        if len(behind) < 2 and not self._is_over:
            return self._keep_back(found.start())
        before = "".join(self._thought[-_EDGE:]) + self._held[: found.start()]
        if block.begin != _BARE[0] and self._spoken < _SPOKEN_MOST and _is_spoken_of(before, behind):
            return self._spoken_of(found.end())
        self._think(_trimmed(self._held[: found.start()]))
        is_empty = not self._thought
        self._block = None
        return self._go(self._start if is_empty else self._behind, behind.lstrip() if is_empty else behind)

    def _keep_back(self, upto: int) -> bool:
        """Give the reasoning so far, but for blanks at its end, which an end mark would make superfluous."""
        head = self._held[:upto]
        shown = head if self._is_over else _trimmed(head)
        self._think(shown)
        self._held = self._held[len(shown) :]
        return False

    def _spoken_of(self, upto: int) -> bool:
        """An end mark that is a word of a sentence. Where all of it is one line, so was the one that began it."""
        self._spoken += 1
        raw = "".join(self._raw)
        if "\n" not in raw[: len(raw) - len(self._held) + upto].lstrip():
            self._void()
            self._block = None
            return self._go(self._plain, "".join(self._raw))
        self._think(self._held[:upto])
        self._held = self._held[upto:]
        return True

    def _behind(self) -> bool:
        """Between the reasoning and the answer."""
        text = self._held.lstrip()
        self._blanks += len(self._held) - len(text)
        self._held = text
        if not text:
            return self._blanks > _BLANK_MOST and self._go(self._plain)
        if self._begins_around(text, _AROUND):
            return True
        low = text.lower()
        if not self._is_over and any(begin.lower().startswith(low) for begin, _ in _AROUND):
            return False
        return self._go(self._plain)

    # --- the answer ---------------------------------------------------------------------------------------------

    def _plain(self) -> bool:
        self._say(self._held)
        self._held = ""
        return False

    def _wrapped(self) -> bool:
        """The answer between two marks, of which the last is left out where it is the end of everything."""
        if not self._said:
            self._held = self._held.lstrip("\r\n")
        kept = self._held.rstrip()
        is_last = kept.lower().endswith(self._around.lower())
        if self._is_over:
            self._say(kept[: -len(self._around)].rstrip() if is_last else self._held)
            self._held = ""
            return False
        hold = len(self._around) if is_last else _partial(kept, (self._around,))
        upto = len(kept[: len(kept) - hold].rstrip())
        if len(self._held) - upto > _BLANK_MOST:
            upto = len(self._held)
        self._say(self._held[:upto])
        self._held = self._held[upto:]
        return False

    def _talk(self) -> bool:
        """An answer that began without a mark: an end mark in it may still say that all of it was reasoning."""
        found = _LONE_END.search(self._held)
        if found is None:
            upto = len(self._held) - (0 if self._is_over else _partial(self._held, _LONE))
            self._say(self._held[:upto])
            self._held = self._held[upto:]
            return False
        behind = self._held[found.end() :]
        if len(behind) < 2 and not self._is_over:
            self._say(self._held[: found.start()])
            self._held = self._held[found.start() :]
            return False
        before = "".join(self._said) + self._held[: found.start()]
        if _is_words(before, behind):
            self._spoken += 1
            self._say(self._held[: found.end()])
            self._held = behind
            return self._spoken < _SPOKEN_MOST or self._go(self._plain)
        self._void()
        self._think(before.strip())
        self._is_lone = True
        return self._go(self._behind, behind)

    # --- harmony ------------------------------------------------------------------------------------------------

    def _header(self) -> bool:
        """`<|start|>assistant<|channel|>analysis<|message|>`, or the part of it that came."""
        text = self._held.lstrip()
        if not text.startswith(_HARMONY):
            if not self._is_over and any(mark.startswith(text) for mark in _HARMONY):
                return False
            return self._go(self._plain, text)
        head, found, rest = text.partition(_MESSAGE)
        if not found:
            if len(text) <= _HEADER_MOST and not self._is_over:
                return False
            return self._go(self._plain, text)
        channel = _CHANNEL.search(head)
        self._is_call = " to=" in head or "<|constrain|>" in head
        is_thought = channel is not None and channel[1] == "analysis" and not self._is_call
        self._block = _Block(head + _MESSAGE, _LAST, _ENDS) if is_thought else None
        parts = self._thought if is_thought else self._said
        if parts:
            (self._think if is_thought else self._say)("\n\n")
        if self._is_call:
            self._say(head + _MESSAGE)
        return self._go(self._content, rest)

    def _content(self) -> bool:
        give = self._think if self._block is not None else self._say
        found = _LAST.search(self._held)
        if found is None:
            upto = len(self._held) - (0 if self._is_over else _partial(self._held, _ENDS))
            give(self._held[:upto])
            self._held = self._held[upto:]
            return False
        give(self._held[: found.start()])
        if self._is_call and found[0] == _CALL:
            self._say(_CALL)
        rest = self._held[found.start() if found[0] in _HARMONY else found.end() :]
        self._block = None
        return self._go(self._header, rest)


def _partial(text: str, marks: tuple[str, ...]) -> int:
    """Return how many characters at the end of the text may be the beginning of a mark."""
    most = max(map(len, marks)) - 1
    tail = text[-most:]
    firsts = {sign for mark in marks for sign in (mark[0].lower(), mark[0].upper())}
    for start, sign in enumerate(tail):
        if sign in firsts and any(mark.lower().startswith(tail[start:].lower()) for mark in marks):
            return len(tail) - start
    return 0


def _trimmed(text: str) -> str:
    """The text without the last blanks in it, of which `_EDGE` count."""
    return text[: max(len(text.rstrip()), len(text) - _EDGE)]


def _is_spoken_of(before: str, behind: str) -> bool:
    """Tell whether a mark between these is a word of a sentence: quoted, or followed by how a sentence goes on."""
    last = before.rstrip(" \t")[-1:]
    if last == "\n" or (last in _STOPS and last and not before.rstrip().endswith("...")):
        return False
    if before and before[-1] in _QUOTES and behind.startswith(before[-1]):
        return True
    return behind[:1] in tuple(".,;:?!)") or (behind[:1] == " " and behind[1:2].islower())


def _is_words(before: str, behind: str) -> bool:
    """Tell whether an end mark behind these words is one of them: in code, in quotes, or after its pair."""
    line = before.rpartition("\n")[2]
    is_code = len(_FENCE.findall(before)) % 2 == 1 or line.count("`") % 2 == 1 or line.startswith(("    ", "\t", ">"))
    is_item = _ITEM.fullmatch(line[-_HEADER_MOST:]) is not None
    return is_code or is_item or _BEGIN.search(before) is not None or _is_spoken_of(before, behind)
