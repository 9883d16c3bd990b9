"""The one table of who declares tools late by itself: model families whose API takes one without a new prefix.

Others get the bridge, stubs or a rewrite (`cache_economics.py`); an admin's own word on the Models page stands.
"""

import re
from typing import Literal

# provider, hosts ("" = its own), models, what makes it so. Sources, read 2026-11-21:
# - Anthropic, "Tool search tool" and "Tool use with prompt caching": deferred tools are not in the cached prefix; a
#   `tool_reference` in a tool result brings the schema. Sonnet, Opus and Haiku from 4.5 on.
# - Anthropic, beta `mid-conversation-tool-changes-2026-07-01`: `tool_addition` in a system message, for the models
#   of the second row; the first row's are told by a search in the history, which a thinking model must open itself.
# - OpenAI, "Tool search": gpt-5.4 and later but 5.4-nano; Responses alone, found schemas go to the end of the context
#   so that the cache holds. The item `additional_tools` carries them (openai 3.52, pydantic-ai 2.68).
# Family lists: pydantic-ai 2.68, `profiles/anthropic.py`, `providers/anthropic.py`, `profiles/openai.py`.
Needs = Literal["", "no thinking"]
NATIVE: tuple[tuple[str, str, str, Needs], ...] = (
    ("anthropic", "", r"^claude-(fable-5|mythos-5|opus-4-8|opus-5|sonnet-5-5|haiku-5-5)", ""),
    ("anthropic", "", r"^claude-(sonnet-4-[56]|sonnet-5|opus-4-[567]|haiku-4-5)", "no thinking"),
    ("openai", "", r"^gpt-(5\.[456]|6)(?!.*nano)", ""),
)
OWN_HOSTS = {"anthropic": "api.anthropic.com", "openai": "api.openai.com"}


def is_native(provider: str, model: str, host: str, *, thinks: bool = False) -> bool:
    """Whether this endpoint declares late by itself. `host`: "" for the provider's own; `thinks`: asked to think."""
    at = "" if host == OWN_HOSTS.get(provider) else host
    return any(
        (provider, at) == (kind, where) and re.search(family, model) and not (thinks and needs)
        for kind, where, family, needs in NATIVE
    )
