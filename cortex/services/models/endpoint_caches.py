"""How endpoints cache: what is known beforehand, by host and family, and what their own reports teach (`profiles.py`).

Also who declares tools late by itself. Pure: the same profile for the same samples.
"""

import re
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.model import PROFILES, Profile
from cortex.storage.round_rows import CacheSample

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
    """The endpoint as it is known beforehand. `host`: "" for the provider's own; `is_inside`: in this network."""
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
    """Tell whether it declares late by itself. `host`: "" for the provider's own; `thinks`: asked to think."""
    return host in ("", _OWN_HOSTS.get(provider)) and any(
        provider == kind and re.search(family, model) and not (thinks and needs) for kind, family, needs in _NATIVE
    )


def _first(table: tuple[tuple[str, Profile], ...], text: str) -> Profile | None:
    return next((profile for pattern, profile in table if re.search(pattern, text)), None)


SAMPLES_LEAST = 12
SAMPLES_SILENT = 20
WARM_S = 60.0
LIFE_LEAST_S, LIFE_MOST_S = 30, 86_400
SIDE_LEAST = 3
HIT_SHARE = 0.5  # of what could be read from the cache

Fact = Literal["caches", "minimum_tokens", "life_s"]
FACTS: tuple[Fact, ...] = ("caches", "minimum_tokens", "life_s")
Seen = Sequence[tuple[float, bool]]  # a length or an idle time, and whether it was a hit


class LearnedProfile(Struct, frozen=True, kw_only=True):
    """A profile with what it rests on: how many samples, how many of them hits, and which facts they changed."""

    profile: Profile
    samples: int
    hits: int
    changed: tuple[Fact, ...] = ()


def learned(base: Profile, samples: Sequence[CacheSample], fixed: tuple[str, ...] = ()) -> LearnedProfile:
    """The profile that the samples speak for; facts in `fixed` (typed by a person) stay as they are.

    Conservative: nothing moves below 12 samples, and a fact only where both sides of it were seen, or where the
    shipped one was contradicted three times. Prices are never learned: usage does not tell them.
    """
    hits = sum(map(_is_hit, samples))
    found = LearnedProfile(profile=base, samples=len(samples), hits=hits)
    if len(samples) < SAMPLES_LEAST:
        return found
    profile = base if "caches" in fixed else _caching(base, samples, hits)
    if profile.caches and hits and "minimum_tokens" not in fixed:
        warm = [(float(one.kept_tokens), _is_hit(one)) for one in samples if one.idle_s <= WARM_S]
        least = _bound(warm, profile.minimum_tokens, lambda tokens, at: tokens >= at, careful=max)
        profile = replace(profile, minimum_tokens=least)
    if profile.caches and hits and "life_s" not in fixed:
        long = [(one.idle_s, _is_hit(one)) for one in samples if one.kept_tokens >= profile.minimum_tokens]
        life_s = _bound(long, profile.life_s, lambda idle_s, at: idle_s <= at, careful=min)
        is_new = life_s != profile.life_s
        profile = replace(profile, life_s=min(max(life_s, LIFE_LEAST_S), LIFE_MOST_S)) if is_new else profile
    changed = tuple(fact for fact in FACTS if getattr(profile, fact) != getattr(base, fact))
    return replace(found, profile=profile, changed=changed)


def _is_hit(sample: CacheSample) -> bool:
    return sample.cached_tokens >= HIT_SHARE * sample.kept_tokens


def _caching(profile: Profile, samples: Sequence[CacheSample], hits: int) -> Profile:
    """Tell whether it caches. A free slot in this network may be silent; what is sold at a discount is reported."""
    if not profile.caches and hits >= SAMPLES_LEAST // 2:
        return replace(profile, caches=True, read_factor=0.5, late_tools="rewrite")
    fair = [one for one in samples if one.idle_s <= WARM_S and one.kept_tokens >= 2 * profile.minimum_tokens]
    is_silent = len(fair) >= SAMPLES_SILENT and not any(one.cached_tokens for one in samples)
    return replace(profile, caches=False) if is_silent and profile.read_factor > 0 else profile


def _bound(
    seen: Seen, now: int, is_in: Callable[[float, float], bool], *, careful: Callable[[Sequence[float]], float]
) -> int:
    """Up to where, or from where on, a prefix is read from the cache; `now` where too little speaks against it.

    The place that parts hits from misses with the fewest errors; of equals the more careful one.
    """
    hits = [value for value, hit in seen if hit]
    misses_in = sum(not hit for value, hit in seen if is_in(value, now))
    hits_out = sum(not is_in(value, now) for value in hits)
    if max(misses_in, hits_out) < SIDE_LEAST or len(hits) < SIDE_LEAST:
        return now
    errors = {place: sum(is_in(value, place) != hit for value, hit in seen) for place in hits}
    least = min(errors.values())
    return int(careful([place for place, wrong in errors.items() if wrong == least]))
