"""The one exception tree of Cortex. Raise the narrowest; say what happened and what to do next.

CortexError(message, status)
├── UserError        shown to the person as it is (422)
├── NotAllowed       the person or the turn may not do this (403)
├── NotFound         absent, or another user's: the two look the same (404)
├── Conflict         the thing changed since it was read (409)
├── TooLarge         more than is taken here (413)
├── Unsupported      in a form that is not read here (415)
├── Busy             the database has no room for a change now; nothing was changed (503)
├── Throttled        too many tries; `wait_s` says how long (429)
├── DatabaseUnavailable  away or locked: the same may be tried again (503)
│   └── DiskFull     there is no room for a change (507)
├── ToolFailed       a tool could not do it: the model reads the message and adapts
│   └── ServiceDown  an outside system is away, too slow, or refuses its key
├── ToolRetry        a tool call's arguments are wrong: the model gets them explained
├── ProviderError    a model endpoint failed; `is_retryable` says whether another try is safe
├── EncoderFailed    the sentence model gave no answer in time: the choice goes on without it
├── DeliveryError    a notification could not be handed over; `fate` says whether to try again
├── DamagedFile      a file of this version of Cortex cannot be read: it must be installed again
└── ConfigError      a setting is wrong: only ever raised while starting
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

RejectionKind = Literal[
    "window", "output", "tools", "pictures", "schema", "parameter", "thinking", "ids", "order", "model", "route",
    "credit", "overloaded", "filtered", "other",
]  # fmt: skip


class CortexError(Exception):
    """The root. `message` is written for the reader named above; `status` is the HTTP status a page answers with."""

    status = 500

    def __init__(self, message: str) -> None:
        """Keep the message where every surface finds it."""
        super().__init__(message)
        self.message = message


class UserError(CortexError):
    """Bad input from a person; the message says how to mend it. `field`: the form field it is about, or ""."""

    status = 422

    def __init__(self, message: str, *, field: str = "") -> None:
        """Keep the field, so that the page can tie the message to it."""
        super().__init__(message)
        self.field = field


class NotAllowed(CortexError):
    """Refused by rank, role or policy."""

    status = 403


class NotFound(CortexError):
    """Not there for this user."""

    status = 404


class Conflict(CortexError):
    """Somebody changed it in between; nothing was overwritten."""

    status = 409


class TooLarge(CortexError):
    """More bytes than are taken here; none of them was read."""

    status = 413


class Unsupported(CortexError):
    """Sent in a form that is not read here: packed, or in another character set."""

    status = 415


class Busy(CortexError):
    """Somebody else writes, for longer than a person should wait: nothing was changed, the same may be tried again."""

    status = 503


class Throttled(CortexError):
    """Too many tries. `wait_s`: seconds until the next one is heard."""

    status = 429

    def __init__(self, message: str, *, wait_s: float) -> None:
        """Keep the waiting time for the page and the Retry-After header."""
        super().__init__(message)
        self.wait_s = wait_s


class DatabaseUnavailable(CortexError):
    """The database does not answer now: nothing was kept, and the same may be tried again."""

    status = 503


class DiskFull(DatabaseUnavailable):
    """There is no room on the disk: nothing was kept; the same may be tried again once there is."""

    status = 507


class ToolFailed(CortexError):
    """The tool ran and could not; the model reads why. `is_tainted`: the message quotes words from outside.

    `is_unknown`: it may have been done all the same.
    """

    def __init__(self, message: str, *, is_tainted: bool = False, is_unknown: bool = False) -> None:
        """Keep the marks, so that the turn carries them."""
        super().__init__(message)
        self.is_tainted = is_tainted
        self.is_unknown = is_unknown


class ServiceDown(ToolFailed):
    """An outside system did not answer, or not in time, or takes its key no more: nothing that other words mend."""

    status = 502


class ToolRetry(CortexError):
    """The call's arguments were wrong; nothing ran."""


class Rejection(Struct, frozen=True, kw_only=True):
    """Something that a model server did not take, as its own words say. `said`: those words, short.

    `what`: `window` (the request is too long), `output` (more output tokens than it gives), `tools`, `pictures`,
    `schema` (one tool's), `parameter` (one of the request's), `thinking` (its own reasoning, sent back), `ids`,
    `order` (of speakers), `model` (no such model), `route` (no endpoint of this model takes such a request),
    `credit`, `overloaded`, `filtered`, `other`.
    `window_tokens`, `output_tokens`: its limits where it named them; `sent_tokens`: what it counted in the request.
    `name`: the tool, by name or by its place in the request (`tools[3]`), several by commas; or the parameter; of
    pictures "these" where it takes others; "" where it did not say.
    """

    what: RejectionKind
    said: str = ""
    window_tokens: int | None = None
    output_tokens: int | None = None
    sent_tokens: int | None = None
    name: str = ""


class ProviderError(CortexError):
    """A model endpoint failed.

    `is_retryable`: the same request may be sent again, or to the next model of the chain.
    `retry_after_s`: seconds the endpoint asked us to wait, or None.
    `kind`: rate_limit, timeout, cut, malformed, empty, auth, refused, server, connection, request,
    unknown_host, repeats. `rejection`: what of the request the endpoint did not take, where it said so.
    """

    status = 502

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        is_retryable: bool = False,
        retry_after_s: float | None = None,
        rejection: Rejection | None = None,
    ) -> None:
        """Keep what the retry rule needs to decide."""
        super().__init__(message)
        self.kind = kind
        self.rejection = rejection
        self.is_retryable = is_retryable
        self.retry_after_s = retry_after_s


class EncoderFailed(CortexError):
    """The sentence model is absent, broken or too slow; what it would have said is left out, and that is recorded."""


class DeliveryError(CortexError):
    """A channel could not hand a notification over; the message is for the person and holds no secret.

    `fate`: later = the same may be tried again; refused = it would fail again; gone = the address is dead, remove it.
    `retry_after_s`: seconds the other side asked us to wait, or None. `is_unknown`: the other side may have it all the
    same, the answer was lost; a second try bears the same id.
    """

    status = 502

    def __init__(
        self,
        message: str,
        *,
        fate: Literal["later", "refused", "gone"],
        retry_after_s: float | None = None,
        is_unknown: bool = False,
    ) -> None:
        """Keep what the outbox needs to decide."""
        super().__init__(message)
        self.fate = fate
        self.retry_after_s = retry_after_s
        self.is_unknown = is_unknown


class DamagedFile(CortexError):
    """A file that came with this version is missing, damaged or of another version; the message names it."""


class ConfigError(CortexError):
    """A wrong setting; the start stops with this one line."""


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and what it came from, the nearest first; ends where one stands behind itself."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
