"""Chat completions of OpenAI and of every compatible endpoint (OpenRouter, Ollama, llama.cpp, vLLM, LM Studio).

An entry whose late tools are native is asked through Responses: chat completions cannot declare a tool late.
Builds the model; `wire.py` does the call.
"""

import json
from functools import cache
from urllib.parse import urlsplit

import httpx2
from openai import AsyncOpenAI, OpenAI
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from cortex.base.egress import open_client
from cortex.base.model import ModelEntry
from cortex.providers import ProviderContext
from cortex.providers.pydantic import WireTraits
from cortex.providers.wire import ModelConnection, WireProvider

OWN_URL = "https://api.openai.com/v1"


def connect(entry: ModelEntry, secret: str | None, surroundings: ProviderContext) -> WireProvider:
    """The model behind this entry's `base_url`; without one, OpenAI's own."""
    base_url = entry.base_url or OWN_URL
    host = urlsplit(base_url).hostname or ""
    http = open_client(surroundings.policy, connect_s=surroundings.connect_s, read_s=entry.timeout_s, ca=entry.ca)
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
    wire = WireTraits(name=name, sees=entry.takes_pictures)
    line = ModelConnection(model=model, wire=wire, settings={}, close=client.close)
    return WireProvider(entry, line, surroundings)


def _responses(entry: ModelEntry, client: AsyncOpenAI, provider: Provider[AsyncOpenAI]) -> ModelConnection:
    """The same model through Responses, which keeps nothing there: Cortex sends the whole conversation each time."""
    _build_events()
    profile = OpenAIModelProfile(json_schema_transformer=None, tool_addition_mode="with_definitions")
    model = OpenAIResponsesModel(entry.model, provider=provider, profile=profile)
    wire = WireTraits(name=provider.name, late="with_definitions", sees=entry.takes_pictures)
    return ModelConnection(model=model, wire=wire, settings={"openai_store": False}, close=client.close)


@cache
def _build_events() -> None:
    """Have the SDK build its classes of events now: the first event of a process costs it two seconds of processor.

    Now is in a thread (`services/models/models.py: provider`); with the first answer it would be on the event loop.
    """
    response = {"id": "", "object": "response", "output": [{"type": "message", "content": [{"type": "output_text"}]}]}
    events = [{"type": "response.created", "response": {}}, {"type": "response.completed", "response": response}]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=body)
    )
    with OpenAI(api_key="none", base_url=OWN_URL, http_client=httpx2.Client(transport=transport)) as client:
        for _ in client.responses.create(model="none", input="none", stream=True):
            pass
