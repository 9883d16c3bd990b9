"""The words of a message that are the person's own wish, without what is quoted, fenced or pasted.

Reads the shape of a text and no verb of any language. Where a shape may be either, the words stay: a wish too many
costs a few tokens, a wish too few an answer.
"""

import re

from cortex.selection.words.talk import is_small_talk

NAME_WORDS, NAME_CHARACTERS = 7, 60  # a quote up to here is a title, a file, an item of a list
HEAD_WORDS, HEAD_CHARACTERS = 20, 240  # what is asked about a pasted text is short
PROSE_WORDS, LOOSE_WORDS = 15, 40  # pasted behind a colon: with a capital and a full stop, or without
BODY_WORDS, LETTER_WORDS = 30, 120  # pasted below the words that ask, or above them: a letter may be to Cortex
SIGNED_WORDS = 5  # of the lines that greet and sign
LINE_WORDS, VERSES = 10, 8  # a few shorter lines are a list, and a list may be of wishes; many are a poem or data
PASSES = 6  # what one cut leaves may show the next

_FENCE = re.compile(r"```.*?(?:```|\Z)|^[ \t]*~~~.*?(?:^[ \t]*~~~+|\Z)", re.DOTALL | re.MULTILINE)
_QUOTE = re.compile(
    r'(?<![\w"])"(?=\S)[^"]++(?:"|\Z)|„[^„“”"]++(?:[“”"]|\Z)|“[^“”"]++(?:[”"]|\Z)|«[^«»]++(?:»|\Z)|»[^«»]++«'
    r"|(?<!\w)'(?![a-z]\b)(?=\S)(?:[^'\n]|(?<=\w)'(?=\w))++'(?!\w)"
    "|(?<!\\w)\u2018(?:[^\u2018\u2019\\n]|(?<=\\w)\u2019(?=\\w))++\u2019(?!\\w)"
)
_BLOB = re.compile(r"\{\s*[{\[\"']|\[\s*[{\"']|<(?:!doctype|html|body|div|table|svg|\?xml)\b[^<>\n]*>", re.IGNORECASE)
_MACHINE = re.compile(  # stamps and levels, traces, markup, settings and data, ends of statements and calls
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|\[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL)\b"
    r"|(?:error|fatal|hint|warning):|Traceback \(|File \"|Caused by:"
    r"|at [\w.$<>]+\(|[\w.]+(?:Error|Exception)\b|</?[a-z!]|[\]})]+[,;)]*\s*$"
    r"|[\w.\"'-]+\s*=\s*\S|\"[^\"]*\"\s*:|[-+@]{3}|[|].*[|]\s*$|[#$%]\s|//|/\*|@\w+\s*$|@\w+\()"
    r"|.*(?:[{};]\s*$|\w\(.*\):$|\w\((?:.*[,=\"'].*)?\)$)"
)
_COLON = re.compile("[:\uff1a](?=\\s)")
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s")
_STOP = re.compile(r"[.!…。](?=\s|[\"”»“']|$)")
_WORD = re.compile(r"\w")


def wish_of(message: str) -> str:
    """The message without its long quotes, code, logs and pasted texts; the whole of it where nothing else is left.

    Never longer than the message, the same when given its own result, and made in time that grows with the length.
    """
    kept = message.strip()
    for _ in range(PASSES):
        before, quoteless = kept, _QUOTE.sub(_short, _without_blob(_FENCE.sub(_short, kept)))
        kept = _without_paste(_without_machine_lines(quoteless).strip()).strip()
        if kept == before:
            break
    return kept if _WORD.search(kept) else message.strip()


def head_of(wish: str) -> str:
    """Return what stands up to the first colon, with a last paragraph that asks for more; "" without a colon."""
    found = _COLON.search(wish[:HEAD_CHARACTERS])
    head, rest = (wish[: found.end()], wish[found.end() :]) if found else ("", "")
    return f"{head} {_tail(rest)}" if _WORD.search(head) and _WORD.search(rest) else ""


def _short(quote: re.Match[str]) -> str:
    is_long = len(quote[0]) > NAME_CHARACTERS or _words(quote[0]) > NAME_WORDS or "\n" in quote[0]
    return " " if is_long else quote[0]


def _without_blob(text: str) -> str:
    """Without data from its first bracket to the last that closes one."""
    start, end = _BLOB.search(text), max(map(text.rfind, "}]>")) + 1
    if start is None:
        return text
    before, rest = text[: start.start()], text[end:] if end > start.end() else ""
    return text if len(text) - len(before) - len(rest) <= NAME_CHARACTERS else f"{before} {rest}"


def _without_machine_lines(text: str) -> str:
    """Without quoted lines, indented code, and what a machine wrote; a first line alone stays, it may be the wish."""
    lines = text.split("\n")
    marks = [line.lstrip().startswith(">") for line in lines]
    shaped = [bool(_MACHINE.match(line[:400])) for line in lines]
    opened = True
    for at, line in enumerate(lines):
        is_code = opened and line.startswith(("    ", "\t")) and not _BULLET.match(line)
        is_run = at > 0 or any(shaped[1:2]) or "".join(lines[1:2]).startswith("    ")
        marks[at] = marks[at] or (line != "" and (is_code or (shaped[at] and is_run)))
        opened = marks[at] or not line.strip() or line.rstrip().endswith((":", "{"))
    return "\n".join(line for line, mark in zip(lines, marks, strict=True) if not mark)


def _without_paste(text: str) -> str:
    """Without a long text behind a short head, or before the short words that ask for something to be done to it."""
    head, _, body = text.partition("\n")
    is_head = head.rstrip().endswith("?") or 2 * _words(head) <= max(map(_words, body.split("\n")))
    is_pasted = _is_prose(body) and (_words(body) >= BODY_WORDS or _is_mail(body))
    if is_head and is_pasted and _asks(head):
        return f"{head}\n\n{_tail(body)}"
    ends = [each.end() for each in _COLON.finditer(text[:HEAD_CHARACTERS]) if _words(text[: each.end()]) <= HEAD_WORDS]
    colon = next((end for end in ends if text[end : end + 1] == "\n"), max(ends, default=0))
    if colon and _is_pasted(text[:colon], text[colon:]):
        return f"{text[:colon]}\n\n{_tail(text[colon:])}"
    body, _, last = text.rpartition("\n")
    is_letter = _is_prose(body) and (_words(body) >= LETTER_WORDS or _is_mail(body))
    return last if is_letter and _asks_last(last) else text


def _is_mail(body: str) -> bool:
    """Tell whether it begins with a greeting and ends with a signature, each a short line of its own."""
    lines = body.strip().split("\n")
    first, last = lines[0].rstrip(), lines[-1].lstrip()
    return first.endswith((",", "!")) and max(_words(first), _words(last)) <= SIGNED_WORDS and not _STOP.search(last)


def _is_pasted(head: str, body: str) -> bool:
    said = body.strip()
    least = PROSE_WORDS if said[:1].isupper() and _STOP.search(said) else LOOSE_WORDS
    is_verse = body[:1] == "\n" and said.count("\n") >= VERSES and not _BULLET.match(said)
    is_text = _words(said) >= max(least, 1.5 * _words(head)) and _is_prose(said)
    return is_text or is_verse or said.endswith(("}", ";"))


def _tail(body: str) -> str:
    """The last paragraph below a pasted text, where it may ask for more."""
    before, _, last = body.strip().rpartition("\n")
    return last if before.rstrip(" \t\r").endswith("\n") and _asks_last(last) else ""


def _asks(line: str) -> bool:
    """Tell whether these are a few words that may ask: not a greeting with its comma, nor thanks with their mark."""
    return 1 < _words(line) <= HEAD_WORDS and not (line.rstrip().endswith((",", "!")) or is_small_talk(line))


def _asks_last(line: str) -> bool:
    return _asks(line) and not _STOP.search(line[:-1])  # two sentences are the end of the text itself


def _is_prose(body: str) -> bool:
    """Tell whether most of it stands in long lines: short ones are a list, and a list may be of wishes."""
    return 2 * sum(words for words in map(_words, body.split("\n")) if words >= LINE_WORDS) > _words(body)


def _words(part: str) -> int:
    return len(part.split())
