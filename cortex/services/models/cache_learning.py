"""What a provider's own reports teach about its cache. Pure: the same profile for the same samples.

`profiles.py` gathers the samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cortex.base.model import Profile
from cortex.storage.round_rows import CacheSample

SAMPLES_LEAST = 12
SAMPLES_SILENT = 20
WARM_S = 60.0
LIFE_LEAST_S, LIFE_MOST_S = 30, 86_400
SIDE_LEAST = 3
HIT_SHARE = 0.5  # of what could be read from the cache

Fact = Literal["caches", "minimum_tokens", "life_s"]
FACTS: tuple[Fact, ...] = ("caches", "minimum_tokens", "life_s")
Seen = Sequence[tuple[float, bool]]  # a length or an idle time, and whether it was a hit


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedProfile:
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
    """Whether it caches at all. A free slot in this network may be silent; what is sold at a discount is reported."""
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
