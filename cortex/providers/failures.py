"""What went wrong at a model endpoint, as a ProviderError: kind, whether another try is safe, how long to wait.

Used by `wire.py`. The sentences are for the person; what the endpoint said is quoted short, secrets never.
"""

from pydantic_ai import exceptions as ai

from cortex.base.dial import unknown_host
from cortex.base.errors import CortexError, ProviderError
from cortex.base.model import ModelEntry
from cortex.base.trust import untrusted
from cortex.providers.said import short


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


def overlong(entry: ModelEntry) -> ProviderError:
    """The token limit cut a tool call in two."""
    message = (
        f"{entry.name}: its output tokens ran out in the middle of a tool call; raise the limit on the Models page."
    )
    return ProviderError(message, kind="malformed")


def refused(entry: ModelEntry) -> ProviderError:
    """The provider's filter stopped the answer."""
    return ProviderError(f"{entry.name}: the provider's content filter stopped the answer.", kind="refused")


def mapped(entry: ModelEntry, error: BaseException) -> ProviderError:
    """Any exception of the libraries as a ProviderError."""
    blocked = _ours(error)
    if blocked is not None:
        return ProviderError(f"{entry.name}: {blocked.message}", kind="connection")
    match error:
        case ProviderError():
            return error
        case ai.ModelAuthenticationError():
            return ProviderError(f"{entry.name}: the key was refused. {_said(error)}", kind="auth")
        case ai.ModelQuotaExceededError():
            return ProviderError(f"{entry.name}: the account's quota is used up. {_said(error)}", kind="rate_limit")
        case ai.ModelRequestTimeout() | ai.ModelTimeoutError():
            return ProviderError(f"{entry.name}: it did not answer in time.", kind="timeout", is_retryable=True)
        case ai.ModelConnectionError():
            return _unreached(entry, error)
        case ai.ModelHTTPError():
            return _by_status(entry, error)
        case ai.ModelAPIError():
            return _broken_off(entry, error)
        case ai.UnexpectedModelBehavior():
            message = f"{entry.name}: the answer was not understood. {short(str(error))}"
            return ProviderError(message, kind="malformed", is_retryable=True)
        case _:
            message = f"{entry.name}: the request failed ({type(error).__name__}). {short(str(error))}"
            return ProviderError(message, kind="request")


def _by_status(entry: ModelEntry, error: ai.ModelHTTPError) -> ProviderError:
    status = error.status_code
    if status in (401, 403):
        return ProviderError(f"{entry.name}: the key was refused. {_said(error)}", kind="auth")
    if status == 404:
        return ProviderError(f"{entry.name}: no model {entry.model!r} at this address. {_said(error)}", kind="request")
    if status == 429:
        message = f"{entry.name}: too many requests for now."
        return ProviderError(message, kind="rate_limit", is_retryable=True, retry_after_s=error.retry_after)
    if status in (408, 409, 425) or status >= 500:
        message = f"{entry.name}: the provider has a problem ({status}). {_said(error)}"
        return ProviderError(message, kind="server", is_retryable=True, retry_after_s=error.retry_after)
    return ProviderError(f"{entry.name}: the request was refused ({status}). {_said(error)}", kind="request")


def _unreached(entry: ModelEntry, error: BaseException) -> ProviderError:
    if isinstance(error, ai.ModelAPIError) and error.in_stream:
        return cut(entry)
    names = {type(each).__name__ for each in _chain(error)}
    if names & {"ReadError", "RemoteProtocolError", "ReadTimeout", "IncompleteRead"}:
        return cut(entry)
    causes = [str(each) for each in _chain(error)]
    if refused := untrusted(*causes):
        return ProviderError(f"{entry.name}: {refused}", kind="connection")
    unknown = unknown_host(*causes)
    if unknown:
        return ProviderError(f"{entry.name}: {unknown}", kind="unknown_host", is_retryable=True)
    message = f"{entry.name}: {entry.base_url or 'the provider'} could not be reached."
    return ProviderError(message, kind="connection", is_retryable=True)


def _broken_off(entry: ModelEntry, error: ai.ModelAPIError) -> ProviderError:
    """Without a status: the stream broke, or what came was no answer of this protocol."""
    text = str(error)
    if "finish_reason" in text:
        return cut(entry)
    if "decode" in text.lower() or "JSON" in text:
        message = f"{entry.name}: the reply does not follow this protocol; check the address. {short(text)}"
        return ProviderError(message, kind="malformed", is_retryable=True)
    return ProviderError(f"{entry.name}: {short(text)}", kind="server", is_retryable=True)


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found and len(found) < 12:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def _ours(error: BaseException) -> CortexError | None:
    """The egress rule's refusal, which the SDKs wrap."""
    return next((e for e in _chain(error) if isinstance(e, CortexError) and not isinstance(e, ProviderError)), None)


def _said(error: ai.ModelAPIError) -> str:
    """The endpoint's own words, if it has some."""
    body = error.body
    inner = body.get("error", body) if isinstance(body, dict) else body
    text = inner.get("message", "") if isinstance(inner, dict) else inner if isinstance(inner, str) else ""
    return f"It said: {short(str(text))}" if text else ""
