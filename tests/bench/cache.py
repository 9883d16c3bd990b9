"""A provider's prompt cache in small: what a request costs after the one before it.

`c x LCP + w x (length - LCP) + output`, in tokens; LCP = the common prefix with the request before, 0 after the cache's
life or under its minimum. A piece that changed counts as changed from its beginning.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cortex.base.model import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a serialized request that changes as a whole: one tool, the system prompt, the catalog, a message."""

    text: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCost:
    """What a request cost, in plain input tokens, and whether it broke a prefix that the cache still held."""

    cost: float
    is_rewrite: bool


class Cache:
    """The cache of one conversation. `output_factor`: what an output token costs, 0 where only prefill is judged."""

    def __init__(self, profile: Profile, *, output_factor: float = 1.0) -> None:
        self._profile = profile
        self._output_factor = output_factor
        self._held: tuple[Piece, ...] = ()
        self._at_s = 0.0

    def pay(self, request: Sequence[Piece], output_tokens: int, at_s: float) -> RequestCost:
        """Send this request at this second; the cache holds it from then on."""
        profile = self._profile
        length, held = _size(request), _size(self._held)
        is_warm = profile.caches and held >= profile.minimum_tokens and at_s - self._at_s <= profile.life_s
        common = _common(request, self._held) if is_warm else 0
        read = common if common >= profile.minimum_tokens else 0
        read_factor, write_factor = (profile.read_factor, profile.write_factor) if profile.caches else (1.0, 1.0)
        cost = read_factor * read + write_factor * (length - read)
        self._held, self._at_s = tuple(request), at_s
        return RequestCost(cost=cost + self._output_factor * output_tokens, is_rewrite=is_warm and common < held)


def _size(pieces: Sequence[Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _common(one: Sequence[Piece], other: Sequence[Piece]) -> int:
    """Tokens of the pieces that both begin with."""
    total = 0
    for here, there in zip(one, other, strict=False):
        if here.text != there.text:
            break
        total += here.tokens
    return total
