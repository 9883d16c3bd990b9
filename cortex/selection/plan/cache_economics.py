"""What a backend's cache makes worth doing: from which probability a tool is sent, and how a late tool travels.

Prices relative to a plain input token: a cached read costs c, a cache write w.
"""

from typing import Literal

from cortex.base.model import Profile
from cortex.selection.types import ToolEntry

Late = Literal["native", "bridge", "rewrite"]

ROUNDS_MORE, TURNS_MORE = 1.0, 6.0
PREFIX_TOKENS, OUTPUT_TOKENS = 1_500, 5 * 60  # of one more round; a token written costs five
WAIT_TOKENS, GRAVE_TOKENS = 3_200, 55
WEAK_OPENS_TOKENS = 2_048
BRIDGE_WRAPPER_TOKENS, BRIDGE_MISSES = 60, 0.05


def price(profile: Profile, tool: ToolEntry, *, is_full: bool = False) -> float:
    """From which chance on the tool is sent: what it costs to send it for nothing, against what a miss costs.

    A miss is one more round over the prefix with its output, and a person's wait, held to be worth WAIT_TOKENS. Behind
    a cache a sent tool is written once and read in each later request of the epoch; without one it is paid in the
    rounds of this message. A grave one costs GRAVE_TOKENS more: called for nothing, it does harm.
    """
    read, sent = 1.0, 1 + ROUNDS_MORE
    if profile.caches:
        read, sent = profile.read_factor, profile.write_factor + profile.read_factor * TURNS_MORE
    cost = (tool.tokens_full if is_full else tool.tokens_stub) * sent + GRAVE_TOKENS * tool.is_grave
    return cost / (read * PREFIX_TOKENS + OUTPUT_TOKENS + WAIT_TOKENS)


def opens_at(profile: Profile) -> int:
    """From how many tokens on an epoch opens before any tool is needed: with the request that begins to be cached.

    A local slot keeps a prompt from its first token on, yet waits for a need: a weak model calls best what is declared.
    """
    return max(profile.minimum_tokens, WEAK_OPENS_TOKENS) if profile.strength == "weak" else profile.minimum_tokens


def has_bridge(profile: Profile) -> bool:
    """Tell whether the bridge is declared when an epoch opens: behind a cache, where a tool cannot be declared late."""
    return profile.caches and profile.late_tools in ("bridge", "stubs")


def takes_early_stubs(profile: Profile) -> bool:
    """Tell whether likely neighbours are declared as stubs from the start: a weak model calls best what it sees."""
    return has_bridge(profile) and (profile.late_tools == "stubs" or profile.strength == "weak")


def late_way(
    profile: Profile, *, schema_tokens: int, signature_tokens: int, following_tokens: int, is_bridged: bool
) -> Late:
    """Return how tools that are needed after the epoch opened travel: the cheapest way that this backend has.

    A rewrite pays the schemas and `(w - c) x` all that follows the tools; the bridge pays the signatures behind the
    message, the wrapper, and now and then a malformed call, which is answered with the schema.
    """
    if profile.caches and profile.late_tools == "native":
        return "native"
    if not is_bridged or not has_bridge(profile):  # to declare the bridge now would be a rewrite too
        return "rewrite"
    written, read = profile.write_factor, profile.read_factor
    rewrite = written * schema_tokens + (written - read) * following_tokens
    missed = read * following_tokens + written * schema_tokens
    bridge = written * signature_tokens + BRIDGE_WRAPPER_TOKENS + BRIDGE_MISSES * missed
    return "rewrite" if rewrite < bridge else "bridge"
