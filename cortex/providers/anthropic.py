"""Anthropic's Messages API, with its prompt cache switched on. Builds the model; `wire.py` does the call."""

from anthropic import AsyncAnthropic
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider

from cortex.base.egress import open_client
from cortex.base.model import ModelEntry
from cortex.providers import ProviderContext
from cortex.providers.late import Late
from cortex.providers.pydantic import WireTraits
from cortex.providers.wire import ModelConnection, WireProvider

OWN_URL = "https://api.anthropic.com"


def connect(entry: ModelEntry, secret: str | None, surroundings: ProviderContext) -> WireProvider:
    """The model behind this entry's `base_url`; without one, Anthropic's own."""
    http = open_client(surroundings.policy, connect_s=surroundings.connect_s, read_s=entry.timeout_s, ca=entry.ca)
    client = AsyncAnthropic(
        base_url=(entry.base_url or OWN_URL).rstrip("/").removesuffix("/v1"),
        api_key=secret or "none",
        http_client=http,
        max_retries=0,
    )
    provider = AnthropicProvider(anthropic_client=client)
    is_native = entry.profile.late_tools == "native"
    profile = ModelProfile(json_schema_transformer=None, tool_deferral_mode="standalone" if is_native else None)
    model = AnthropicModel(entry.model, provider=provider, profile=profile)
    late = _late(entry, model) if is_native else "none"
    wire = WireTraits(name="anthropic", has_safe_ids=True, late=late, sees=entry.takes_pictures)
    line = ModelConnection(model=model, wire=wire, settings=_caching(entry), close=client.close)
    return WireProvider(entry, line, surroundings)


def _late(entry: ModelEntry, model: AnthropicModel) -> Late:
    """Newer models are told by the system; the others by a search in the history, which thinking would have to open."""
    if model.tool_addition_mode == "by_reference":
        return "by_reference"
    thinks = dict(entry.extra_params).get("thinking", "false") not in ("false", "null", '""')
    return "none" if thinks else "by_exchange"


def _caching(entry: ModelEntry) -> dict[str, bool]:
    """Marks after the tools, the system prompt and the last message: three of the four that are allowed."""
    if not entry.profile.caches:
        return {}
    return {
        "anthropic_cache_tool_definitions": True,
        "anthropic_cache_instructions": True,
        "anthropic_cache_messages": True,
    }
