"""`/metrics` for Prometheus: figures of the server behind a token of its own; a login does not open it."""

import hmac

from fastapi import Request
from fastapi.responses import PlainTextResponse, Response

from web.deps import Services
from web.errors import not_found
from web.routes import PageRouter

router = PageRouter()
FORMAT = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics")
async def metrics(request: Request, services: Services) -> Response:
    """Every figure; 404 while no token is set, 401 for another one."""
    token = services.settings.metrics_token
    if not token:
        raise not_found()
    given = request.headers.get("authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return PlainTextResponse("wrong token\n", 401, headers={"WWW-Authenticate": "Bearer"})
    return Response(await services.metrics.text(), media_type=FORMAT, headers={"Cache-Control": "no-store"})
