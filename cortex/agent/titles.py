"""Names a conversation from its first message by a local rule: no model call."""

import re

TITLE_CHARS_MAX = 48
_LEAD = re.compile(
    r"^(?:(?:(?:hi|hello|hey)(?: there)?|ok(?:ay)?|please|pls|cortex|so|well|um|uh)\b[\s,!.:;-]*"
    r"|(?:can|could|would|will) you (?:please )?|i(?:'d| would) like (?:you )?to |i (?:want|need) (?:you )?to )+",
    re.IGNORECASE,
)


def title(text: str) -> str:
    """The first sentence of the message without its greeting, cut at a word, with a capital."""
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    plain = re.sub(r"[`*_#>]+", "", line)
    core = _LEAD.sub("", plain).strip() or plain
    core = re.split(r"(?<=[.!?])\s", core, maxsplit=1)[0].rstrip(" .!,;:")
    if len(core) > TITLE_CHARS_MAX:
        core = core[:TITLE_CHARS_MAX].rsplit(" ", 1)[0].rstrip(" .,;:") + "…"
    return core[:1].upper() + core[1:] if core else "New chat"
