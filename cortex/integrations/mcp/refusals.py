"""Why a remote server did not carry a request out, told apart by what follows: a new session, another try, nothing.

Servers refuse a session that they no longer know in many ways: 404 by the specification, 400 with -32000 or -32600 by
both official SDKs and their examples, other codes and bare texts by others. Pure.
"""

import re

from msgspec import Struct

from cortex.base.errors import ServiceDown

GONE, UNREACHED, BROKEN, REFUSED, UNCLEAR = range(2**50 + 1, 2**50 + 6)  # in place of codes, as no server has them
TEXT_CHARACTERS = 300
_OTHERWISE = (-32601, -32602, -32700)  # unknown method, wrong arguments, no JSON: nothing of a session
_OF_THE_REQUEST = (408, 413, 429)  # late, large, too many
_FOR_GOOD = (501, 505)
_BETWEEN = r"[^.;:]{0,80}\b"
_LOST = re.compile(
    rf"\b(?:no|not|unknown|unrecogni[sz]ed|invalid|expired|missing|stale|bad|terminated|closed){_BETWEEN}session"
    rf"|session{_BETWEEN}(?:not found|not exist|unknown|invalid|expired|terminated|closed|gone|missing|required|lost"
    rf"|no longer|not (?:valid|active|initiali)|has ended)"
    rf"|sessionnotfound|doesn't exist{_BETWEEN}session|session{_BETWEEN}doesn't exist"
    r"|\bnot (?:been |yet |properly )*initiali[sz]ed|before initiali[sz]ation|unsupported protocol version",
    re.IGNORECASE,
)
_UNDER_WAY = re.compile(r"before (?:the|this|your) (?:request|call)|in flight|while (?:handling|processing)", re.I)
_ENDED = re.compile(r"closed|terminated|ended|\bgone\b|\blost\b", re.I)  # it may have ended under the call


class HttpRefusal(Struct, frozen=True, kw_only=True):
    """The fate of a request. `words`: what was answered.

    `kind`: GONE, the session is not known any more, nothing was done; UNREACHED, nobody got the request; BROKEN, it may
    have been done; REFUSED, it was not, and a new session would not help; UNCLEAR, it was not, and that is all it says.
    """

    kind: int
    words: str


class ServerFailed(ServiceDown):
    """The server did not answer a request. `is_undone`: it was not begun. `is_once_more`: a new session may do it."""

    def __init__(self, message: str, *, is_undone: bool, is_once_more: bool) -> None:
        """Keep what decides whether the same may be asked again."""
        super().__init__(message)
        self.is_undone, self.is_once_more = is_undone, is_once_more


def refusal_of(status: int, text: str, code: int | None) -> HttpRefusal:
    """Say what an HTTP status from 400 on means. `code`: of the JSON-RPC error that came with it; `text`: its words."""
    said = " ".join(text.split())[:TEXT_CHARACTERS]
    return HttpRefusal(kind=_kind(status, said, code), words=f"HTTP {status}{f': {said}' if said else ''}")


def _kind(status: int, said: str, code: int | None) -> int:
    if _UNDER_WAY.search(said):
        return BROKEN
    is_lost = _LOST.search(said) is not None
    if status >= 500 and not (is_lost and not _ENDED.search(said)):
        return REFUSED if status in _FOR_GOOD else BROKEN
    if is_lost or (status in (404, 410) and code not in _OTHERWISE):
        return GONE
    return REFUSED if status in _OF_THE_REQUEST else UNCLEAR
