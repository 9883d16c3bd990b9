"""Chat completions of OpenAI and of every compatible endpoint (OpenRouter, Ollama, llama.cpp, vLLM, LM Studio).

An entry whose late tools are native is asked through Responses: chat completions cannot declare a tool late.
Builds the model; `wire.py` does the call.
"""

from urllib.parse import urlsplit

from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from cortex.base.model import ModelEntry
from cortex.providers import ProviderContext
from cortex.providers.egress import open_client
from cortex.providers.pydantic import WireTraits
from cortex.providers.wire import ModelConnection, WireProvider

OWN_URL = "https://api.openai.com/v1"


def connect(entry: ModelEntry, secret: str | None, surroundings: ProviderContext) -> WireProvider:
    """The model behind this entry's `base_url`; without one, OpenAI's own."""
    base_url = entry.base_url or OWN_URL
    host = urlsplit(base_url).hostname or ""
    http = open_client(surroundings.policy, connect_s=surroundings.connect_s, read_s=entry.timeout_s)
    client = AsyncOpenAI(base_url=base_url, api_key=secret or "none", http_client=http, max_retries=0)
    # The environment's account is not the one that the entry's key belongs to.
    client.organization = client.project = None
    is_own = host == "api.openai.com"
    name = "openai" if is_own else host
    provider = OpenAIProvider(openai_client=client) if is_own else OpenAICompatibleProvider(name, openai_client=client)
    if entry.profile.late_tools == "native":
        return WireProvider(entry, _responses(entry, client, provider), surroundings)
    profile = OpenAIModelProfile(
        json_schema_transformer=None,
        openai_chat_streaming_requires_finish_reason=True,
        openai_chat_supports_multiple_system_messages=False,
        openai_chat_supports_max_completion_tokens=is_own,
    )
    model = OpenAIChatModel(entry.model, provider=provider, profile=profile)
    line = ModelConnection(model=model, wire=WireTraits(name=name), settings={}, close=client.close)
    return WireProvider(entry, line, surroundings)


def _responses(entry: ModelEntry, client: AsyncOpenAI, provider: Provider[AsyncOpenAI]) -> ModelConnection:
    """The same model through Responses, which keeps nothing there: Cortex sends the whole conversation each time."""
    profile = OpenAIModelProfile(json_schema_transformer=None, tool_addition_mode="with_definitions")
    model = OpenAIResponsesModel(entry.model, provider=provider, profile=profile)
    wire = WireTraits(name=provider.name, late="with_definitions")
    return ModelConnection(model=model, wire=wire, settings={"openai_store": False}, close=client.close)
