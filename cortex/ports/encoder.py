"""The socket for a sentence model: texts as vectors of what they mean. None is needed; the extra `semantic` brings one.

Implemented by `integrations/sentences.py`, which `compose/` plugs in; plans find it in
`selection/index/sentence_models.py`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # numpy is read with the first use
    import numpy as np
    from numpy.typing import NDArray


class Encoder(Protocol):
    """A sentence model at hand. Equal texts give equal vectors, whatever they are asked together with."""

    @property
    def key(self) -> str:
        """Name it by a digest of model and tokenizer. Vectors of two keys say nothing about each other."""
        ...

    def kept(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Texts that come again, tools and examples: (n, dim) float32, unit rows, each worked out once and kept.

        EncoderFailed while too many of them are still new; they are then being worked out.
        """
        ...

    def asked(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Read what somebody says: (n, dim) float32, unit rows. EncoderFailed past the time limit, for any failure."""
        ...
