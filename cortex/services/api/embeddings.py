"""A program's texts as vectors, made by a server of its person: within the token's budget, and in the usage ledger.

Contracts: https://platform.openai.com/docs/api-reference/embeddings/create and
https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings (read 2026-11-27).
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field

from cortex.base.errors import CortexError
from cortex.base.ids import new_id
from cortex.base.messages import Usage
from cortex.base.model import ModelEntry
from cortex.base.tokens import count
from cortex.ports.model_lists import AskEmbeddings, EmbeddingRequest, Embeddings, ModelServer
from cortex.services.api.model_names import ModelNames
from cortex.services.api.requests import BadRequest, WireModel, read_as
from cortex.services.api.tokens import ApiTokens, Caller
from cortex.services.models.models import Models
from cortex.services.models.prices import cost_usd
from cortex.services.models.profiles import endpoint_of
from cortex.services.runtime import Runtime
from cortex.services.turns.lone_calls import ROUND, LoneCall, LoneCalls
from cortex.storage.rounds import RoundsRepository

MOST_TEXTS = 2_048
MOST_ITEMS = 1_000_000  # texts as numbers of tokens: LangChain sends them so
Tokens = Annotated[list[Annotated[int, Field(ge=0, le=2**31)]], Field(min_length=1, fail_fast=True)]
Texts = Annotated[list[str], Field(min_length=1, max_length=MOST_TEXTS, fail_fast=True)]
TokenTexts = Annotated[list[Tokens], Field(min_length=1, max_length=MOST_TEXTS, fail_fast=True)]


class EmbeddingAsked(Struct, frozen=True, kw_only=True):
    """Texts to embed, by which model's name."""

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


MODEL_CHARACTERS = 80


class OverBudget(CortexError):
    """The token's budget, or another of the person's, has no room for it."""

    status = 429


class ProgramEmbeddings(Struct, frozen=True, kw_only=True):
    """Passes texts on and books what it took."""

    runtime: Runtime
    tokens: ApiTokens
    models: Models
    names: ModelNames
    calls: LoneCalls
    ask: AskEmbeddings

    async def make(self, caller: Caller, asked: EmbeddingAsked) -> Embeddings:
        """The vectors. NotFound where no such model is set up; OverBudget, ProviderError, what a token may not do."""
        entry = await self.names.embedder(caller.user, asked.model)
        call = LoneCall(id=f"api:{new_id()}", role=caller.token.role)
        await self.tokens.begin_call(caller, call, asked.model[:MODEL_CHARACTERS])
        counted = await asyncio.to_thread(_tokens, asked)
        await self._admit(caller, call, entry, counted)
        began_s, found = self.runtime.ticks_s(), None
        try:
            found = await self.ask(await self._request(caller, entry, asked))
            found = replace(found, input_tokens=found.input_tokens or counted)
        finally:
            ms = round((self.runtime.ticks_s() - began_s) * 1000)
            await self._book(caller, call, replace(entry, name=entry.name if found else asked.model), found, ms)
        return found

    async def _admit(self, caller: Caller, call: LoneCall, entry: ModelEntry, tokens: int) -> None:
        """Hold what it takes; OverBudget where that is not to be had. Another model's vectors would mean nothing."""
        budgets, role = self.calls.budgets, await self.calls.roles.role(caller.user, call.role)
        limits = await budgets.limits(caller.user, call, role)
        names, why = await budgets.open_models(caller.user, limits, (entry.name,))
        if names:
            asking = replace(entry, max_output_tokens=0)
            admission = await budgets.admit(caller.user, call, limits, ROUND, asking, tokens)
            why = "" if admission.action == "go" else admission.text
        if why:
            await self.runtime.db.repository(RoundsRepository, caller.user.id).refused(call.id, ROUND)
            raise OverBudget(why)

    async def _book(self, caller: Caller, call: LoneCall, entry: ModelEntry, found: Embeddings | None, ms: int) -> None:
        """Book what it took; what it held is free. A failure stands under the asked name: no chat model failed."""
        rounds = self.runtime.db.repository(RoundsRepository, caller.user.id)
        if found is None:
            await rounds.failed(call.id, ROUND, entry.name[:MODEL_CHARACTERS], ms)
            return
        usage = Usage(input_tokens=found.input_tokens)
        cost = await cost_usd(entry, usage)
        await rounds.answered(call.id, ROUND, entry.name, usage, cost, ms=ms, endpoint=endpoint_of(entry), paid_by="")

    async def _request(self, caller: Caller, entry: ModelEntry, asked: EmbeddingAsked) -> EmbeddingRequest:
        key = await self.models.store.key(caller.user.id, entry.secret)
        policy = self.models.policy(caller.user, entry.base_url)
        server = ModelServer(
            provider=entry.provider, base_url=entry.base_url, ca=entry.ca, key=key or "",
            engine=entry.engine, policy=policy, limit_s=entry.timeout_s,
        )  # fmt: skip
        return EmbeddingRequest(server=server, model=entry.model, inputs=asked.inputs, dimensions=asked.dimensions)


def _tokens(asked: EmbeddingAsked) -> int:
    return sum(count(text) if isinstance(text, str) else len(text) for text in asked.inputs)
