"""The words of a Markdown text without its signs, for one line in a list. Not a renderer: a sign it misses stays."""

import re

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.M), ""),  # a fence
    (re.compile(r"^[ \t]*(?:[-*_][ \t]*){3,}$", re.M), ""),  # a rule
    (re.compile(r"^(?=[ \t:|-]*?---)[ \t:|-]++$", re.M), ""),  # below a table's head
    (re.compile(r"^[ \t]*(?:(?:#{1,6}|>|[-*+])[ \t]+)+", re.M), ""),  # headings, quotes, items
    (re.compile(r"^[ \t]*\[[ xX]\][ \t]+", re.M), ""),  # a task's box
    (re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*(?:[ \t]+\"[^\"\n]*\")?\)"), r"\1"),  # links and pictures
    (re.compile(r"<((?:https?|mailto):[^>\s]+)>"), r"\1"),
    (re.compile(r"\*\*|__|~~|`+"), ""),
    (re.compile(r"(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)"), ""),
    (re.compile(r"[ \t]*(?<!\\)\|[ \t]*"), " "),
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
    # ids of rows: 26 signs of Crockford's base 32, 32 hex digits, or a UUID
    (
        re.compile(
            r"\b(?=[a-z]*\d)(?:[0-9a-hjkmnp-tv-z]{26}|[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b"
        ),
        "…",
    ),
)


def plain_text(markdown: str) -> str:
    """The text on one line without Markdown's signs and without ids of rows."""
    for pattern, instead in _RULES:
        markdown = pattern.sub(instead, markdown)
    return " ".join(markdown.split())
