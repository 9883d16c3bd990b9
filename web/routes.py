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

LARGE_BYTES = 32_768
WRITES_WITHIN_S = 4.0  # then the person is told, rather than left to wait


class FormRequest(Request):
    """A request whose form is read in a thread when it is large.

    A megabyte of broken escapes takes a second of processor, nearly all of it in one step.
    """

    async def _get_form(self, **limits: Any) -> FormData:  # what `form` calls
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

        Whoever else holds the database for writing keeps no form waiting for long.
        """
        handler = super().get_route_handler()
        is_looked_at = self.methods == {"GET"}

        async def handle(request: Request) -> Response:
            cortex = services(request)
            with cortex.writes_within(WRITES_WITHIN_S):
                if not is_looked_at:
                    return await handler(FormRequest(request.scope, request.receive))
                async with cortex.page_view():
                    return await handler(request)

        return handle
