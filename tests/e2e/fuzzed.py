"""What any caller could send to any route: the document of all routes, its values widened by nonsense."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from cortex.base import scan
from cortex.base.record import field_names
from cortex.services.jobs.forms import JobForm
from web.app import frame_routes
from web.register import PAGES

NONSENSE = (
    "",
    "7" * 5000,
    "-" + "9" * 400,
    str(2**63),
    str(-(2**63) - 1),
    str(2**31),
    "²",
    "٣",
    "1e999",
    "NaN",
    "\x00",
    "a\x00b",
    "%00",
    "../" * 40 + "etc/passwd",
    "a" * 300,
    "[" * 20_000,
    '{"a":' * 5_000,
    "\u202e\u200b\ufeff",
    "\U0001f9ff" * 50,
    "2026-13-45T99:99:99+99:99",
    "9999-12-31T23:59:59+00:00",
    "0001-01-01T00:00:00+00:00",
    "\r\nX-Injected: yes",
)
ENDS_THE_LOGIN = {"/logout", "/account/password", "/account/sign-out", "/admin/health/restart"}
LEAVES_THE_MACHINE = {"/models/test", "/models/test-saved", "/notifications/settings/test"}
NEVER_ENDS = {"/c/{cid}/events", "/notifications/events"}  # streams: `test_any_input.py` reads their heads itself
# Forms whose fields a page reads by hand, so that the document does not know them.
BY_HAND = {"/jobs/new": JobForm, "/jobs/{job_id}": JobForm, "/jobs/preview": JobForm, "/jobs/{job_id}/preview": JobForm}


def pages() -> Iterator[APIRoute]:
    """Every route that a fuzzer may call as often as it likes."""
    routers = [frame_routes, *(scan.load(f"{PAGES}.{stem}").router for stem in scan.modules(PAGES))]
    for router in routers:
        for route in router.routes:
            if route.path not in ENDS_THE_LOGIN | LEAVES_THE_MACHINE | NEVER_ENDS:
                yield APIRoute(route.path, route.endpoint, methods=[*route.methods], response_model=None)


def document(ids: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The OpenAPI document of the pages. `ids`: name in a path -> those that are there."""
    found = get_openapi(title="Cortex", version="1", routes=list(pages()))
    for path, operations in found["paths"].items():
        for operation in operations.values():
            for given in operation.get("parameters", ()):
                own = [{"enum": list(ids[given["name"]])}] if given["name"] in ids else []
                given["schema"] = {"anyOf": [*own, *own, given["schema"], {"enum": list(NONSENSE)}]}
            if path in BY_HAND and "post" in operations:
                names = ["version", *field_names(BY_HAND[path])]
                typed = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
                operation["requestBody"] = {"content": {"application/x-www-form-urlencoded": {"schema": typed}}}
    for schema in found.get("components", {}).get("schemas", {}).values():
        for name, field in schema.get("properties", {}).items():
            schema["properties"][name] = {"anyOf": [field, {"enum": list(NONSENSE)}]}
    return found
