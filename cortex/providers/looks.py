"""Looks at one model of a server: its window, and where somebody runs it its template and how many it answers at once.

Smaller than the list (`lists.py`): one request where it is known what the server is, two for Ollama. A server of one's
own is often started anew with another model or window, so that what its list said when it was connected does not last.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from cortex.ports.model_lists import ListedModel, ModelServer, ServerFacts
from cortex.providers.list_formats import (
    Row,
    engine_of,
    id_of,
    loaded_of,
    models_of,
    rows_of,
    with_litellm,
    with_llama_cpp,
    with_ollama,
)
from cortex.providers.pages import ServerPages, pages_of
from cortex.providers.server_row import ServerRow
from cortex.providers.servers import OTHER, base_of, by_id, server_of

MOST_BYTES = 2_000_000


async def look(server: ModelServer, model: str) -> ServerFacts | None:
    """Return what it says of this model; None where it is away or does not have the model."""
    row = by_id("anthropic") if server.provider == "anthropic" else server_of(server.base_url, engine=server.engine)
    async with pages_of(server, row, MOST_BYTES) as opened:
        pages = _Pages(opened, server, row)
        if row is not OTHER and not row.is_local:
            return await _listed(pages, model)
        # Another program may stand at the same place by now.
        for each in sorted(_READERS, key=lambda one: one != server.engine):
            found = await _READERS[each](pages, model)
            if found is not None:
                return found
    return None


class _Pages:
    """The pages of one server: below the address of its API, and of its root."""

    def __init__(self, pages: ServerPages, server: ModelServer, row: ServerRow) -> None:
        self.row = row
        self._pages = pages
        base = base_of(row, server.base_url or row.base_url)
        self._root = re.sub(r"/(api/)?v\d+$", "", base)
        self._base = self._root if server.provider == "anthropic" else base

    async def of_api(self, path: str) -> Any:  # Any: what a server says
        """A page below the API's own address; None where there is none."""
        return await self._pages.json(f"{self._base}/{path}")

    async def of_root(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """A page of the server; with a body it is posted. None where there is none."""
        return await self._pages.json(f"{self._root}/{path}", body)


async def _llama_cpp(pages: _Pages, model: str) -> ServerFacts | None:
    """By /props; a server of several models tells of this one where it is named, and does not load it for that."""
    props = await pages.of_root("props")
    if not isinstance(props, dict) or "default_generation_settings" not in props:
        return None
    if not with_llama_cpp(ListedModel(id=model), props).context_tokens:
        named = await pages.of_root(f"props?model={quote(model, safe='')}&autoload=false")
        props = named if isinstance(named, dict) else props
    told, slots = with_llama_cpp(ListedModel(id=model), props), props.get("total_slots")
    is_number = isinstance(slots, int) and not isinstance(slots, bool) and 0 < slots < 10_000
    return ServerFacts(
        engine="llamacpp", context_tokens=told.context_tokens, tools=told.tools, slots=slots if is_number else None
    )


async def _ollama(pages: _Pages, model: str) -> ServerFacts | None:
    """By /api/show, and /api/ps for the window that it is loaded with."""
    shown = await pages.of_root("api/show", {"model": model})
    if not isinstance(shown, dict) or not {"model_info", "capabilities", "details"} & shown.keys():
        return None
    loaded = loaded_of(await pages.of_root("api/ps"))
    served = loaded.get(model) or loaded.get(f"{model}:latest")
    told = with_ollama(ListedModel(id=model), shown, served)
    if told is None:
        return ServerFacts(engine="ollama")
    return ServerFacts(engine="ollama", context_tokens=told.context_tokens, tools=told.tools)


async def _lm_studio(pages: _Pages, model: str) -> ServerFacts | None:
    """By /api/v0/models."""
    row = _row(await pages.of_root("api/v0/models"), model)
    if row is None or "max_context_length" not in row:
        return None
    can = row.get("capabilities")
    tools = "tool_use" in can if isinstance(can, list) else None
    return ServerFacts(engine="lmstudio", context_tokens=_served(row), tools=tools)


async def _litellm(pages: _Pages, model: str) -> ServerFacts | None:
    """By /model/info, which tells of the models behind a name."""
    info = [row for row in rows_of(await pages.of_root("model/info")) or () if "model_info" in row]
    if not any(row.get("model_name") == model for row in info):
        return None
    told = with_litellm([ListedModel(id=model)], info)
    return ServerFacts(engine="litellm", context_tokens=told[0].context_tokens if told else None)


async def _listed(pages: _Pages, model: str) -> ServerFacts | None:
    """By the list itself, as vLLM and most others write it."""
    for path in pages.row.models_at:
        row = _row(await pages.of_api(path), model)
        if row is not None:
            models, _ = models_of([row], pages.row)
            return ServerFacts(engine=engine_of([row]), context_tokens=models[0].context_tokens if models else None)
    return None


# In this order where nobody knows what it is: the first page of each says 404 on all others, at once.
_READERS = {
    "llamacpp": _llama_cpp, "ollama": _ollama, "lmstudio": _lm_studio, "litellm": _litellm, "vllm": _listed,
}  # fmt: skip


def _row(body: object, model: str) -> Row | None:
    return next((row for row in rows_of(body) or () if id_of(row) == model), None)


def _served(row: Row) -> int | None:
    """The window that LM Studio serves it with, where it is loaded."""
    found = row.get("loaded_context_length")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None
