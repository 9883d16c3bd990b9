"""Anthropic's own endpoint and those that imitate it: where and how it is asked."""

import re

from cortex.base.model import ModelEntry
from cortex.providers import ProviderContext, messages
from cortex.providers.late import Late
from cortex.providers.servers import at, by_id, headers_of
from cortex.providers.terms import Terms
from cortex.providers.wire import Endpoint, WireProvider, open_connections

OWN_URL = "https://api.anthropic.com"
# Models that are told of late tools by the system (Anthropic, "Mid-conversation tool changes", read 2026-11).
_TOLD = re.compile(r"claude-(fable-5|mythos-5|opus-4-8|opus-5|sonnet-5-5|haiku-5-5)")


def connect(entry: ModelEntry, secret: str | None, surroundings: ProviderContext) -> WireProvider:
    """The model behind this entry's `base_url`; without one, Anthropic's own."""
    root = (entry.base_url or OWN_URL).rstrip("/").removesuffix("/v1")
    row = by_id("anthropic")
    terms = Terms(entry=entry, row=row, name="anthropic", late=_late(entry))
    headers = headers_of(row, secret or "none")
    if entry.base_url:
        headers["Authorization"] = f"Bearer {secret or 'none'}"  # which proxies of others want
    endpoint = Endpoint(
        url=at(root, messages.PATH),
        terms=terms,
        client=open_connections(entry, surroundings, headers),
        body=messages.body,
        reader=messages.MessagesReader,
        headers=messages.headers,
    )
    return WireProvider(endpoint, surroundings)


def _late(entry: ModelEntry) -> Late:
    """Newer models are told by the system; the others by a search in the history, which thinking would have to open."""
    if entry.profile.late_tools != "native":
        return "none"
    if _TOLD.search(entry.model):
        return "by_reference"
    thinks = dict(entry.extra_params).get("thinking", "false") not in ("false", "null", '""')
    return "none" if thinks else "by_exchange"
