"""Text of a kept mail (EML): who, when, about what, and every part that is text, in the order in which they stand.

Of the forms of one text (multipart/alternative) the one with the most words is read, and of the others what it lacks.
What is no text is named: in its place, and on the mail's card. Nothing is opened.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from cortex.integrations.documents import mail_texts, unread
from cortex.integrations.documents.charsets import LOST, decoded, decoded_file, decoded_page
from cortex.integrations.documents.kinds import ENDINGS, PACKED, SEARCHED, WIDE_MARKS, wide_encoding
from cortex.integrations.documents.mime import DEPTH_MOST, PARTS_MOST, Bounds, Part, parsed
from cortex.integrations.documents.pages import Pages
from cortex.integrations.documents.plain import markdown

HEADERS = ("From", "To", "Cc", "Bcc", "Reply-To", "Date", "Subject")
HEADER_CHARACTERS = 2_000
MAPPED: dict[str, Callable[[str], str]] = {
    "text/calendar": mail_texts.calendar,
    "text/enriched": mail_texts.enriched,
    "text/richtext": mail_texts.enriched,
}
READ_AS_TEXT = frozenset(
    {
        *(f"message/{kind}" for kind in ("delivery-status", "disposition-notification", "feedback-report")),
        *(f"message/{kind}" for kind in ("global-headers", "global-delivery-status")),
        *(f"application/{kind}" for kind in ("json", "xml", "xhtml+xml", "ics", "x-yaml", "yaml", "pgp")),
    }
)
UNREADABLE_TEXTS = frozenset({"text/rtf", "text/x-vcard-photo"})
PAGES = frozenset({"text/html", "application/xhtml+xml", "text/x-amp-html", "text/xhtml"})
UNKNOWN = frozenset(
    {"application/octet-stream", "application/x-unknown", "application/unknown", "application/x-download"}
)
LETTERS = frozenset({"text/plain", *PAGES})
WHAT = {
    "application/pgp-signature": "a signature",
    "application/pkcs7-signature": "a signature",
    "application/x-pkcs7-signature": "a signature",
    "application/pgp-encrypted": "encrypted with PGP",
    "application/ms-tnef": "Outlook's own format",
    "application/vnd.ms-tnef": "Outlook's own format",
    "message/external-body": "kept elsewhere",
    "message/partial": "one piece of several mails",
}
PGP = "-----BEGIN PGP MESSAGE-----"
TOLD_SHARE = 0.8  # of a line's runs of three words, for it to count as read in another form
_WORD = re.compile(r"\w+")
_ADDRESS = re.compile(r"(?:https?://|mailto:|www\.)\S+")


class _Reading:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.read = 0
        self.unread: list[str] = []
        self.has_lost = self.has_pgp = False

    def show(self, part: Part, *, is_first: bool = True) -> None:
        """A part and all that it holds."""
        if part.kind == "multipart/alternative":
            self._forms(part.parts)
        elif part.kind in ("message/rfc822", "message/global") and part.parts:
            self._pages.text("Forwarded mail:")
            self._mail(part.parts[0])
        elif part.parts:
            for number, inner in enumerate(part.parts):
                self.show(inner, is_first=is_first and number == 0)
        else:
            self._leaf(part, is_first=is_first)

    def _mail(self, mail: Part) -> None:
        lines = _headers(mail)
        if lines:
            self._pages.text("\n".join(lines))
        self.show(mail)

    def top(self, mail: Part) -> None:
        """The mail itself."""
        self._pages.heading(mail.header("subject") or "Mail", 1, is_shown=False)
        self._mail(mail)

    def _leaf(self, part: Part, *, is_first: bool) -> None:
        text = self._text_of(part)
        if text is None:
            name = _named(part)
            self.unread.append(name)
            self._pages.text(f"Attached, not read: {name}")
            return
        self.read += 1
        if part.name and not is_first and text.strip():
            self._pages.text(f"[{part.name}]")
        self._write(text, is_page=_is_page(part))

    def _write(self, text: str, *, is_page: bool = False) -> None:
        if is_page:
            markdown(text, self._pages)
            return
        for paragraph in text.split("\n\n"):
            self._pages.text(paragraph)

    def _text_of(self, part: Part) -> str | None:
        """The text of a leaf, None for what is no text."""
        is_text = part.kind.startswith("text/") or part.kind in READ_AS_TEXT or _is_named_text(part)
        if not is_text or part.kind in UNREADABLE_TEXTS:
            return None
        if _is_page(part):
            text, unseen = mail_texts.page(decoded_page(part.body, part.charset))
            self.unread += unseen
        else:
            text = decoded(part.body, part.charset).replace("\r\n", "\n").replace("\r", "\n")
            if b"\0" in part.body and text.count("\0") > len(text) / 10:
                return None
            if part.facts.get("format", "").lower() == "flowed":
                text = mail_texts.unfolded(text, is_deleting=part.facts.get("delsp", "").lower() == "yes")
            text = MAPPED.get(part.kind, str)(text)
            text, files = mail_texts.without_files(text)
            self.unread += files
        self.has_lost |= LOST in text
        self.has_pgp |= PGP in text
        return text

    def _forms(self, forms: Sequence[Part]) -> None:
        """Several forms of one text: the fullest, and behind it what only another one has."""
        texts: list[tuple[Part, str]] = []
        beside: list[Part] = []
        for form in forms:
            for leaf in _leaves(form):  # an HTML form is often held together with its pictures and what is attached
                is_form = not form.parts or (leaf.kind in LETTERS and not leaf.name)
                text = self._text_of(leaf) if is_form else None
                if text is None:
                    beside.append(leaf)
                else:
                    self.read += 1
                    texts.append((leaf, text))
        if texts:
            fullest = max(texts, key=_rank)
            self._write(fullest[1], is_page=_is_page(fullest[0]))
            said = _Said()
            said.add(fullest[1])
            for part, text in texts:
                if part is not fullest[0] and (more := said.lacking(text)):
                    self._write(f"[Only in the form {part.kind}:]\n{more}")
                    said.add(more)
        for part in beside:
            self.show(part, is_first=False)


def read(data: bytes, pages: Pages) -> None:
    """Put the mail into `pages`."""
    bounds = Bounds()
    is_wide = data.startswith(WIDE_MARKS) or bool(wide_encoding(data))
    mail = parsed(decoded_file(data).encode("utf-8", "replace") if is_wide else data, bounds)
    reading = _Reading(pages)
    try:
        reading.top(mail)
    finally:  # also where it is longer than is read
        if bounds.is_over:
            reading.unread.append(f"what is behind {PARTS_MOST} parts")
        pages.note = unread.joined(
            unread.parts_note(reading.read, reading.unread),
            "A part is encrypted with PGP." if reading.has_pgp else "",
            "Some letters could not be read: their encoding is not the one that is named." if reading.has_lost else "",
        )


def _headers(mail: Part) -> list[str]:
    lines = []
    for name in HEADERS:
        value = mail.header(name.lower())
        if value:
            lines.append(f"{name}: {value[:HEADER_CHARACTERS]}{' …' if len(value) > HEADER_CHARACTERS else ''}")
    return lines


def _rank(form: tuple[Part, str]) -> tuple[bool, int, bool]:
    """Return which form of a text is read as a whole: of letters the fullest, and an invitation behind them."""
    return form[0].kind in LETTERS, len({*_words(form[1])}), form[0].kind == "text/plain"


def _leaves(part: Part) -> list[Part]:
    """Return what a form is made of; a mail that is attached to it is one piece."""
    is_held = part.parts and part.kind.startswith("multipart/")
    return [leaf for inner in part.parts for leaf in _leaves(inner)] if is_held else [part]


def _is_named_text(part: Part) -> bool:
    ending = PurePosixPath(part.name.lower()).suffix
    return part.kind in UNKNOWN and ending in SEARCHED and ENDINGS.get(ending) not in ("pdf", *PACKED)


def _is_page(part: Part) -> bool:
    return part.kind in PAGES or (part.kind in UNKNOWN and part.name.lower().endswith((".htm", ".html", ".xhtml")))


def _named(part: Part) -> str:
    if part.kind.startswith("multipart/"):
        return f"parts nested more than {DEPTH_MOST} deep"
    what = WHAT.get(part.kind, "")
    if part.kind in ("application/pkcs7-mime", "application/x-pkcs7-mime"):
        is_signed = part.facts.get("smime-type", "").lower() == "signed-data"
        what = "signed with S/MIME: its text is inside" if is_signed else "encrypted or signed with S/MIME"
    name = part.name or part.kind
    return f"{name} ({what})" if what else name


def _words(text: str) -> list[str]:
    return _WORD.findall(_ADDRESS.sub(" ", text).casefold())


class _Said:
    """The forms of a text so far: words, and runs of two and three of them."""

    def __init__(self) -> None:
        self._runs: set[tuple[str, ...]] = set()

    def add(self, text: str) -> None:
        """More that was said."""
        words = _words(text)
        for length in (1, 2, 3):
            self._runs.update(_runs(words, length))

    def lacking(self, text: str) -> str:
        """The lines of a text that were not said, whatever the line ends, links and marks are."""
        lines = []
        for line in text.split("\n"):
            words = _words(line)
            runs = _runs(words, min(len(words), 3))
            told = sum(run in self._runs for run in runs)
            if told < TOLD_SHARE * len(runs) or not self._runs.issuperset(_runs(words, 1)):
                lines.append(line)
        return "\n".join(lines)


def _runs(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [*zip(*(words[start:] for start in range(length)), strict=False)]
