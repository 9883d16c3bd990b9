"""The connections to one model server, and the addresses on it."""

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

import httpx

from cortex.base.http import open_client
from cortex.base.model import ModelEntry
from cortex.base.trust import trusting
from cortex.providers import ProviderContext


def open_connections(entry: ModelEntry, surroundings: ProviderContext, headers: Mapping[str, str]) -> httpx.AsyncClient:
    """A client for this model alone, with its key. No redirects: a key must not travel to another host."""
    client = open_client(surroundings.policy, follow_redirects=False, context=trusting(entry.ca))
    client.timeout = httpx.Timeout(max(entry.timeout_s, entry.first_s or 0), connect=surroundings.connect_s)
    # Unpacked as it comes: a server that packs a stream holds back its words.
    client.headers.update({"Accept-Encoding": "identity", **headers})
    return client


def at(base_url: str, path: str) -> str:
    """The address of a path below this one; what stands behind `?` stays at the end."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, parts.query, ""))
