"""What went wrong at a model endpoint, as a ProviderError: kind, whether another try is safe, how long to wait.

Used by `wire.py`. The sentences are for the person; what the endpoint said is quoted short, secrets never.
"""

import email.utils
import re
from collections.abc import Mapping
from typing import Any

import httpx

from cortex.base.clock import now
from cortex.base.dial import unknown_host
from cortex.base.errors import CortexError, ProviderError, Rejection, chain
from cortex.base.json_text import parsed
from cortex.base.model import ModelEntry
from cortex.base.trust import untrusted
from cortex.providers.rejections import rejection, sentence_of
from cortex.providers.said import short
from cortex.providers.terms import Terms

_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>(.{0,400}?)</title>", re.DOTALL | re.IGNORECASE)
_STATUS = re.compile(r"[4-5][0-9]{2}")
# How errors inside of an answer are named, where they carry no status (Anthropic's and OpenAI's kinds).
_STATUSES = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
    "overloaded_error": 529,
}


_BY_STATUS = ("overloaded", "other")  # of which the status says more than the words
_KINDS = {"credit": "rate_limit", "filtered": "refused"}


class Unwanted(Exception):
    """The endpoint answered with something else than an answer. `status`: 200 where the error stands inside of one."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        """Keep what it said."""
        super().__init__(f"{status}: {text[:200]}")
        self.status, self.text, self.headers = status, text, headers


def is_error(kind: str, data: Mapping[str, Any]) -> bool:
    """Tell whether an event, or an answer, is the endpoint's word that something went wrong."""
    if kind == "error" or data.get("type") == "error" or data.get("object") == "error":
        return True
    response = data.get("response")
    failed = response.get("error") if isinstance(response, Mapping) else None
    return bool(data.get("error") or failed)


def repeats(entry: ModelEntry) -> ProviderError:
    """It repeated itself without end before it said anything."""
    message = f"{entry.name}: it repeated itself in its reasoning without end, and was stopped; choose another model."
    return ProviderError(message, kind="repeats")


def cut(entry: ModelEntry) -> ProviderError:
    """The stream ended before the answer did."""
    return ProviderError(f"{entry.name}: the answer was cut off.", kind="cut", is_retryable=True)


def late(entry: ModelEntry, what: str, limit_s: float) -> ProviderError:
    """A time limit ran out."""
    return ProviderError(f"{entry.name}: {what} within {limit_s:g} seconds.", kind="timeout", is_retryable=True)


def empty(entry: ModelEntry, finish: str | None) -> ProviderError:
    """A whole answer with nothing in it."""
    if finish == "length":
        message = f"{entry.name}: it used all its output tokens before it answered; raise the limit on the Models page."
        return ProviderError(message, kind="empty")
    return ProviderError(f"{entry.name}: the answer was empty.", kind="empty", is_retryable=True)


def full(entry: ModelEntry) -> ProviderError:
    """The window was full before the answer began."""
    message = f"{entry.name}: the conversation fills what the model takes in, so that no answer fits."
    return ProviderError(message, kind="request", rejection=Rejection(what="window"))


def overlong(entry: ModelEntry) -> ProviderError:
    """The token limit cut a tool call in two."""
    message = (
        f"{entry.name}: its output tokens ran out in the middle of a tool call; raise the limit on the Models page."
    )
    return ProviderError(message, kind="malformed")


def refused(entry: ModelEntry) -> ProviderError:
    """The provider's filter stopped the answer."""
    return ProviderError(f"{entry.name}: the provider's content filter stopped the answer.", kind="refused")


def mapped(terms: Terms, error: BaseException) -> ProviderError:
    """Any exception on the way as a ProviderError."""
    entry = terms.entry
    blocked = _own_refusal(error)
    if blocked is not None:
        return ProviderError(f"{entry.name}: {blocked.message}", kind="connection")
    match error:
        case Unwanted():
            return _unwanted(terms, error)
        case ProviderError():
            start = f"{entry.name}: "
            return error if error.message.startswith(start) else ProviderError(start + error.message, kind=error.kind)
        case httpx.ConnectTimeout() | httpx.PoolTimeout():
            return ProviderError(f"{entry.name}: it did not answer in time.", kind="timeout", is_retryable=True)
        case httpx.TimeoutException() | httpx.ReadError() | httpx.RemoteProtocolError() | httpx.StreamError():
            return cut(entry)
        case httpx.TransportError() | OSError():
            return _unreached(entry, error)
        case ValueError():
            return _not_understood(entry, str(error))
        case _:
            message = f"{entry.name}: the request failed ({type(error).__name__}). {short(str(error))}"
            return ProviderError(message, kind="request")


def _unwanted(terms: Terms, error: Unwanted) -> ProviderError:
    """By status, and by what the endpoint said."""
    entry = terms.entry
    body = _body(error.text)
    status = _inner_status(body) if error.status == 200 else error.status
    found = rejection(terms.row, status, body, error.text)
    if found is not None and found.what not in _BY_STATUS and not (status == 401 and found.what != "credit"):
        kind = _KINDS.get(found.what, "request")
        return ProviderError(sentence_of(entry, found), kind=kind, rejection=found)
    if status == 200:
        if body is None:
            return _not_understood(entry, _words(error.text))
        message = f"{entry.name}: the provider broke off. {_quote(body, error.text)}"
        return ProviderError(message, kind="server", is_retryable=True)
    said, wait_s = _quote(body, error.text), _wait_s(error.headers, error.text)
    if status in (401, 403) or (status == 400 and _KEY_REFUSED.search(error.text)):
        return ProviderError(f"{entry.name}: the key was refused. {said}", kind="auth")
    if status == 402:
        return ProviderError(f"{entry.name}: the account's credit is used up. {said}", kind="rate_limit")
    if status == 404:
        return ProviderError(f"{entry.name}: no model {entry.model!r} at this address. {said}", kind="request")
    if status == 429:
        message = f"{entry.name}: too many requests for now."
        return ProviderError(message, kind="rate_limit", is_retryable=True, retry_after_s=wait_s)
    if status in (408, 409, 425) or status >= 500 or 300 <= status < 400:
        message = f"{entry.name}: the provider has a problem ({status}). {said}"
        return ProviderError(message, kind="server", is_retryable=True, retry_after_s=wait_s)
    message = f"{entry.name}: the request was refused ({status}). {said}"
    return ProviderError(message, kind="request", rejection=found)


def _body(text: str) -> Any:
    """The body as JSON, None for what is none."""
    try:
        return parsed(text)
    except ValueError:
        return None


def _inner(body: Any) -> Any:
    """The error inside a body: OpenAI's, Anthropic's, Google's list of one, FastAPI's, a failed response's."""
    found = body[0] if isinstance(body, list) and body else body
    for key in ("response", "error", "detail"):
        if isinstance(found, Mapping) and found.get(key):
            found = found[key]
    return found


def _inner_status(body: Any) -> int:
    """The status that an error inside an answer stands for; 200 where it does not say."""
    inner = _inner(body)
    if not isinstance(inner, Mapping):
        return 200
    for key in ("code", "status", "type"):
        value = inner.get(key)
        if isinstance(value, int) and 400 <= value < 600:
            return value
        if isinstance(value, str) and (_STATUS.fullmatch(value) or value in _STATUSES):
            return _STATUSES.get(value) or int(value)
    return 200


def _quote(body: Any, text: str) -> str:
    """The endpoint's own words, if it has some."""
    inner = _inner(body)
    words = inner.get("message") if isinstance(inner, Mapping) else inner
    if isinstance(words, list):  # FastAPI tells field by field
        words = "; ".join(str(each.get("msg", each)) if isinstance(each, Mapping) else str(each) for each in words)
    if body is None:
        words = _words(text)
    return f"It said: {short(str(words))}" if words else ""


def _words(text: str) -> str:
    """Return what a page says: its title, else its first words."""
    title = _TITLE.search(text[:8_000])
    return " ".join((title.group(1) if title else _TAGS.sub(" ", text[:20_000])).split())[:200]


_RETRY_IN = re.compile(r"(?:retry|try again) in (\d{1,6}(?:\.\d+)?) ?s\b", re.IGNORECASE)
# A key that is refused by 400: Google's and xAI's words.
_KEY_REFUSED = re.compile(r"api key (not|is not) valid|(incorrect|invalid) api key", re.IGNORECASE)


def _wait_s(headers: Mapping[str, str], text: str) -> float | None:
    """Seconds that it asks to wait (RFC 9110, Retry-After: seconds or a date), else in words as Google and Groq do."""
    value = headers.get("retry-after", "").strip()
    if not value and (told := _RETRY_IN.search(text[:20_000])):
        return float(told[1])
    if re.fullmatch(r"\d{1,6}(\.\d+)?", value):
        return float(value)
    try:
        return max(0.0, (email.utils.parsedate_to_datetime(value) - now()).total_seconds()) if value else None
    except (ValueError, TypeError, OverflowError):
        return None


def _unreached(entry: ModelEntry, error: BaseException) -> ProviderError:
    causes = [str(each) for each in chain(error)]
    if refused := untrusted(*causes):
        return ProviderError(f"{entry.name}: {refused}", kind="connection")
    unknown = unknown_host(*causes)
    if unknown:
        return ProviderError(f"{entry.name}: {unknown}", kind="unknown_host", is_retryable=True)
    message = f"{entry.name}: {entry.base_url or 'the provider'} could not be reached."
    return ProviderError(message, kind="connection", is_retryable=True)


def _not_understood(entry: ModelEntry, text: str) -> ProviderError:
    message = f"{entry.name}: the reply does not follow this protocol; check the address. {short(text)}"
    return ProviderError(message, kind="malformed", is_retryable=True)


def _own_refusal(error: BaseException) -> CortexError | None:
    """The egress rule's refusal, which the transport wraps."""
    return next((e for e in chain(error) if isinstance(e, CortexError) and not isinstance(e, ProviderError)), None)
