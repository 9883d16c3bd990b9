"""What a server says of the models it has, whatever the form of its list; and what it makes of texts for a search.

`providers/lists.py` asks and reads; `services/models/connecting.py` fills in prices, shows it and keeps what is chosen.
"""

import re
from array import array
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct, field

from cortex.base.address import AddressPolicy
from cortex.base.model import Price

# Servers that were started with a file or a folder call the model by its path, or by the name of the file.
_PATH = re.compile(r"[/\\]|(?:~|\.{1,2}|[A-Za-z]:)[\\/]|.*[\\/].*\.(?:gguf|safetensors)$|[^/\\]+\.gguf$", re.IGNORECASE)
LEAST_TOKENS, MOST_TOKENS = 256, 20_000_000  # of a window
_TAIL = re.compile(r"(?:-\d{5}-of-\d{5})?\.(?:gguf|safetensors)$", re.IGNORECASE)
_CACHED = re.compile(r"models--([\w.-]+?)--([\w.-]+)")  # where Hugging Face's programs keep the model org/name


class ListedModel(Struct, frozen=True, kw_only=True):
    """One model of a server's list; None where the list does not say. `label`: its name there, "" if it is the id.

    `id`: what it is asked for by, which may be the path of a file on the server.
    """

    id: str
    label: str = ""
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    tools: bool | None = None
    sees: bool | None = None
    thinks: bool | None = None
    price: Price = field(default_factory=Price)

    @property
    def name(self) -> str:
        """Return what people call it: its id, or of a path the last part, without the ending of a file."""
        return name_of(self.id)


def name_of(id: str) -> str:
    """The name of the model of this id, as `ListedModel.name`."""
    if not is_path(id):
        return id
    *folders, last = [part for part in re.split(r"[\\/]+", id) if part] or [id]
    cached = [found for folder in folders if (found := _CACHED.fullmatch(folder))]
    if cached and not _TAIL.search(last):  # a folder of the cache is named after a commit
        return f"{cached[-1][1]}/{cached[-1][2]}"
    return _TAIL.sub("", last) or last


def is_path(id: str) -> bool:
    """Tell whether this is where a model lies on its server's disk."""
    return _PATH.match(id) is not None


class ModelList(Struct, frozen=True, kw_only=True):
    """A server's models that can chat, in its own order, newest first where it says when they came.

    `base_url`: the address that answered, as an entry of the registry needs it. `left_out`: how many do not chat.
    `engine`: the row of `providers/servers.py` that it was found to be, where its address does not say it; else "".
    """

    models: tuple[ListedModel, ...]
    base_url: str
    left_out: int = 0
    engine: str = ""


class ModelServer(Struct, frozen=True, kw_only=True):
    """Where to ask, by which key and under which rule. `provider`: openai or anthropic; base_url "" = the maker's own.

    `ca`: authorities (PEM) to trust besides the usual ones. `engine`: what server it is, where that is known and its
    address does not say it. `limit_s`: seconds for the whole list. `is_brief`: the list
    alone, without what a local server adds elsewhere.
    """

    provider: str
    base_url: str
    ca: str = ""
    key: str = ""
    engine: str = ""
    policy: AddressPolicy
    limit_s: float = 15.0
    is_brief: bool = False


# Raises ProviderError, whose message is for the person: what went wrong, in the server's words, and what to do.
AskList = Callable[[ModelServer], Awaitable[ModelList]]


class ServerFacts(Struct, frozen=True, kw_only=True):
    """A server's word on one model as it is served now; None where it does not say.

    `engine`: as in ModelList. `context_tokens`: what one request may take in. `tools`: whether the model's template
    shows it the tools of a request; one that does not drops them silently. `slots`: how many requests it answers at
    the same time.
    """

    engine: str
    context_tokens: int | None = None
    tools: bool | None = None
    slots: int | None = None

    @property
    def window_tokens(self) -> int | None:
        """Its context, where that can be true: what is said beyond the bounds is an error, or of no use."""
        told = self.context_tokens
        return told if told is not None and LEAST_TOKENS <= told <= MOST_TOKENS else None


# Of a server and the model's id there: what it says now, by one small request or two; None where it says nothing.
# Raises nothing.
LookAtModel = Callable[[ModelServer, str], Awaitable[ServerFacts | None]]


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
