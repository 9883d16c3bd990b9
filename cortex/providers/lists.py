"""Asks a server which models it has, by its own list and, where no row knows its host, by what its own pages add.

`pages.py` asks, `list_formats.py` reads.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from msgspec.structs import replace

from cortex.base.errors import ProviderError
from cortex.base.hidden import show_hidden
from cortex.base.http import FetchedPage
from cortex.base.json_text import parsed
from cortex.ports.model_lists import ListedModel, ModelList, ModelServer
from cortex.providers.list_formats import (
    Row,
    engine_of,
    id_of,
    loaded_instances,
    loaded_of,
    models_of,
    rows_of,
    with_litellm,
    with_llama_cpp,
    with_ollama,
)
from cortex.providers.pages import ServerPages, pages_of, refused
from cortex.providers.said import message_of
from cortex.providers.server_row import ServerRow
from cortex.providers.servers import OTHER, SERVERS, base_of, by_id, server_of

MOST_BYTES = 12_000_000  # OpenRouter's list is about 1 MB
MOST_PAGES = 20
MOST_SHOWN = 200  # models that a server is asked about one by one
AT_ONCE = 8
EXTRA_S = 5.0
_T = TypeVar("_T")
NO_LIST, MEND = "has no list of models at this address", "Check the address: most end in /v1."
_NO_LIST = (400, 404, 405, 410)  # nothing of this kind here: the next address may have it
_TAILS = ("/chat/completions", "/completions", "/responses", "/messages", "/models")


async def ask(server: ModelServer) -> ModelList:
    """Its models. ProviderError says what went wrong and what to do; no key is in it."""
    row = by_id("anthropic") if server.provider == "anthropic" else server_of(server.base_url, engine=server.engine)
    async with pages_of(server, row, MOST_BYTES) as pages:
        asking = _Asking(pages, server, row)
        found = await (asking.anthropic() if server.provider == "anthropic" else asking.openai())
    if not found.models:
        raise ProviderError(_nothing(found.engine or row.id), kind="empty")
    return found


class _Asking:
    """The requests of one list."""

    def __init__(self, pages: ServerPages, server: ModelServer, row: ServerRow) -> None:
        self._pages, self._server, self._row = pages, server, row

    async def openai(self) -> ModelList:
        """OpenAI's list, at the address or, where it has no path, at /v1 there."""
        base = base_of(self._row, _plain(self._server.base_url or self._row.base_url))
        places = [base] if urlsplit(base).path else [f"{base}/v1", base]
        waiting = [(place, urljoin(f"{place}/", path)) for place in places for path in self._row.models_at]
        place, url = waiting.pop(0)
        while (page := await self._pages.page(url)).status in _NO_LIST and waiting:
            place, url = waiting.pop(0)
        rows = self._rows(page)
        models, left_out = await asyncio.to_thread(models_of, rows, self._row)
        is_known = self._row is not OTHER and server_of(place) is self._row
        found = ModelList(
            models=models,
            base_url=place if self._server.base_url else "",
            left_out=left_out,
            engine="" if is_known else engine_of(rows) or self._server.engine,
        )
        is_hosted = self._row is not OTHER and not self._row.is_local
        return found if is_hosted or self._server.is_brief else await self._with_extras(found, f"{place}/")

    async def anthropic(self) -> ModelList:
        """Anthropic's list, page by page."""
        root = _plain(self._server.base_url or self._row.base_url).removesuffix("/v1")
        rows: list[Row] = []
        after = ""
        for _ in range(MOST_PAGES):
            more = f"&after_id={quote(after)}" if after else ""
            page = await self._pages.page(f"{urljoin(f'{root}/', self._row.models_at[0])}{more}")
            rows += self._rows(page)
            body = parsed(page.body)
            last = body.get("last_id") if isinstance(body, dict) and body.get("has_more") is True else None
            if not isinstance(last, str) or not last or last == after:
                break
            after = last
        models, left_out = models_of(rows, self._row)
        return ModelList(models=models, base_url=self._server.base_url and root, left_out=left_out)

    async def _with_extras(self, found: ModelList, base: str) -> ModelList:
        """Return what a server that people run adds on its own pages. Each fails without harm: the list is there."""
        root = base.removesuffix("v1/")
        paths = [path for row in SERVERS for path in row.more_at]
        bodies = await asyncio.gather(*(self._extra(urljoin(f"{root}v1/", path)) for path in paths))
        said = dict(zip(paths, bodies, strict=True))
        tags, studio, newer = (said[f"../api/{path}"] for path in ("tags", "v0/models", "v1/models"))
        props, info = said["../props"], said["../model/info"]
        if (rows := rows_of(tags)) and {id_of(row) for row in rows} & {model.id for model in found.models}:
            return await self._ollama(found, root)
        rows = rows_of(studio) or ()
        if not any("max_context_length" in row for row in rows):
            rows = loaded_instances(row for row in rows_of(newer) or () if "loaded_instances" in row)
        if rows:
            models, left_out = models_of(rows, OTHER)
            bare = [model for model in found.models if model.id not in {id_of(row) for row in rows}]
            return replace(found, models=(*models, *bare), left_out=left_out, engine="lmstudio")
        if isinstance(props, dict) and ("default_generation_settings" in props or found.engine == "llamacpp"):
            return await self._llama_cpp(found, root, props)
        if (rows := rows_of(info)) and any("model_info" in row for row in rows):
            models = with_litellm(found.models, rows)
            left_out = found.left_out + len(found.models) - len(models)
            return replace(found, models=models, left_out=left_out, engine="litellm")
        return found

    async def _llama_cpp(self, found: ModelList, root: str, props: Row) -> ModelList:
        """One model is what /props tells of; a server of several tells it of each, and is not made to load it."""
        if len(found.models) == 1:
            return replace(found, models=(with_llama_cpp(found.models[0], props),), engine="llamacpp")

        async def described(model: ListedModel) -> ListedModel:
            answer = await self._extra(f"{root}props?model={quote(model.id, safe='')}&autoload=false")
            return with_llama_cpp(model, answer) if isinstance(answer, dict) else model

        return replace(found, models=await self._each(found.models, described), engine="llamacpp")

    async def _ollama(self, found: ModelList, root: str) -> ModelList:
        loaded = loaded_of(await self._extra(f"{root}api/ps"))

        async def shown(model: ListedModel) -> ListedModel | None:
            answer = await self._extra(f"{root}api/show", {"model": model.id})
            return with_ollama(model, answer, loaded.get(model.id)) if isinstance(answer, dict) else model

        models = tuple(model for model in await self._each(found.models, shown) if model is not None)
        left_out = found.left_out + len(found.models) - len(models)
        return replace(found, models=models, left_out=left_out, engine="ollama")

    async def _each(
        self, models: Sequence[ListedModel], ask_about: Callable[[ListedModel], Awaitable[_T]]
    ) -> tuple[_T | ListedModel, ...]:
        """Return what is found out about each model, a few at a time; those behind the first 200 as they are."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def gated(model: ListedModel) -> _T:
            async with gate:
                return await ask_about(model)

        return (*await asyncio.gather(*map(gated, models[:MOST_SHOWN])), *models[MOST_SHOWN:])

    async def _extra(self, url: str, body: Mapping[str, str] | None = None) -> Any:  # Any: what a server says
        return await self._pages.json(url, body, EXTRA_S)

    def _rows(self, page: FetchedPage) -> list[Row]:
        """The rows of a list that came whole; ProviderError for everything else that may come."""
        host = urlsplit(page.url).netloc
        body: Any = None
        if not page.is_cut:
            try:
                body = parsed(page.body)
            except ValueError:
                body = None
        if page.status != 200:
            raise refused(page, message_of(body), NO_LIST, mend=MEND, has_key=bool(self._server.key))
        rows = rows_of(body)
        if rows is None:
            kind = page.headers.get("content-type", "").partition(";")[0][:60]
            told = f"What {host} sent is not a list of models{f' but {show_hidden(kind)}' if kind else ''}."
            raise ProviderError(
                f"{told} Check the address: it is that of the API, most often ending in /v1.", kind="malformed"
            )
        return [*rows]


def _nothing(server_id: str) -> str:
    load = {
        "ollama": " Download one first, such as: ollama pull qwen3",
        "lmstudio": " Download one in LM Studio first.",
        "azure": " Deploy one in the resource first.",
    }.get(server_id, " Load or download one there first.")
    return f"The server answered, but lists no model that can chat.{load}"


def _plain(base_url: str) -> str:
    """The address without what people copy with it."""
    base = base_url.rstrip("/")
    for tail in _TAILS:
        base = base.removesuffix(tail)
    return base.rstrip("/")
