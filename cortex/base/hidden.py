"""Which characters hide: drawn as nothing or as an odd blank, turning the direction of reading, driving a terminal.

Decided by the properties and names of Python's own Unicode database, so that a newer one knows more. Pure.
"""

import re
import unicodedata
from functools import lru_cache

# Letters, marks and signs by category that are drawn as nothing: the rest of Unicode's Default_Ignorable_Code_Point,
# which unicodedata does not have, and a few blanks beside it.
_DRAWN_AS_NOTHING = re.compile(
    r"\b(FILLER|VARIATION SELECTOR|GRAPHEME JOINER|VOWEL INHERENT|PATTERN BLANK|(FULL|HALF) BLANK|NULL NOTEHEAD)\b"
)

# What a model reads and its person does not see, and no writing needs: tags but for those of a flag, signs in a row
# that are honest one at a time, turns of direction, blanks of no width.
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_UNSEEN = re.compile(
    "(\U0001f3f4[\U000e0020-\U000e007e]{1,6}\U000e007f)"
    f"|[\U000e0000-\U000e007f\u00ad\u200b\u202a-\u202e\u2060-\u2069\ufeff]|(?<=[{_SELECTORS}])[{_SELECTORS}]"
    "|(?<=[\u200c\u200d])[\u200c\u200d]"
)


@lru_cache(maxsize=4096)
def is_hiding(char: str) -> bool:
    """Tell whether a character cannot be seen for what it is; plain spaces, tabs and line ends can."""
    if char in "\n\t ":
        return False
    is_control_or_space = unicodedata.category(char)[0] in "CZ"
    return is_control_or_space or bool(_DRAWN_AS_NOTHING.search(unicodedata.name(char, "")))


def holds_hiding(text: str) -> bool:
    """Tell whether any character of the text hides; a long text costs its distinct characters only."""
    return any(map(is_hiding, set(text)))


def without_unseen(text: str) -> str:
    """The text as its person sees it: without what only a model would read."""
    return text if text.isascii() else _UNSEEN.sub(r"\1", text)


def show_hidden(text: str) -> str:
    """The text with each hiding character written out as ⟨U+XXXX⟩."""
    return "".join(f"⟨U+{ord(char):04X}⟩" if is_hiding(char) else char for char in text)
