"""What a provider caches: the shipped facts by endpoint and model family, and what its own reports teach.

Pure: samples in, a profile out, the same for the same samples. `services/models/profiles.py` gathers the samples.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from cortex.base.model import Profile

_STRONG = Profile(caches=True, read_factor=0.1, write_factor=1.0, minimum_tokens=1024, life_s=300, late_tools="bridge")
_SLOT = Profile(
    caches=True, read_factor=0.0, write_factor=1.0, minimum_tokens=1, life_s=600, late_tools="stubs", strength="weak"
)
_NOTHING = Profile()

# What a person may say instead of an address. `anthropic`: a strong model of the kind most people use.
ProfileName = Literal["anthropic", "openai", "local", "none"]
PROFILES: Mapping[ProfileName, Profile] = MappingProxyType(
    {"anthropic": replace(_STRONG, write_factor=1.25), "openai": _STRONG, "local": _SLOT, "none": _NOTHING}
)

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

SAMPLES_LEAST = 12
SAMPLES_SILENT = 20
WARM_S = 60.0
LIFE_LEAST_S, LIFE_MOST_S = 30, 86_400
SIDE_LEAST = 3

Fact = Literal["caches", "minimum_tokens", "life_s"]
FACTS: tuple[Fact, ...] = ("caches", "minimum_tokens", "life_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A request whose first `kept_tokens` were sent before, unchanged, `idle_s` seconds ago, and what was reported."""

    idle_s: float
    kept_tokens: int
    cached_tokens: int
    written_tokens: int = 0

    @property
    def is_hit(self) -> bool:
        """Whether most of what could be read from the cache was."""
        return self.cached_tokens >= 0.5 * self.kept_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedProfile:
    """A profile with what it rests on: how many samples, how many of them hits, and which facts they changed."""

    profile: Profile
    samples: int
    hits: int
    changed: tuple[Fact, ...] = ()


def shipped(provider: str, model: str, host: str, *, is_inside: bool) -> Profile:
    """What is known of this endpoint beforehand. `host`: "" for the provider's own; `is_inside`: in this network."""
    if provider == "anthropic":
        least = next(tokens for pattern, tokens in _ANTHROPIC if re.search(pattern, model.lower()))
        return replace(_STRONG, write_factor=1.25, minimum_tokens=least)
    if is_inside:
        return _SLOT
    endpoint = _first(_HOSTS, host) if host else (_STRONG if provider == "openai" else _NOTHING)
    if endpoint is None or not endpoint.caches:
        return _NOTHING
    family = _first(_FAMILIES, model.lower())
    return family if family is not None else endpoint


def kind_of(profile: Profile) -> ProfileName:
    """The named profile that this one is like; figures such as its life may differ."""
    if not profile.caches:
        return "none"
    if profile.read_factor == 0:
        return "local"
    return "anthropic" if profile.write_factor > 1 else "openai"


def learned(base: Profile, samples: Sequence[Sample], fixed: tuple[str, ...] = ()) -> LearnedProfile:
    """The profile that the samples speak for; facts in `fixed` (typed by a person) stay as they are.

    Conservative: nothing moves below 12 samples, and a fact only where both sides of it were seen, or where the
    shipped one was contradicted three times. Prices are never learned: usage does not tell them.
    """
    hits = sum(sample.is_hit for sample in samples)
    found = LearnedProfile(profile=base, samples=len(samples), hits=hits)
    if len(samples) < SAMPLES_LEAST:
        return found
    profile = base
    if "caches" not in fixed:
        profile = _caching(profile, samples)
    if profile.caches and hits:
        if "minimum_tokens" not in fixed:
            profile = replace(profile, minimum_tokens=_minimum(profile, samples))
        if "life_s" not in fixed:
            profile = replace(profile, life_s=_life(profile, samples))
    changed = tuple(fact for fact in FACTS if getattr(profile, fact) != getattr(base, fact))
    return replace(found, profile=profile, changed=changed)


def _caching(profile: Profile, samples: Sequence[Sample]) -> Profile:
    """Whether it caches at all. A free slot in this network may be silent; what is sold at a discount is reported."""
    hits = sum(sample.is_hit for sample in samples)
    if not profile.caches and hits >= SAMPLES_LEAST // 2:
        return replace(profile, caches=True, read_factor=0.5, late_tools="rewrite")
    fair = [
        sample for sample in samples if sample.idle_s <= WARM_S and sample.kept_tokens >= 2 * profile.minimum_tokens
    ]
    is_silent = len(fair) >= SAMPLES_SILENT and not any(sample.cached_tokens for sample in samples)
    return replace(profile, caches=False) if is_silent and profile.read_factor > 0 else profile


def _minimum(profile: Profile, samples: Sequence[Sample]) -> int:
    """From which length on a warm prefix is read from the cache."""
    warm = [(sample.kept_tokens, sample.is_hit) for sample in samples if sample.idle_s <= WARM_S]
    wrong_below = sum(hit for tokens, hit in warm if tokens < profile.minimum_tokens)
    wrong_above = sum(not hit for tokens, hit in warm if tokens >= profile.minimum_tokens)
    if wrong_below < SIDE_LEAST and wrong_above < SIDE_LEAST:
        return profile.minimum_tokens
    hits = sorted(tokens for tokens, hit in warm if hit)
    if len(hits) < SIDE_LEAST:
        return profile.minimum_tokens
    return _split(warm, hits, lambda tokens, at: tokens >= at, lowest=False)


def _life(profile: Profile, samples: Sequence[Sample]) -> int:
    """After which idle time a prefix is gone."""
    long = [(sample.idle_s, sample.is_hit) for sample in samples if sample.kept_tokens >= profile.minimum_tokens]
    late_hits = sum(hit for idle_s, hit in long if idle_s > profile.life_s)
    early_misses = sum(not hit for idle_s, hit in long if idle_s <= profile.life_s)
    if late_hits < SIDE_LEAST and early_misses < SIDE_LEAST:
        return profile.life_s
    hits = sorted(idle_s for idle_s, hit in long if hit)
    if len(hits) < SIDE_LEAST:
        return profile.life_s
    found = _split(long, hits, lambda idle_s, at: idle_s <= at, lowest=True)
    return min(max(found, LIFE_LEAST_S), LIFE_MOST_S)


def _split(
    seen: Sequence[tuple[float, bool]], places: Sequence[float], is_in: Callable[[float, float], bool], *, lowest: bool
) -> int:
    """The place that separates hits from misses with the fewest errors; of equals the more careful one."""
    errors = {place: sum(is_in(value, place) != hit for value, hit in seen) for place in places}
    least = min(errors.values())
    best = [place for place, wrong in errors.items() if wrong == least]
    return int(min(best) if lowest else max(best))


def _first(table: tuple[tuple[str, Profile], ...], text: str) -> Profile | None:
    return next((profile for pattern, profile in table if re.search(pattern, text)), None)
