"""What a server makes of texts for a search by meaning.

`providers/embeddings.py` asks; `services/api/embeddings.py` is asked by other programs.
"""

from array import array
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from cortex.ports.model_lists import ModelServer


class EmbeddingRequest(Struct, frozen=True, kw_only=True):
    """A request to one server. `inputs`: texts, or the numbers of their tokens. `dimensions`: None = all."""

    server: ModelServer
    model: str
    inputs: Sequence[str] | Sequence[Sequence[int]]
    dimensions: int | None = None


class Embeddings(Struct, frozen=True, kw_only=True):
    """A vector (of doubles) for each input, in their order, and the tokens that the server counted; 0: it said none."""

    vectors: "tuple[array[float], ...]"
    input_tokens: int


# Raises ProviderError, whose message is for the person: what went wrong, in the server's words.
AskEmbeddings = Callable[[EmbeddingRequest], Awaitable[Embeddings]]
