"""What kind of thing a short message is: small talk, a yes, a goodbye, a follow-up. By the word lists of `talk.txt`.

Decides nothing about tools; the stages do.
"""

import re
from functools import lru_cache
from pathlib import Path

from cortex.selection.words.text import stem, words

_FILE = Path(__file__).with_suffix(".txt")
_LIST = re.compile(r"^\[([^\]]+)\].*\n([^\[]*)", re.MULTILINE)
_THING = re.compile("(?![✅-✍✓✔✨❤🌟🎈-🎊🏻-🏿👀-👐💋-💟🔥😀-🙏🤌-🤺🥰-🥺])[☀-➿🀀-🫿]")  # no face nor hand
_SHORT, _LEANING, _POINTING_WORDS = 8, 12, 8
_ASKING_CHARACTERS = 160


@lru_cache(maxsize=16)
def listed(name: str) -> frozenset[str]:
    """The words of this list."""
    return frozenset(dict(_LIST.findall(_FILE.read_text(encoding="utf-8")))[name].split())


@lru_cache(maxsize=1)
def common_terms() -> frozenset[str]:
    """Stems that say nothing about what somebody wants: they can't carry a tool in by themselves."""
    return frozenset(map(stem, listed("common")))


def is_small_talk(text: str) -> bool:
    """Tell whether the text is blank, or a greeting, thanks or assent and nothing more; no picture of a thing alone."""
    said = words(text)
    if not said:
        return _THING.search(text) is None
    return len(said) <= _SHORT and all(word in listed("small talk") for word in said)


def is_parting(text: str) -> bool:
    """Tell whether the text is small talk that thanks or says goodbye."""
    return is_small_talk(text) and not is_assent(text) and any(word in listed("parting") for word in words(text))


def is_assent(text: str) -> bool:
    """Tell whether the text says yes to what was proposed, and hardly more."""
    said = words(text)
    if not 0 < len(said) <= _SHORT or said[0] not in listed("assent first"):
        return False
    return sum(word not in listed("assent") for word in said) <= len(said) // 3


def is_answer(text: str, asked: str) -> bool:
    """Tell whether the text is short enough to be an answer to what the assistant asked back last."""
    end = asked.rstrip()[-_ASKING_CHARACTERS:]
    return 0 < len(words(text)) <= _LEANING and ("?" in end or "confirm" in words(end))


def is_follow_up(text: str) -> bool:
    """Tell whether the text leans on what was said before: short, and begins with "and", or points ("it", "that")."""
    said = words(text)
    if not 0 < len(said) <= _LEANING:
        return False
    return said[0] in listed("follow first") or (
        len(said) <= _POINTING_WORDS and any(word in listed("pointing") for word in said)
    )
