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


def show_hidden(text: str) -> str:
    """The text with each hiding character written out as ⟨U+XXXX⟩."""
    return "".join(f"⟨U+{ord(char):04X}⟩" if is_hiding(char) else char for char in text)
