"""What a server says of the models it has, whatever the form of its list.

`providers/lists.py` asks and reads; `services/models/connecting.py` fills in prices, shows it and keeps what is chosen.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from cortex.base.address import AddressPolicy
from cortex.base.model import Price


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """One model of a server's list; None where the list does not say. `label`: its name there, "" if it is the id."""

    id: str
    label: str = ""
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    tools: bool | None = None
    sees: bool | None = None
    thinks: bool | None = None
    price: Price = field(default_factory=Price)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    """A server's models that can chat, in its own order, newest first where it says when they came.

    `base_url`: the address that answered, as an entry of the registry needs it. `left_out`: how many do not chat.
    `engine`: ollama, lmstudio or llamacpp, "" where it is none of these.
    """

    models: tuple[ListedModel, ...]
    base_url: str
    left_out: int = 0
    engine: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServer:
    """Where to ask, by which key and under which rule. `provider`: openai or anthropic; base_url "" = the maker's own.

    `ca`: authorities (PEM) to trust besides the usual ones. `limit_s`: seconds for the whole list. `is_brief`: the list
    alone, without what a local server adds elsewhere.
    """

    provider: str
    base_url: str
    ca: str = ""
    key: str = ""
    policy: AddressPolicy
    limit_s: float = 15.0
    is_brief: bool = False


# Raises ProviderError, whose message is for the person: what went wrong, in the server's words, and what to do.
AskList = Callable[[ModelServer], Awaitable[ModelList]]
