"""`create_app(cortex)`: middleware, the pages of their table, static files, health, errors. No rule and no query.

Called by `web/serve.py` and by tests with an opened house.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi._compat import shared as fastapi_models
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.middleware.gzip import GZipMiddleware

from cortex.app import Cortex
from web import register
from web.bodies import Line
from web.errors import add_handlers, not_found
from web.live import LivePages
from web.render import NavEntry, Renderer
from web.routes import PageRouter
from web.security import Shield

STATIC = Path(__file__).parent / "static"
FOR_EVER = "public, max-age=31536000, immutable"
DRIP_S = 1.0
LONGEST = 200  # characters of a file of ours: the system fails on names of more than 255
KINDS = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}

frame_routes = PageRouter()
_is_old_model = fastapi_models.is_pydantic_v1_model_class
# Before Python 3.14 FastAPI imports pydantic's version 1 to ask whether an annotation is a model of it: 1.5 MB, 21 ms.
# Where nobody imported it, nothing is one.
fastapi_models.is_pydantic_v1_model_class = lambda cls: "pydantic.v1" in sys.modules and _is_old_model(cls)


def create_app(cortex: Cortex) -> FastAPI:
    """The web application on an opened house. Opens and closes nothing itself."""
    app = FastAPI(title="Cortex", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.cortex = cortex
    app.state.pages = Renderer()
    app.state.line = Line()
    app.state.live = LivePages(cortex, app.state.pages)
    app.state.closing = asyncio.Event()
    app.state.end = app.state.closing.set  # `web/serve.py` puts its own there, which ends the server
    app.router.routes.extend(frame_routes.routes)  # `include_router` would work out all of them
    navigation: list[NavEntry] = []
    for page in register.pages():
        app.router.routes.extend(page.routes)
        navigation.extend(page.nav)
    app.state.nav = tuple(sorted(navigation, key=lambda entry: (entry.order, entry.title)))
    add_handlers(app)
    app.add_middleware(GZipMiddleware, minimum_size=600, compresslevel=9)  # leaves text/event-stream alone
    app.add_middleware(Shield, settings=cortex.settings)
    return app


@frame_routes.get("/healthz")
async def healthz() -> Response:
    """The process answers."""
    return PlainTextResponse("ok\n")


@frame_routes.get("/healthz/drip")
async def drip() -> Response:
    """Two pieces, a second apart: whoever reads them sees whether a proxy holds answers back."""

    async def pieces() -> AsyncIterator[str]:
        yield "1\n"
        await asyncio.sleep(DRIP_S)
        yield "2\n"

    return StreamingResponse(pieces(), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


@frame_routes.get("/healthz/seen")
async def seen(request: Request) -> Response:
    """Return how this request came here: whoever sent it sees what a proxy changed."""
    return JSONResponse({"host": request.headers.get("host", ""), "scheme": request.url.scheme})


@frame_routes.get("/readyz")
async def readyz(request: Request) -> Response:
    """It can work: the database answers and is up to date, and it is not shutting down. Says nothing more."""
    cortex: Cortex = request.app.state.cortex
    is_ready = not request.app.state.closing.is_set() and await cortex.doctor.is_ready()
    return PlainTextResponse("ready\n" if is_ready else "not ready\n", 200 if is_ready else 503)


@frame_routes.get("/static/{path:path}")
async def static(request: Request, path: str, v: str = "") -> Response:
    """A file of the page; for ever when the address carries its hash, or that of all files and templates."""
    file = (STATIC / path[:LONGEST]).resolve()
    if file.suffix not in KINDS or not file.is_relative_to(STATIC) or not file.is_file():
        raise not_found()
    pages: Renderer = request.app.state.pages
    is_pinned = bool(v) and (v == pages.version or pages.static_url(path).endswith(f"?v={v}"))
    headers = {"Cache-Control": FOR_EVER if is_pinned else "no-cache"}
    packed = file.with_name(f"{file.name}.br")  # made with the file, a tenth smaller than what GZipMiddleware makes
    if packed.is_file() and "br" in map(str.strip, request.headers.get("accept-encoding", "").split(",")):
        headers |= {"Content-Encoding": "br", "Vary": "Accept-Encoding"}
        return FileResponse(packed, media_type=KINDS[file.suffix], headers=headers)
    return FileResponse(file, media_type=KINDS[file.suffix], headers=headers)
