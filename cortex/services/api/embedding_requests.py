"""What a program asks to have embedded, by OpenAI's API and by Ollama's. Pure.

Contracts: https://platform.openai.com/docs/api-reference/embeddings/create and
https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings (read 2026-11-27).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from cortex.services.api.requests import BadRequest, WireModel, read_as

MOST_TEXTS = 2_048
MOST_ITEMS = 1_000_000  # texts as numbers of tokens: LangChain sends them so
Tokens = Annotated[list[Annotated[int, Field(ge=0, le=2**31)]], Field(min_length=1, fail_fast=True)]
Texts = Annotated[list[str], Field(min_length=1, max_length=MOST_TEXTS, fail_fast=True)]
TokenTexts = Annotated[list[Tokens], Field(min_length=1, max_length=MOST_TEXTS, fail_fast=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingAsked:
    """What to embed, by which model's name."""

    model: str
    inputs: Sequence[str] | Sequence[Sequence[int]]
    dimensions: int | None = None
    is_base64: bool = False


class _Body(WireModel):
    model: Annotated[str, Field(min_length=1)]
    dimensions: Annotated[int, Field(ge=1, le=100_000)] | None = None


class _OpenAI(_Body):
    input: str | Texts | Tokens | TokenTexts
    encoding_format: Literal["float", "base64"] | None = None


class _Ollama(_Body):
    input: str | Texts = ""
    prompt: str = ""


def read_embedding_request(body: bytes) -> EmbeddingAsked:
    """The body of `POST /v1/embeddings`; UserError says what is wrong with it."""
    request = read_as(_OpenAI, body, items=MOST_ITEMS)
    given = request.input
    inputs: Sequence[str] | Sequence[Sequence[int]]
    if isinstance(given, str):
        inputs = [given]
    elif isinstance(given[0], int):
        inputs = [[number for number in given if isinstance(number, int)]]
    else:
        inputs = given
    return _checked(request, inputs, is_base64=request.encoding_format == "base64")


def read_ollama_embedding_request(body: bytes) -> EmbeddingAsked:
    """The body of Ollama's `POST /api/embed` or `/api/embeddings`; UserError says what is wrong with it."""
    request = read_as(_Ollama, body, items=MOST_ITEMS)
    given = request.input or request.prompt
    return _checked(request, [given] if isinstance(given, str) else given)


def _checked(
    request: _Body, inputs: Sequence[str] | Sequence[Sequence[int]], *, is_base64: bool = False
) -> EmbeddingAsked:
    if not all(inputs):
        raise BadRequest("There is an empty text; each needs at least one character.", field="input")
    return EmbeddingAsked(model=request.model, inputs=inputs, dimensions=request.dimensions, is_base64=is_base64)
