"""What can be said of a model server: how it is reached, what it takes, gives and says. The rows are `servers.py`."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from cortex.base.errors import RejectionKind

Protocol = Literal["chat", "responses", "messages"]

# Forms of call ids: any text; at most 40 characters; letters, digits, `_` and `-`, at most 64; exactly nine letters
# and digits.
CallIds = Literal["any", "short", "safe", "nine"]

# Orders of speakers: any; user and assistant take turns (two of one speaker are joined, the first is the user); the
# same, and behind a tool's result the assistant speaks first.
Order = Literal["any", "turns", "strict"]


class ServerRow(Struct, frozen=True, kw_only=True):
    """A row. What is not said is what most servers of the protocol do.

    Place. `id`, `label`: for the Models page. `base_url`: "" where there is no fixed one, and then an `example`.
    `hosts`: a pattern of its hosts. `keys_url`: where a key is made. `is_local`: people run it themselves, mostly
    without a key. `protocols`: that it speaks, the usual one first. `headers`: extra ones; `key_header`: the one that
    holds the key, "" = `Authorization: Bearer`; `headers_of` puts them together for every request. `path`: that of the
    API at any of its hosts, where people copy other ones. `query`: what an address with this path is asked with.

    History. `call_ids`, `order`: what it takes. `output_limit`: the name of that parameter. `names_results`: whether
    the result of a call carries its name. `omits`: parameters that it refuses, of those that Cortex sends by itself
    (`parallel_tool_calls`, `stream_options`, `tool_choice=required`).
    `reasoning`: fields of an answer that hold its reasoning, in the order in which they are looked for; `goes_back`:
    those of them that it wants back in the history, unread. What it says of a call goes back with the call, always.
    `stand_ins`: what an answer must have and another model's has not: a pattern of models that want it, the dotted
    place (under `calls.` that in its first call) and what is put there.

    Answers. `calls`: how they arrive in a stream, in `pieces` or each `whole`; "" where nobody says it.
    `mixes_calls`: beside calls as they should be, it passes on some as the text in which its model wrote them.
    `cached`, `written`: where in `usage` the tokens that were read from the cache, and written to it, stand. `says`:
    patterns of the words with which it refuses, looked for in any case; their groups are what the words name: limits in
    tokens (`window`, `output`), a tool or parameter (`name`), the place of a tool (`index`).

    List. `models_at`: where it is, from the address on; the first that is there counts. `more_at`: pages that say more
    of its models, from an address that ends in /v1. `sees`: a pattern of the models that take pictures, where no list
    says it.

    `note`: what else a person should know, for docs/models.md. `sources`: addresses of the documents; `read`: when,
    as YYYY-MM-DD.
    """

    id: str
    label: str
    base_url: str = ""
    example: str = "https://host/v1"
    hosts: str = ""
    keys_url: str = ""
    is_local: bool = False
    protocols: tuple[Protocol, ...] = ("chat",)
    headers: Mapping[str, str] = field(default_factory=dict)
    key_header: str = ""
    path: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    call_ids: CallIds = "any"
    order: Order = "turns"
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    names_results: bool = False
    omits: frozenset[str] = frozenset()
    mixes_calls: bool = False
    reasoning: tuple[str, ...] = ("reasoning_content", "reasoning")
    goes_back: tuple[str, ...] = ()
    stand_ins: tuple[tuple[str, str, str], ...] = ()
    calls: Literal["", "pieces", "whole"] = ""
    cached: tuple[str, ...] = ("prompt_tokens_details.cached_tokens",)
    written: tuple[str, ...] = ("prompt_tokens_details.cache_write_tokens",)
    says: Mapping[RejectionKind, str] = field(default_factory=dict)
    models_at: tuple[str, ...] = ("models",)
    more_at: tuple[str, ...] = ()
    sees: str = ""
    note: str = ""
    sources: tuple[str, ...] = ()
    read: str = ""
