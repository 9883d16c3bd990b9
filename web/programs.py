"""What other programs are answered: who asks, errors in the shape that OpenAI's clients read, streams.

`AnswerForm` is how one protocol writes an answer: `completion_form.py`, `response_form.py`, `ollama_form.py`.
Contract of the errors: https://platform.openai.com/docs/guides/error-codes (read 2026-11-24).
"""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from msgspec import Struct, field
from starlette.types import Receive, Scope, Send

from cortex.base.errors import CortexError, NotAllowed, NotFound, ProviderError, Throttled, UserError
from cortex.services.api.answers import Anew, BrokenOff, Finished, Piece, Said, Tell, Thought, Working
from cortex.services.api.embeddings import OverBudget
from cortex.services.api.requests import ChatRequest
from cortex.services.api.tokens import Caller
from web.bodies import LARGE_BYTES, asked_by
from web.connections import prove
from web.deps import services
from web.security import is_from_page

ONCE = {"x-should-retry": "false"}  # clients try a failed request again by themselves; this one ran, and was paid for
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
UNNAMED = "Send a token of Cortex: Authorization: Bearer cx-…"
BY_A_PAGE = "Pages of other sites are not answered by name and password. Send Authorization: Bearer cx-… instead."
STATUS = {"quota": 429, "model": 502, "stopped": 503, "request": 400, "busy": 429}
PICTURES_BYTES = 20_000_000  # of a request with some pictures in base64
BROKEN = "The answer broke off."
NOT_ONLY_JSON = "The model wrote more than the JSON that response_format asks for. Ask again, or without `stream`."
Answering = Callable[[Tell], Awaitable[Finished]]
Asked = TypeVar("Asked")


class AnswerForm(Protocol):
    """Writes an answer for the clients of one protocol: in one piece, or as it comes."""

    @property
    def media_type(self) -> str:
        """Of a stream."""
        ...

    @property
    def headers(self) -> dict[str, str]:
        """Return what goes ahead of it."""
        ...

    def opening(self) -> str:
        """The beginning of a stream, ahead of the first piece."""
        ...

    def more(self, piece: Said | Thought | Working) -> str:
        """More of it, or a sign of life; "" for what this protocol does not show."""
        ...

    def ending(self, finished: Finished) -> str:
        """The end of a stream, also of one that failed."""
        ...

    def whole(self, text: str, thought: str, finished: Finished) -> dict[str, Any]:
        """The answer in one piece, and the reasoning ahead of it."""
        ...

    def failure(self, finished: Finished) -> dict[str, Any]:
        """The error of one that failed before anything was sent."""
        ...


def _token_of(request: Request) -> str:
    """The token of its header; NotAllowed without one.

    Programs that speak only Ollama's API often have no place for a token, but send a name and password that stand in
    the address: the password is the token then. A browser that was once given it sends it along with what any page
    asks, so that pages are refused.
    """
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return given.strip()
    if kind.lower() == "basic" and request.url.path.startswith("/api/"):
        if is_from_page(request.headers):
            raise NotAllowed(BY_A_PAGE)
        try:
            return base64.b64decode(given.strip(), validate=True).decode().partition(":")[2]
        except ValueError:
            raise NotAllowed(UNNAMED) from None
    raise NotAllowed(UNNAMED)


class Refuse(Protocol):
    """An error as the programs of one protocol read it."""

    def __call__(self, error: CortexError, *, is_caller: bool = True) -> Response:
        """As `refused`."""
        ...


MakeForm = Callable[[str, int, str], AnswerForm]  # of an answer's id, its second, and where its person reads it


async def served(
    request: Request, serve: Callable[[Caller], Awaitable[Response]], refuse: Refuse | None = None
) -> Response:
    """Return what `serve` answers the program that asks, or the error in the shape that its protocol wants."""
    refuse = refuse or refused
    try:
        caller = await caller_of(request)
    except CortexError as error:
        return refuse(error, is_caller=False)
    try:
        return await serve(caller)
    except CortexError as error:
        return refuse(error)


async def body_of(request: Request, caller: Caller, read: Callable[[bytes], Asked]) -> Asked:
    """The request's body as `read` understands it, a large one in a thread; counted before a byte is read."""
    services(request).api_tokens.must_not_insist(caller)
    body = await request.body()
    return await asyncio.to_thread(read, body) if len(body) > LARGE_BYTES else read(body)


async def answer(request: Request, caller: Caller, asked: ChatRequest, form: MakeForm) -> Response:
    """Take the request, whichever protocol it came by, and answer it in this form, as a stream where it wants one."""
    cortex = services(request)
    created = int(cortex.runtime.clock().timestamp())
    asked = asked.model_copy(update={"model": await cortex.model_names.target(caller.user, asked.model)})
    if cortex.bare_calls.passes(caller, asked):
        call, sent = await cortex.bare_calls.take(caller, asked)
        id, place = call.id.removeprefix("api:"), ""
        answering = partial(cortex.bare_calls.answer, caller, call, sent, asked.asked_model)
    else:
        taken = await cortex.program_chats.ask(caller, asked)
        root = (cortex.settings.public_url or str(request.base_url)).rstrip("/")
        id, place = taken.turn.id.removeprefix("turn:"), f"{root}/c/{taken.turn.conversation_id}"
        answering = partial(cortex.program_chats.answer, taken)
    made = form(id, created, place)
    return ProgramStream(made, answering) if asked.stream else ProgramAnswer(made, answering)


async def caller_of(request: Request) -> Caller:
    """The program whose token the request carries; NotAllowed without one that is known."""
    caller = await services(request).api_tokens.who(_token_of(request))
    prove(request)
    asked_by(request, caller.user.id)
    return caller


def refused(error: CortexError, *, is_caller: bool = True) -> Response:
    """The error as a program reads it. `is_caller`: whoever asks is known, so that it is not the token."""
    headers = {}
    if isinstance(error, NotAllowed) and not is_caller:
        return JSONResponse(_error(error.message, 401, "invalid_api_key"), 401, {"WWW-Authenticate": "Bearer"})
    if isinstance(error, Throttled):
        headers["Retry-After"] = str(int(error.wait_s) + 1)
    if isinstance(error, UserError):
        code = getattr(error, "code", None)
        return JSONResponse(_error(error.message, 400, code, error.field or None), 400)
    code = "model_not_found" if isinstance(error, NotFound) else None
    code = "insufficient_quota" if isinstance(error, OverBudget) else code
    return JSONResponse(_error(error.message, error.status, code), error.status, headers)


def failure_of(finished: Finished) -> dict[str, Any]:
    """The error of an answer that did not come to its end."""
    code = "insufficient_quota" if finished.failure == "quota" else finished.code or None
    return _error(finished.text, STATUS[finished.failure], code, finished.param or None)


def _error(message: str, status: int, code: str | None, param: str | None = None) -> dict[str, Any]:
    kind = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}.get(status)
    kind = kind or ("server_error" if status >= 500 else "invalid_request_error")
    if code == "insufficient_quota":
        kind = code
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


class ProgramStream(Response):
    """An answer as a stream. It ends with the answer; a program that goes away ends both."""

    def __init__(self, form: AnswerForm, answering: Answering) -> None:
        super().__init__(media_type=form.media_type, headers=form.headers)
        del self.headers["content-length"]
        self._form = form
        self._answering = answering

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. An answer that fails ahead of its first sign is an error with its status, as clients expect it."""
        stream = _Stream(self._form, self.raw_headers, send)
        finished = await _until_gone(receive, self._answering(stream.tell))
        if finished is None:
            return
        if finished.failure and not stream.has_begun:
            await _failed(finished, self._form)(scope, receive, send)
            return
        if finished.answer and finished.answer != stream.said.strip():
            finished = Finished(failure="model", text=NOT_ONLY_JSON, param="response_format")
        await stream.write(partial(self._form.ending, finished), is_last=True)


class _Stream(Struct):
    """A stream that is being sent. `said`: its words so far."""

    form: AnswerForm
    headers: list[tuple[bytes, bytes]]
    send: Send
    has_begun: bool = False
    said: str = ""

    async def write(self, text: Callable[[], str], *, is_last: bool = False) -> None:
        """Send what this says, behind the opening where that was not sent yet: a form counts its events."""
        opening = "" if self.has_begun else self.form.opening()
        if not self.has_begun:
            self.has_begun = True
            await self.send({"type": "http.response.start", "status": 200, "headers": self.headers})
        await self.send({"type": "http.response.body", "body": (opening + text()).encode(), "more_body": not is_last})

    async def tell(self, piece: Piece) -> None:
        """Send a piece of the answer; BrokenOff where what was sent is void."""
        if isinstance(piece, Anew):
            raise BrokenOff(BROKEN)
        if isinstance(piece, Working) or piece.text:
            self.said += piece.text if isinstance(piece, Said) else ""
            await self.write(partial(self.form.more, piece))


class _Whole(Struct):
    said: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)

    async def tell(self, piece: Piece) -> None:
        match piece:
            case Said(text=text):
                self.said.append(text)
            case Thought(text=text):
                self.thought.append(text)
            case Anew():
                self.said.clear()
                self.thought.clear()


class ProgramAnswer(Response):
    """An answer in one piece, which is waited for as long as the program does."""

    def __init__(self, form: AnswerForm, answering: Answering) -> None:
        super().__init__()
        self._form = form
        self._answering = answering

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for it and send it."""
        heard = _Whole()
        finished = await _until_gone(receive, self._answering(heard.tell))
        if finished is None:
            return
        if finished.failure:
            answer = _failed(finished, self._form)
        else:
            whole = self._form.whole("".join(heard.said), "".join(heard.thought), finished)
            answer = JSONResponse(whole, 200, self._form.headers)
        await answer(scope, receive, send)


def _failed(finished: Finished, form: AnswerForm) -> Response:
    return JSONResponse(form.failure(finished), STATUS[finished.failure], {**form.headers, **ONCE})


async def _until_gone(receive: Receive, answering: Awaitable[Finished]) -> Finished | None:
    """The end of the answer; None, with the answer cancelled, when the program went away first."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        asking.cancel()

    async def asked() -> Finished:
        try:
            return await answering
        except CortexError as error:
            is_model = isinstance(error, ProviderError)
            return Finished(failure="model" if is_model else "stopped", text=error.message)

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(asked())
        leaving = group.create_task(gone())
        asking.add_done_callback(lambda _: leaving.cancel())
    return None if asking.cancelled() else asking.result()


def headers_of(place: str) -> dict[str, str]:
    """Return what goes ahead of an answer that its person can read at `place`, "" for nowhere."""
    return {**HEADERS, **({"X-Cortex-Conversation": place} if place else {})}


def sign(piece: Working, place: str) -> str:
    """A sign of life in a stream of events: a comment, which clients pass over."""
    return f": {f'{piece.waits} needs approval on {place}' if piece.waits else 'working'}\n\n"


def event(data: dict[str, Any], name: str = "") -> str:
    """One event of a stream."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"
