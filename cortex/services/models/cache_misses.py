"""Why a provider's cache did not hold a request: the planner's own facts against the usage that was reported.

Pure; asked when an answer is there. What a provider does not say is not guessed.
"""

from typing import Literal

from msgspec import Struct

from cortex.base.messages import Usage
from cortex.base.model import Profile

Outcome = Literal["hit", "first", "model", "short", "expired", "tools", "system", "history", "uncached", "unexplained"]
WORDS: dict[Outcome, str] = {
    "hit": "read from the cache",
    "first": "the first request: nothing was cached yet",
    "model": "another model answered before: its cache is its own",
    "short": "under the provider's minimum: too short to be cached",
    "expired": "the cache had run out",
    "tools": "the tools changed, and everything behind them",
    "system": "the system text changed",
    "history": "the history changed: compacted, or said anew",
    "uncached": "this backend caches nothing, or does not say so",
    "unexplained": "nothing changed and it was in time: the provider did not say why",
}
HIT_SHARE = 0.5  # providers cache in blocks and drop the last one: a true hit is rarely 100 %


class Sight(Struct, frozen=True, kw_only=True):
    """One request as a cache sees it: digests of tools and system, and which history it carried.

    `input_tokens`: as reported, 0 for the one that is just planned. `is_replaced`: its turn was dropped since.
    """

    model: str
    tools: str
    system: str
    history: str
    input_tokens: int = 0
    is_replaced: bool = False


class CacheVerdict(Struct, frozen=True, kw_only=True):
    """The fate of the cached prefix.

    `kept_tokens`: how much of this request its forerunner had sent unchanged, 0 where anything ahead of it changed.
    What is learned about a cache is learned from those that have some.
    """

    outcome: Outcome
    kept_tokens: int = 0


def verdict(now: Sight, before: Sight | None, idle_s: float, usage: Usage, profile: Profile) -> CacheVerdict:
    """The outcome for the request `now`, sent `idle_s` seconds after `before`; None = there was none before."""
    if before is None:
        is_hit = usage.cached_tokens >= HIT_SHARE * max(1, usage.input_tokens)
        return CacheVerdict(outcome="hit" if is_hit else _silent(usage, profile) or "first")
    change = _change(now, before)
    kept = 0 if change else min(before.input_tokens, usage.input_tokens)
    if usage.cached_tokens >= HIT_SHARE * max(1, min(before.input_tokens, usage.input_tokens)):
        return CacheVerdict(outcome="hit", kept_tokens=kept)
    return CacheVerdict(outcome=_reason(change, before, idle_s, usage, profile), kept_tokens=kept)


def _reason(change: Outcome | None, before: Sight, idle_s: float, usage: Usage, profile: Profile) -> Outcome:
    """The first cause that alone explains the miss: an old cache is gone, whatever else changed."""
    silent = _silent(usage, profile)
    if silent:
        return silent
    if change == "model":
        return change
    if min(before.input_tokens, usage.input_tokens) < profile.minimum_tokens:
        return "short"
    if idle_s > profile.life_s:
        return "expired"
    return change or "unexplained"


def _silent(usage: Usage, profile: Profile) -> Outcome | None:
    """`uncached` where neither the profile nor the report knows of a cache."""
    return "uncached" if not profile.caches and not usage.cached_tokens and not usage.written_tokens else None


def _change(now: Sight, before: Sight) -> Outcome | None:
    """Return what of the prefix is not as it was, in the order in which providers read it; None = it was extended."""
    checks: tuple[tuple[bool, Outcome], ...] = (
        (now.model != before.model, "model"),
        (now.tools != before.tools, "tools"),
        (now.system != before.system, "system"),
        (now.history != before.history or before.is_replaced, "history"),
    )
    return next((outcome for has_changed, outcome in checks if has_changed), None)
