"""Routes of pages. FastAPI works out a route's parameters as it is made, 1 to 3 ms each; here, at its first request.

Of two hundred routes most are never asked for in the life of a daemon. Each page makes its router with `LateRoute`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi.routing import APIRoute
from starlette.routing import Route
from starlette.types import Receive, Scope, Send


class LateRoute(APIRoute):
    """Knows its path and methods from the start, and reads its function's signature when it is first asked."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """`options` as for APIRoute."""
        methods = list(options["methods"])
        Route.__init__(self, path, endpoint, methods=methods)
        self.methods = set(methods)  # Starlette adds HEAD, FastAPI does not
        self._work_out = partial(super().__init__, path, endpoint, **options)
        self.app = self._first

    async def _first(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._work_out()  # sets `app` anew
        await self.app(scope, receive, send)
