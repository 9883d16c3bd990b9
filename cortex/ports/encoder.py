"""The socket for a sentence model: texts as vectors of what they mean. None is needed; the extra `semantic` brings one.

Implemented by `integrations/sentences.py`, which `compose/` plugs in; plans find it in
`selection/index/sentence_models.py`.
"""

from collections.abc import Sequence
from typing import Protocol

Vector = Sequence[float]  # of length 1


class Encoder(Protocol):
    """A sentence model at hand. Equal texts give equal vectors, whatever they are asked together with."""

    @property
    def key(self) -> str:
        """Name it by a digest of model and tokenizer. Vectors of two keys say nothing about each other."""
        ...

    def kept(self, texts: Sequence[str]) -> Sequence[Vector]:
        """A vector a text, of texts that come again: tools and examples, each worked out once and kept.

        EncoderFailed while too many of them are still new; they are then being worked out.
        """
        ...

    def asked(self, texts: Sequence[str]) -> Sequence[Vector]:
        """A vector a text, of what somebody says. EncoderFailed past the time limit, for any failure."""
        ...
