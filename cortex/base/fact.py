"""A remembered fact as recall sees it, and by what two facts are the same. Pure: no table and no model in here."""

import re
import unicodedata
from typing import Literal

from msgspec import Struct

FACT_CHARS_MAX = 500
RECALL_TOKENS = 200
FROM_OUTSIDE = "[from outside]"  # beside each word of others that rides behind a message

Certainty = Literal["stated", "inferred", "uncertain"]
FactState = Literal["kept", "proposed", "forgotten"]

_WORD = re.compile(r"[^\W_]+")


class KnownFact(Struct, frozen=True, kw_only=True):
    """A fact that is kept. `is_tainted`: it holds words from outside."""

    id: str
    text: str
    is_tainted: bool


class FactFit(Struct, frozen=True, kw_only=True):
    """A fact that fits a message: how well (0 to 1), why in words for the person, what its line costs in tokens."""

    id: str
    text: str
    score: float
    reason: str
    tokens: int
    is_tainted: bool


def fact_key(text: str) -> str:
    """Equal for facts that say exactly the same: NFKC, case-folded, without punctuation."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_WORD.findall(folded)) or " ".join(folded.split())
