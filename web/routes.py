"""Routes of pages. FastAPI works out pattern and parameters as it makes one, 1 to 3 ms; here, when an address fits.

Of two hundred routes most are never asked for in the life of a daemon. Each page makes its router with `LazyRoute`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import FormData
from starlette.routing import Match
from starlette.types import Scope

from web.deps import services
from web.security import API, HOOKS, MCP

LARGE_BYTES = 32_768
# People go first, so that only another program that holds the database for so long is ever heard of; then the person
# is told before a proxy is (60 s with most), and the page sends a message again by itself.
WRITES_WITHIN_S = 30.0


class FormRequest(Request):
    """A request whose form is read in a thread when it is large.

    A megabyte of broken escapes takes a second of processor, nearly all of it in one step.
    """

    async def _get_form(self, **limits: Any) -> FormData:  # what `form` calls
        form = await self._read_form(**limits)
        self.state.form = form  # for `web/errors.py`, which has another request of the same scope
        return form

    async def _read_form(self, **limits: Any) -> FormData:
        if int(self.headers.get("content-length", 0)) <= LARGE_BYTES:
            return await super()._get_form(**limits)
        await self.body()  # is kept, so that nothing below waits for the network
        return await asyncio.to_thread(asyncio.run, super()._get_form(**limits))


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
        is_person = not self.path.startswith((API, MCP, HOOKS))

        async def handle(request: Request) -> Response:
            cortex = services(request)
            with cortex.writes_within(WRITES_WITHIN_S, is_person=is_person):
                if not is_looked_at:
                    return await handler(FormRequest(request.scope, request.receive))
                async with cortex.page_view():
                    return await handler(request)

        return handle
