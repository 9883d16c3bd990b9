"""Routes of pages. FastAPI works out pattern and parameters as it makes one, 1 to 3 ms; here, when an address fits.

Of two hundred routes most are never asked for in the life of a daemon. Each page has a `PageRouter`.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import Scope

from web import visit
from web.bodies import BodyRequest, asked_by, taken_by
from web.deps import login_or_none, services
from web.security import API, HOOKS, MCP

Guard = Callable[[Request], Awaitable[object]]
# People go first, so that only another program that holds the database for so long is ever heard of; then the person
# is told before a proxy is (60 s with most), and the page sends a message again by itself.
WRITES_WITHIN_S = 30.0


class LazyRoute(APIRoute):
    """Knows its path and methods from the start; all else once an address begins as its path does."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """`options` as for APIRoute."""
        self.path, self.endpoint, self.methods = path, endpoint, {*options["methods"]}
        self._beginning, brace, _ = path.partition("{")
        self._is_whole = not brace
        self._is_worked_out = False
        self._work_out = partial(super().__init__, path, endpoint, **options)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As other routes do."""
        asked: str = scope["path"]
        if not (asked == self.path if self._is_whole else asked.startswith(self._beginning)):
            return Match.NONE, {}
        if not self._is_worked_out:
            self._work_out()
            self._is_worked_out = True
        return super().matches(scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """A page that is only looked at reads all it shows in one transaction; what streams has its own.

        What a person sends is written ahead of what turns and jobs write; what programs send waits with those.
        """
        handler = super().get_route_handler()
        is_looked_at = self.methods == {"GET"}
        is_person = not self.path.startswith((*API, MCP, HOOKS))
        guards = guards_of(self.dependant)
        takes = taken_by(self.endpoint, is_open=not guards)
        has_form = bool(guards) or self.body_field is not None or takes.has_files

        async def read(request: Request) -> Response:
            asked = BodyRequest(request.scope, request.receive, takes)
            try:
                await _let_in(asked, guards, has_form=has_form)
                return await handler(asked)
            except ClientDisconnect:  # cut off: nobody waits for an answer, and nothing was kept
                return Response(status_code=400)
            finally:
                await asked.close()  # the files of its form, also of one that was refused

        async def handle(request: Request) -> Response:
            cortex = services(request)
            with cortex.writes_within(WRITES_WITHIN_S, is_person=is_person):
                if not is_looked_at:
                    return await read(request)
                async with cortex.page_view():
                    return await handler(request)

        return handle


class PageRouter(APIRouter):
    """The routes of one page."""

    def __init__(self) -> None:
        """Make each route a `LazyRoute`."""
        super().__init__(route_class=LazyRoute)


def guards_of(dependant: Dependant) -> Sequence[Guard]:
    """Return what the endpoint itself asks of whoever sends the request: a login, an admin's, a fresh password."""
    return [one.call for one in dependant.dependencies if one.call in visit.GUARDS and one.call is not None]


async def _let_in(request: BodyRequest, guards: Sequence[Guard], *, has_form: bool) -> None:
    """Ask who it is before a byte of the body is read, then read its form.

    FastAPI reads first and asks then, and calls whatever goes wrong in between a form that cannot be read.
    """
    for guard in guards:
        await guard(request)
    if guards and (view := await login_or_none(request)):
        asked_by(request, view.user.id)
    if has_form:
        await request.form()
        if guards and request.took_time:
            del request.state.login  # it may have ended while the body came: the endpoint asks anew
