"""What an endpoint said, as a person may read it: short, on one line, and without anything that looks like a key."""

import re

from cortex.base.hidden import show_hidden

_QUOTED = 240
_VALUE = r"[\w.*+/=~-]*[\w*=]"  # up to the stop that ends the sentence
_LIKE_A_KEY = rf"(?=[\w.*+/=~-]{{6}})(?=[\w.+/=~-]*[\d*])(?=[\d.+/=~-]*[A-Za-z*]){_VALUE}"  # no word, no mere number
_LABEL = r"(?:\b|_)(?:key|token|secret|password|authorization)"
_SAID = r"(?: (?:you|has|been|is|was|provided|given|used|sent|supplied|value))*"
_KEYS = re.compile(
    rf"\b(?:sk|pk|rk)[-_](?=[\w.*-]{{3}}){_VALUE}"  # by its own look
    rf"|(?<=\bbearer ){_LIKE_A_KEY}|(?<=\bbearer )(?=\S{{20}}){_VALUE}"
    rf"|(?P<label>{_LABEL}{_SAID}[\"'`]?\s*[:=]?\s*[\"'`(]?(?:bearer )?)(?:{_LIKE_A_KEY}|(?=\S{{24}}){_VALUE})"
    rf"|(?P<given>{_LABEL}(?:=[\"']?|[\"']\s*[:=]\s*[\"']))(?=\S{{6}}){_VALUE}",  # api_key=…, "token": "…"
    re.IGNORECASE,
)


def short(text: str) -> str:
    """The text on one line, cut after 240 characters, what looks like a key blotted out."""
    plain = " ".join(_KEYS.sub(_blotted, text).split())
    return plain if len(plain) <= _QUOTED else plain[:_QUOTED] + "…"


def message_of(body: object) -> str:
    """The sentence in an error's body, parsed: OpenAI's, Anthropic's, Ollama's and FastAPI's forms; else ""."""
    inner = body[0] if isinstance(body, list) and body else body  # Gemini puts its error into a list
    for key in ("error", "detail", "message"):
        if not isinstance(inner, dict):
            break
        inner = inner.get(key, inner)
    return show_hidden(short(inner)) if isinstance(inner, str) else ""


def _blotted(found: re.Match[str]) -> str:
    return f"{found['label'] or found['given'] or ''}…"
