"""Sends to the public web: webhooks and APIs. Always asked for; never to an inside address, never after a redirect."""

import json
from typing import Literal

from cortex.base.errors import ToolFailed
from cortex.integrations.web import Web, checked_headers, outside_url
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool

SUMMARY = "send to webhooks and APIs"
PREFIXES = ("http_post",)
NEEDS = ("Web",)
ADMIN_ROLES = {"orchestrator": ("web_post",)}
TESTED = "HTTP servers on loopback"
BODY_CHARACTERS = 100_000
REPLY_CHARACTERS = 4_000
KINDS = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "text": "text/plain; charset=utf-8",
}


async def _can_send(ctx: Ctx, url: str, body: str, kind: str, method: str, headers: dict[str, str] | None) -> None:
    """Nothing is looked up for it: a name that leads inside is refused where the connection is made."""
    outside_url(url)
    checked_headers(headers or {})
    if len(body) > BODY_CHARACTERS:
        raise ToolFailed(f"A body has at most {BODY_CHARACTERS} characters.")
    if kind == "json" and body:
        _check_json(body)


@tool(words="Send to {url}[ by {method}]", risk="high", reads_untrusted=True, sends_out=True, check=_can_send)
async def http_post(
    ctx: Ctx,
    url: str,
    body: str = "",
    kind: Literal["json", "form", "text"] = "json",
    method: Literal["POST", "PUT", "PATCH", "DELETE"] = "POST",
    headers: dict[str, str] | None = None,
) -> str:
    """Send data to a web address: call a webhook or an API.

    Args:
        url: The address.
        body: What to send.
        kind: How the body is written.
        method: HTTP method.
        headers: Further headers.
    """
    await _can_send(ctx, url, body, kind, method, headers)
    sent = {**(headers or {}), **({"Content-Type": KINDS[kind]} if body else {})}
    got = await ctx.use(Web).request(url, method=method, headers=sent, content=body.encode() if body else None)
    told = f"Status {got.status}"
    if 300 <= got.status < 400:
        where = got.headers.get("location", "another address")
        return f"{told}: it redirects to {where[:200]}, which was not followed. Ask before sending there."
    if b"\0" in got.body[:1_000]:
        return f"{told}, {len(got.body)} bytes of binary data came back."
    rest = len(got.text) - REPLY_CHARACTERS
    more = f"\n[{rest} more characters were left out]" if rest > 0 else ""
    return f"{told}.\n{got.text[:REPLY_CHARACTERS]}{more}".rstrip()


def _check_json(body: str) -> None:
    try:
        json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ToolFailed(
            f"The body is not JSON ({str(error)[:120]}); nothing was sent. Correct it, or use kind=text."
        ) from None
