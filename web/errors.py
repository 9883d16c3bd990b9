"""One shape for everything that goes wrong: a page in the frame, a fragment, or JSON, all with the request's id.

One of the three places that may catch any exception; it logs what it catches.
"""

import logging
import re
from typing import Literal
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from msgspec.structs import replace
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cortex.base import disk_faults
from cortex.base.errors import Busy, CortexError, DatabaseUnavailable, DiskFull, NotFound, Throttled
from web.deps import ConfirmNeeded, LoginNeeded, login_or_none, services
from web.frame import frame_of
from web.render import Context, Frame, described, respond, wants_fragment
from web.security import API, SAFE_METHODS, local_path

log = logging.getLogger(__name__)

TITLES = {
    400: "Invalid request",
    401: "Please log in",
    403: "Not allowed",
    404: "Not found",
    405: "Not found",
    409: "It changed in the meantime",
    413: "Too large",
    422: "That did not work",
    429: "Too many tries",
    502: "A service did not answer",
    503: "Busy",
    507: "Disk full",
}
SECRET = re.compile(
    "pass|secret|token|key|auth|config|header|environment|^(?:old|new|code)$", re.IGNORECASE
)  # never shown again
AWAY = "Database unavailable"
FULL = "Nothing was saved: the disk is full. Make room on it, then try again."
COMES_BACK = "The database is not answering. This page reloads when it is back."
RELOADS_S = 3  # a page that needs the database asks for itself again, until it is back
TEXTS = {
    404: "This page does not exist, or you do not have access.",
    405: "This page does not exist, or you do not have access.",
    422: "Something in the form is missing or invalid. Go back, check it and send it again.",
    500: "Something went wrong in Cortex. The log has details under the request id below.",
}


class ErrorContext(Context, frozen=True, kw_only=True):
    """The error page."""

    layout: Literal["frame.html", "bare.html"] = described("frame.html when logged in")
    title: str = described("what happened, in four words")
    text: str = described("what happened and what to do")
    status: int = described("the HTTP status")
    request_id: str = described("what the log calls this request")
    kept: tuple[str, ...] = described("what the person wrote into the form that was not taken", default=())
    reloads_s: int = described("after how many seconds the page asks for itself again; 0: never", default=0)


def add_handlers(app: FastAPI) -> None:
    """Answer every kind of failure in the one shape."""
    app.add_exception_handler(LoginNeeded, _to_login)
    app.add_exception_handler(ConfirmNeeded, _to_confirm)
    app.add_exception_handler(DatabaseUnavailable, _away)
    app.add_exception_handler(CortexError, _ours)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(Catcher)


class Catcher:
    """Answers an unforeseen failure inside the other layers, so that its page has their headers too."""

    def __init__(self, app: ASGIApp) -> None:
        """Guard this application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on; when that fails before an answer began, answer 500: in the frame, else without it."""
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        for step in (self._app, _broken, _bare):
            try:
                return await step(scope, receive, noted)
            except Exception as error:  # whatever it is, the person gets a page and the log a traceback
                where = f"{scope.get('method', '')} {scope.get('path', '')}"
                is_full, id = disk_faults.is_full(error), scope.get("state", {}).get("request_id")
                told = f"disk full: {error}" if is_full else where
                log.error("request=%s %s", id, told, exc_info=None if is_full else error)
                if has_begun:
                    raise
                if is_full:
                    answer = await _away(Request(scope, receive), DiskFull(FULL))
                    return await answer(scope, receive, noted)
        return None


async def _broken(scope: Scope, receive: Receive, send: Send) -> None:
    answer = await answer_error(Request(scope, receive), 500, TEXTS[500])
    await answer(scope, receive, send)


async def _bare(scope: Scope, receive: Receive, send: Send) -> None:
    """The database may be the very thing that is broken: an error page must not fail for want of a sidebar."""
    request = Request(scope, receive)
    answer = respond(request, "error.html", _context(request, Frame(), 500, TEXTS[500]), status=500)
    await answer(scope, receive, send)


async def _to_login(request: Request, _error: Exception) -> Response:
    accounts = services(request).accounts
    first = "/login" if await accounts.has_users() else "/setup"
    return _send_to(request, first)


async def _to_confirm(request: Request, _error: Exception) -> Response:
    return _send_to(request, "/confirm")


def _send_to(request: Request, place: str) -> Response:
    """A redirect for pages, HX-Redirect for fragments, both with the way back; 401 for programs and streams."""
    is_stream = request.url.path.endswith("/events")  # htmx says that it accepts a stream with every request
    if wants_json(request) or is_stream:
        return _as_json(request, 401, "Log in first.")
    is_htmx = request.headers.get("HX-Request") == "true"
    here, back = page_in_sight(request, is_htmx=is_htmx), {}
    if here != "/" and place != "/setup":
        back["next"] = here
    if request.method not in SAFE_METHODS and place == "/confirm":
        back["again"] = "1"
    if back:
        place += f"?{urlencode(back, safe='/')}"
    return Response(status_code=401, headers={"HX-Redirect": place}) if is_htmx else RedirectResponse(place, 303)


def page_in_sight(request: Request, *, is_htmx: bool) -> str:
    """The path of the page that was looked at; "/" when the browser does not say. Cut by hand: a parser raises on some.

    Where a form is posted to there may be nothing to see, so it is the page with the form.
    """
    if not is_htmx and request.method in SAFE_METHODS:
        return request.url.path + (f"?{request.url.query}" if request.url.query else "")
    address = request.headers.get("HX-Current-URL" if is_htmx else "Referer", "").partition("#")[0]
    return "/" + address.partition("://")[2].partition("/")[2]


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, CortexError)  # noqa: S101  (the handler is registered for it)
    if error.status >= 500:
        log.warning("request=%s %s: %s", request_id(request), type(error).__name__, error.message)
    answer = await answer_error(request, error.status, error.message)
    if isinstance(error, Throttled):
        answer.headers["Retry-After"] = str(int(error.wait_s) + 1)
    return answer


async def _away(request: Request, error: Exception) -> Response:
    """The frame is read from the database too: a bare page, which comes back by itself."""
    assert isinstance(error, DatabaseUnavailable)  # noqa: S101
    log.warning("request=%s database: %s", request_id(request), error)
    if wants_json(request):
        answer: Response = _as_json(request, error.status, error.message)
    else:
        is_full = isinstance(error, DiskFull)
        is_reloading = request.method in SAFE_METHODS and not wants_fragment(request) and not is_full
        context = _context(request, Frame(), error.status, COMES_BACK if is_reloading else error.message)
        title = TITLES[error.status] if is_full else AWAY
        context = replace(context, title=title, reloads_s=RELOADS_S if is_reloading else 0)
        answer = respond(request, "error.html", context, status=error.status)
    answer.headers["Retry-After"] = str(RELOADS_S)
    return answer


async def _malformed(request: Request, _error: Exception) -> Response:
    return await answer_error(request, 422, TEXTS[422])


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    is_page = "text/html" in request.headers.get("accept", "") and request.method in SAFE_METHODS
    if error.status_code == 405 and is_page and request.method == "GET":
        # A form's address, which a password's page or a tab that was closed leads back to: the page stands above it.
        return RedirectResponse(local_path(request.url.path.rpartition("/")[0]), 303)
    status = 404 if error.status_code == 405 else error.status_code
    return await answer_error(request, status, TEXTS.get(status, str(error.detail)))


def not_found() -> NotFound:
    """The error that says neither whether it exists nor whose it is."""
    return NotFound(TEXTS[404])


def request_id(request: Request) -> str:
    """The id that `web/security.py` gave this request."""
    return str(getattr(request.state, "request_id", "-"))


def wants_json(request: Request) -> bool:
    """Tell whether a program asks: JSON accepted, HTML not, and htmx not the asker."""
    if request.url.path.startswith(API):
        return True
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/html" not in accept and "HX-Request" not in request.headers


async def answer_error(request: Request, status: int, text: str) -> Response:
    """The failure as JSON, fragment or page, whichever the asker reads."""
    if wants_json(request):
        return _as_json(request, status, text)
    is_bare = wants_fragment(request) or status == Busy.status  # a frame is read from the database
    frame = Frame() if is_bare else await _frame(request)
    return respond(request, "error.html", _context(request, frame, status, text), status=status)


def _context(request: Request, frame: Frame, status: int, text: str) -> ErrorContext:
    return ErrorContext(
        frame=frame,
        layout="frame.html" if frame.user else "bare.html",
        title=TITLES.get(status, "Something went wrong" if status >= 500 else "That did not work"),
        text=text,
        status=status,
        request_id=request_id(request),
        kept=_written(request) if status >= 500 else (),
    )


def _written(request: Request) -> tuple[str, ...]:
    """The words in the form that this request brought; nothing that lets anybody in."""
    form: FormData = getattr(request.state, "form", FormData())
    words = ((name, value) for name, value in form.multi_items() if isinstance(value, str))
    return tuple(value for name, value in words if any(map(str.isspace, value.strip())) and not SECRET.search(name))


def _as_json(request: Request, status: int, text: str) -> Response:
    if request.url.path.startswith("/api/"):  # Ollama's clients look for a text
        return JSONResponse({"error": text}, status)
    return JSONResponse({"error": {"status": status, "message": text, "request_id": request_id(request)}}, status)


async def _frame(request: Request) -> Frame:
    """The reader's own frame, or that of a visitor."""
    cortex = services(request)
    login = await login_or_none(request)
    return await frame_of(request, cortex, login.user) if login else Frame()
