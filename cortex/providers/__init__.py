"""One file per kind of model endpoint, loaded when the first model of that kind is asked.

`connect(entry, secret)`, `list_models(server)` and `embed(request)` are the only doors; compose hands them to services.
Nothing heavy is imported with this package.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from cortex.base import scan, tokens
from cortex.base.address import PUBLIC, AddressPolicy
from cortex.base.clock import now
from cortex.base.errors import UserError
from cortex.base.model import ModelEntry
from cortex.base.trust import certificates
from cortex.ports.loop import Provider
from cortex.ports.model_lists import (
    AskEmbeddings,
    AskList,
    EmbeddingRequest,
    Embeddings,
    LookAtModel,
    ModelList,
    ModelServer,
    ServerFacts,
)
from cortex.ports.schedule import Timings


class ProviderContext(Struct, frozen=True, kw_only=True):
    """The parts of the server that a provider needs.

    `policy`: where its requests may go. `count`: tokens of a text. `chunk_delay_s`: the pause between two pieces of
    an answer of the offline model. `connect_s`, `first_s`, `between_s`: limits in seconds for opening a connection,
    for the first piece of an answer and for the silence between two; None takes the entry's.
    `timings`: reads times in words for the offline model, which finds none without it.
    """

    policy: AddressPolicy = PUBLIC
    count: Callable[[str], int] = tokens.count
    clock: Callable[[], datetime] = now
    chunk_delay_s: float = 0.02
    connect_s: float = 10.0
    first_s: float | None = None
    between_s: float | None = None
    timings: Timings | None = None


def connect(entry: ModelEntry, secret: str | None = None, surroundings: ProviderContext | None = None) -> Provider:
    """The provider of this entry; UserError when there is no such kind.

    A kind is a module of this package with a function `connect(entry, secret, surroundings) -> Provider`.
    """
    if entry.provider in scan.modules(__name__):
        module = scan.load(f"{__name__}.{entry.provider}")
        build: Callable[[ModelEntry, str | None, ProviderContext], Provider] | None = getattr(module, "connect", None)
        if build is not None:
            return build(entry, secret, surroundings or ProviderContext())
    raise UserError(f"Unknown API type {entry.provider!r}. Choose another one on the Models page.")


def load_ahead() -> None:
    """Load what most models are asked through, .1 s of processor: in a quiet moment it costs nobody's time."""
    scan.load(f"{__name__}.openai")
    certificates()


async def list_models(server: ModelServer) -> ModelList:
    """The server's models; ProviderError, for the person, when it gives no list."""
    ask: AskList = (await asyncio.to_thread(scan.load, f"{__name__}.lists")).ask
    return await ask(server)


async def look_at_model(server: ModelServer, model: str) -> ServerFacts | None:
    """Return what the server says of this model as it is served now; None where it says nothing."""
    look: LookAtModel = (await asyncio.to_thread(scan.load, f"{__name__}.looks")).look
    return await look(server, model)


async def embed(request: EmbeddingRequest) -> Embeddings:
    """The vectors that the server makes; ProviderError, for the person, when it makes none."""
    ask: AskEmbeddings = (await asyncio.to_thread(scan.load, f"{__name__}.embeddings")).embeddings
    return await ask(request)
