"""What a backend's cache makes worth doing: from which probability a tool is sent, and how a late tool travels.

Prices relative to a plain input token: a cached read costs c, a cache write w (SELECTION section 2).
"""

from typing import Literal

from cortex.base.model import Profile

Late = Literal["native", "bridge", "stubs", "rewrite"]

CACHED_THRESHOLD = 0.37
UNCACHED_THRESHOLD = 0.18
BRIDGE_WRAPPER_TOKENS = 60
BRIDGE_MISSES = 0.05


def threshold(profile: Profile) -> float:
    """p* = what sending a tool costs over the expected rounds, against what a miss costs."""
    return CACHED_THRESHOLD if profile.caches else UNCACHED_THRESHOLD


def has_bridge(profile: Profile) -> bool:
    """Whether the bridge is declared when an epoch opens: a strong model behind a cache that cannot declare late."""
    return profile.caches and profile.late_tools == "bridge" and profile.strength == "strong"


def takes_early_stubs(profile: Profile) -> bool:
    """Whether likely neighbours are declared as stubs from the start: weak models behind a cache misuse the bridge."""
    is_weak_bridge = profile.late_tools == "bridge" and profile.strength == "weak"
    return profile.caches and (profile.late_tools == "stubs" or is_weak_bridge)


def late_way(profile: Profile, *, late_tokens: int, following_tokens: int, is_bridged: bool) -> Late:
    """How tools that are needed after the epoch opened travel: the cheapest way that this backend has.

    A rewrite pays `(w - c) x` all that follows the tools; the bridge pays the schema behind the message, the
    wrapper, and now and then a malformed call.
    """
    if profile.caches and profile.late_tools == "native":
        return "native"
    if not is_bridged or not has_bridge(profile):
        return "rewrite"
    rewrite = (profile.write_factor - profile.read_factor) * following_tokens
    bridge = BRIDGE_WRAPPER_TOKENS + BRIDGE_MISSES * (profile.read_factor * following_tokens + late_tokens)
    return "rewrite" if rewrite < bridge else "bridge"
