"""OpenAI and every compatible endpoint (OpenRouter, Ollama, llama.cpp, vLLM, LM Studio): where and how it is asked.

An entry whose late tools are native is asked through Responses: chat completions cannot declare a tool late.
"""

from urllib.parse import urlsplit

from cortex.base.model import ModelEntry
from cortex.providers import ProviderContext, chat, responses
from cortex.providers.servers import asked_at, at, headers_of, server_of
from cortex.providers.terms import Terms
from cortex.providers.wire import Endpoint, WireProvider, open_connections

OWN_URL = "https://api.openai.com/v1"


def connect(entry: ModelEntry, secret: str | None, surroundings: ProviderContext) -> WireProvider:
    """The model behind this entry's `base_url`; without one, OpenAI's own."""
    base_url = entry.base_url or OWN_URL
    host = urlsplit(base_url).hostname or ""
    row = server_of(entry.base_url, engine=entry.engine)
    is_native = entry.profile.late_tools == "native"
    terms = Terms(
        entry=entry,
        row=row,
        name="openai" if host == "api.openai.com" else host,
        late="with_definitions" if is_native else "none",
    )
    headers = headers_of(row, secret or "none")
    protocol = responses if is_native else chat
    endpoint = Endpoint(
        url=at(asked_at(row, base_url), protocol.PATH),
        terms=terms,
        client=open_connections(entry, surroundings, headers),
        body=protocol.body,
        reader=responses.ResponsesReader if is_native else chat.ChatReader,
    )
    return WireProvider(endpoint, surroundings)
