"""The page as an app: its manifest, its service worker, and what stands there without a network. Open to everybody."""

import json
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from cortex.base.media import ACCEPTED
from web.render import HERE, Context, Renderer, gettext, respond
from web.routes import PageRouter

router = PageRouter()

OFFLINE = "/offline"
STYLES = ("vendor/app.css", "vendor/sheet.css")
FILES = (*STYLES, "vendor/bundle.js", "icon.svg", "vendor/icon-192.png", "vendor/badge-96.png")
GROUND = "#fbfbf9"


class OfflineContext(Context, frozen=True, kw_only=True):
    """The page without a network; the frame is a visitor's, for it is kept on the device."""


@router.get("/manifest.webmanifest")
async def manifest(request: Request) -> Response:
    """Return what a phone or a desktop needs to keep the page as an app."""
    pages: Renderer = request.app.state.pages
    body = {
        "id": "/",
        "name": "Cortex",
        "short_name": "Cortex",
        "description": gettext("Your self-hosted assistant"),
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": GROUND,
        "theme_color": GROUND,
        "icons": [
            _icon(pages, "icon.svg", "any", "image/svg+xml"),
            _icon(pages, "vendor/icon-192.png", "192x192"),
            _icon(pages, "vendor/icon-512.png", "512x512"),
            _icon(pages, "vendor/maskable-512.png", "512x512", purpose="maskable"),
            _icon(pages, "vendor/badge-96.png", "96x96", purpose="monochrome"),
        ],
        "shortcuts": [
            _shortcut(pages, gettext("Today"), "/today"),
            _shortcut(pages, gettext("New chat"), "/c/new"),
            _shortcut(pages, gettext("To do"), "/tasks"),
        ],
        # What other apps of the phone offer as "Share": it comes as the form of `web/pages/files.py: share`.
        "share_target": {
            "action": "/share",
            "method": "POST",
            "enctype": "multipart/form-data",
            "params": {
                **{name: name for name in ("title", "text", "url")},
                "files": [{"name": "files", "accept": ACCEPTED.split(",")}],
            },
        },
    }
    return JSONResponse(body, media_type="application/manifest+json", headers={"Cache-Control": "public, max-age=3600"})


@router.get("/sw.js")
async def service_worker(request: Request) -> Response:
    """The worker of the whole site, with what it keeps. Asked for anew each time: so a new version is found."""
    pages: Renderer = request.app.state.pages
    words = {
        "title": "Cortex",
        "text": gettext("Cortex has something for you."),
        "icon": pages.static_url("vendor/icon-192.png"),
        "badge": pages.static_url("vendor/badge-96.png"),
    }
    shell = [OFFLINE, *(pages.static_url(name) for name in FILES)]
    values = {"VERSION": pages.version, "SHELL": shell, "WORDS": words}
    head = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items())
    script = (HERE / "static" / "sw.js").read_text(encoding="utf-8")
    return Response(head + script, media_type="text/javascript", headers={"Cache-Control": "no-cache"})


@router.get(OFFLINE)
async def offline(request: Request) -> Response:
    """Says what is kept and what to do. Kept by the service worker, so nobody's name is on it."""
    return respond(request, "offline.html", OfflineContext())


def _icon(pages: Renderer, path: str, sizes: str, kind: str = "image/png", purpose: str = "any") -> dict[str, str]:
    return {"src": pages.static_url(path), "sizes": sizes, "type": kind, "purpose": purpose}


def _shortcut(pages: Renderer, name: str, url: str) -> dict[str, Any]:
    return {"name": name, "url": url, "icons": [_icon(pages, "vendor/icon-192.png", "192x192")]}
