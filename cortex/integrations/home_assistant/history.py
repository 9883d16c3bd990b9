"""How one entity stood over the last hours, by Home Assistant's REST interface: its answer has a size of its own there.

Used by `home_assistant.py`; the words of the answer are made by `toolkit/state_history.py`.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from cortex.base.errors import ToolFailed
from cortex.base.http import fetch, open_client
from cortex.base.json_text import parsed
from cortex.integrations.home_assistant.registries import STATE_CHARACTERS, moment_of, plain
from cortex.integrations.home_assistant.server import PLACE, HomeServer
from cortex.ports.home_assistant import StateChange

TIMEOUT_S = 15.0
MAX_BYTES = 8_000_000


async def state_history(server: HomeServer, id: str, since: datetime, until: datetime) -> Sequence[StateChange]:
    """The states that it had, oldest first, the one that held at `since` included; ToolFailed when it can't be told."""
    query = urlencode({"filter_entity_id": id, "end_time": until.isoformat()})
    url = f"{server.url}/api/history/period/{quote(since.isoformat())}?{query}&minimal_response&no_attributes"
    headers = {"Authorization": f"Bearer {server.token}", "Accept": "application/json"}
    context = await asyncio.to_thread(server.context) if server.is_tls else None
    async with open_client(server.policy, timeout_s=TIMEOUT_S, follow_redirects=False, context=context) as client:
        got = await fetch(client, url, headers=headers, max_bytes=MAX_BYTES, total_s=TIMEOUT_S)
    if got.status == 404:
        raise ToolFailed("Home Assistant keeps no history: its history and recorder integrations are off.")
    if got.status == 401:
        raise ToolFailed(f"Home Assistant refused the token. An admin must enter a new one {PLACE}.")
    if got.status != 200:
        raise ToolFailed(f"Home Assistant answered with status {got.status} when asked for history. Try again later.")
    if got.is_cut:
        raise ToolFailed("That is too much history for one answer. Ask for fewer hours.")
    try:
        return await read_changes(got.body)
    except ValueError as error:
        raise ToolFailed("Home Assistant's history could not be read.") from error


async def read_changes(body: bytes) -> list[StateChange]:
    """The changes that this answer tells of; read in a thread, since there may be megabytes. ValueError for no JSON."""
    return await asyncio.to_thread(lambda: changes_of(parsed(body)))


def changes_of(value: Any) -> list[StateChange]:
    """The changes of the one entity that was asked for; what is not shaped as such is left out."""
    rows = value[0] if isinstance(value, list) and value and isinstance(value[0], list) else []
    found = [
        StateChange(
            state=plain(row.get("state"), STATE_CHARACTERS),
            at=moment_of(row.get("last_changed") or row.get("last_updated")),
        )
        for row in rows
        if isinstance(row, dict)
    ]
    return sorted(found, key=lambda one: one.at)
