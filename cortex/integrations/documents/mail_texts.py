"""Forms of text that only mails have, as plain text: flowed lines, enriched text, invitations, files in the text."""

import re

from cortex.integrations.page_text import whole

QUIET = frozenset(
    {"BEGIN", "END", "UID", "VERSION", "PRODID", "DTSTAMP", "SEQUENCE", "CALSCALE", "TRANSP", "CLASS", "CREATED"}
    | {"LAST-MODIFIED", "TZID", "TZOFFSETFROM", "TZOFFSETTO", "TZNAME", "TZURL", "ACTION", "TRIGGER", "ATTACH"}
)
_FOLD = re.compile(r"\n[ \t]")
_ESCAPED = re.compile(r"\\([nN,;\\])")
_MARK = re.compile(r"<(/?[A-Za-z][\w-]*)>")
_PARAMETER = re.compile(r"(?s)<param>.{0,1000}?</param>", re.IGNORECASE)
_UUENCODED = re.compile(r"(?m)^begin [0-7]{3,4} (.{1,200})\n(?:[\x20-\x60]{1,80}\n){1,}?(?:`?\n)?end[ \t]*$")
_QUOTES = re.compile(r">*")


def unfolded(text: str, *, is_deleting: bool) -> str:
    """Text whose lines flow (RFC 3676), each paragraph on one line. is_deleting: the blank at a line's end is none."""
    made: list[str] = []
    depth_before, is_open = -1, False
    for line in text.split("\n"):
        found = _QUOTES.match(line)
        quotes = found[0] if found else ""
        rest = line[len(quotes) :].removeprefix(" ")
        is_flowing = rest.endswith(" ") and rest != "-- "
        piece = rest[:-1] if is_flowing and is_deleting else rest
        if is_open and len(quotes) == depth_before and rest != "-- ":
            made[-1] += piece
        else:
            made.append(f"{quotes} {piece}" if quotes else piece)
        depth_before, is_open = len(quotes), is_flowing
    return "\n".join(made)


def enriched(text: str) -> str:
    """Enriched text (RFC 1896) without its marks: one line end is a blank, two are one."""
    text = _PARAMETER.sub("", text).replace("<<", "\0")
    lines = re.sub(r"\n+", lambda ends: " " if len(ends[0]) == 1 else "\n" * (len(ends[0]) - 1), text)
    return _MARK.sub("", lines).replace("\0", "<")


def calendar(text: str) -> str:
    """An invitation (RFC 5545): a line for each fact that says something to a person."""
    made: list[str] = []
    zone = 0
    for line in _FOLD.sub("", text).split("\n"):
        head, colon, value = line.partition(":")
        name = head.partition(";")[0].strip().upper()
        zone += (line.strip().upper() == "BEGIN:VTIMEZONE") - (line.strip().upper() == "END:VTIMEZONE")
        if not colon or zone > 0 or name in QUIET or name.startswith("X-"):
            continue
        who = re.search(r'CN="?([^";:]+)', head)
        said = _ESCAPED.sub(lambda sign: "\n" if sign[1] in "nN" else sign[1], value).strip()
        if said:
            made.append(f"{name.capitalize()}: {f'{who[1]}, ' if who else ''}{said}")
    return "\n".join(made) or text


def without_files(text: str) -> tuple[str, list[str]]:
    """The text with each file that is written into it (uuencode) named in its place, and the names."""
    names: list[str] = []

    def named(found: re.Match[str]) -> str:
        names.append(found[1].strip())
        return f"Attached, not read: {names[-1]}"

    return (_UUENCODED.sub(named, text), names) if "\nend" in text and "begin " in text else (text, names)


def page(html: str) -> tuple[str, list[str]]:
    """All text of a web page as Markdown, and what of it is no text and was not read."""
    found = whole(html)
    return (f"# {found.title}\n\n{found.text}" if found.title else found.text), found.frames
