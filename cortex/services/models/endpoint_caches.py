"""What is known beforehand of how an endpoint caches, and of who declares tools late by itself: by host and family."""

import re
from dataclasses import replace
from typing import Literal

from cortex.base.model import PROFILES, Profile

_LOCAL, _NOTHING = PROFILES["local"], PROFILES["none"]
_STRONG = PROFILES["openai"]

# Claude: a read costs 0.1, a write 1.25, life 5 minutes, renewed by each read; the least length differs by model
# (Anthropic's prompt caching guide, read 2026-11). First match counts.
_ANTHROPIC: tuple[tuple[str, int], ...] = (
    (r"opus-4-[5-9]|haiku-4-[5-9]", 4096),
    (r"sonnet-4-[6-9]|haiku-3|3-5-haiku|3-haiku", 2048),
    (r"", 1024),
)
# Share of the input price that a cached token costs, a written one, the least length, the life (OpenAI's prompt
# caching guide: 1,024 tokens, 5 to 10 minutes of idleness; price lists of the others through OpenRouter, read 2026-11).
_FAMILIES: tuple[tuple[str, Profile], ...] = (
    (r"gpt-5\.([6-9]|\d\d)", replace(_STRONG, write_factor=1.25)),
    (r"gpt-5", _STRONG),
    (r"gpt-4\.1|(^|/)o[134](-|$)", replace(_STRONG, read_factor=0.25)),
    (r"gpt-4o|chatgpt-4o", replace(_STRONG, read_factor=0.5)),
    (r"deepseek", replace(_STRONG, minimum_tokens=64, life_s=3600)),
    (r"gemini-2\.0", replace(_STRONG, read_factor=0.25, minimum_tokens=4096)),
    (r"gemini", replace(_STRONG, minimum_tokens=2048)),
    (r"grok", replace(_STRONG, read_factor=0.25)),
    (r"kimi|moonshot", replace(_STRONG, read_factor=0.25)),
    (r"claude", _NOTHING),  # by this wire it caches only what is marked, and nothing here marks it
)
_HOSTS: tuple[tuple[str, Profile], ...] = (
    (r"(^|\.)openai\.com$|\.(openai|services\.ai|cognitiveservices)\.azure\.(com|us|cn)$", _STRONG),
    (r"(^|\.)deepseek\.com$", replace(_STRONG, minimum_tokens=64, life_s=3600)),
    (r"(^|\.)openrouter\.ai$", replace(_STRONG, read_factor=0.25)),
    (r"(^|\.)groq\.com$", replace(_STRONG, read_factor=0.5, minimum_tokens=128)),
    (r"(^|\.)x\.ai$", replace(_STRONG, read_factor=0.25)),
    (r"(^|\.)googleapis\.com$", replace(_STRONG, minimum_tokens=2048)),
)

# provider, models, what makes it so. Others get the bridge, stubs or a rewrite (`selection/plan/cache_economics.py`).
# Sources, read 2026-11-21:
# - Anthropic, "Tool search tool" and "Tool use with prompt caching": deferred tools are not in the cached prefix; a
#   `tool_reference` in a tool result brings the schema. Sonnet, Opus and Haiku from 4.5 on.
# - Anthropic, beta `mid-conversation-tool-changes-2026-07-01`: `tool_addition` in a system message, for the models
#   of the first row; the second row's are told by a search in the history, which a thinking model must open itself.
# - OpenAI, "Tool search": gpt-5.4 and later but 5.4-nano; Responses alone, found schemas go to the end of the context
#   so that the cache holds. The item `additional_tools` carries them (openai 3.52, pydantic-ai 2.68).
# Family lists: pydantic-ai 2.68, `profiles/anthropic.py`, `providers/anthropic.py`, `profiles/openai.py`.
_NATIVE: tuple[tuple[str, str, Literal["", "no thinking"]], ...] = (
    ("anthropic", r"^claude-(fable-5|mythos-5|opus-4-8|opus-5|sonnet-5-5|haiku-5-5)", ""),
    ("anthropic", r"^claude-(sonnet-4-[56]|sonnet-5|opus-4-[567]|haiku-4-5)", "no thinking"),
    ("openai", r"^gpt-(5\.[456]|6)(?!.*nano)", ""),
)
_OWN_HOSTS = {"anthropic": "api.anthropic.com", "openai": "api.openai.com"}


def shipped(provider: str, model: str, host: str, *, is_inside: bool) -> Profile:
    """What is known of this endpoint beforehand. `host`: "" for the provider's own; `is_inside`: in this network."""
    if provider == "anthropic":
        least = next(tokens for pattern, tokens in _ANTHROPIC if re.search(pattern, model.lower()))
        return replace(PROFILES["anthropic"], minimum_tokens=least)
    if is_inside:
        return _LOCAL
    endpoint = _first(_HOSTS, host) if host else (_STRONG if provider == "openai" else _NOTHING)
    if endpoint is None or not endpoint.caches:
        return _NOTHING
    return _first(_FAMILIES, model.lower()) or endpoint


def is_native(provider: str, model: str, host: str, *, thinks: bool = False) -> bool:
    """Whether this endpoint declares late by itself. `host`: "" for the provider's own; `thinks`: asked to think."""
    return host in ("", _OWN_HOSTS.get(provider)) and any(
        provider == kind and re.search(family, model) and not (thinks and needs) for kind, family, needs in _NATIVE
    )


def _first(table: tuple[tuple[str, Profile], ...], text: str) -> Profile | None:
    return next((profile for pattern, profile in table if re.search(pattern, text)), None)
