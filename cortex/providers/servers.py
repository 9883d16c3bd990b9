"""The one table of model servers: what each takes, gives and says, by its own documents. A new server is a row.

Read by the wire (`chat.py`, `responses.py`, `messages.py`), by what is refused (`refusals.py`), by the lists of models
(`lists.py`) and by the Models page, which offers the rows that have an address. Each row names its sources and when
they were read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from cortex.base.errors import RejectionKind

Protocol = Literal["chat", "responses", "messages"]

# Forms of call ids: any text; letters, digits, `_` and `-`, at most 64; exactly nine letters and digits.
CallIds = Literal["any", "safe", "nine"]

# Orders of speakers: any; user and assistant take turns (two of one speaker are joined, the first is the user); the
# same, and behind a tool's result the assistant speaks first.
Order = Literal["any", "turns", "strict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """A row. What is not said is what most servers of the protocol do.

    `id`, `label`: for the Models page. `base_url`: "" where there is no fixed one. `hosts`: a pattern of its hosts.
    `is_local`: people run it themselves, mostly without a key.
    `protocols`: that it speaks, the usual one first. `headers`: extra ones. `key_header`: what carries the key as it
    is, "" where it is a bearer's.
    `call_ids`, `order`: what it takes. `system`: who gives the instructions. `output_limit`: the name of that
    parameter. `names_results`: whether the result of a call carries its name. `omits`: parameters that it
    refuses, of those that Cortex sends by itself
    (`parallel_tool_calls`, `stream_options`, `tool_choice`).
    `reasoning`: fields of an answer that hold its reasoning, in the order in which they are looked for; `goes_back`:
    those of them that it wants back in the history, unread; `goes_back_in`: of which answers: `all` of them, those
    of the `turn` that is going on, or those with `calls`.
    `cached`: where in `usage` the cached tokens stand, dotted. `says`: patterns of the words with which it refuses,
    looked for in any case; what no row says is looked up in `SAYS`.
    `sources`: addresses of the documents; `read`: when, as YYYY-MM-DD.
    """

    id: str
    label: str
    base_url: str = ""
    hosts: str = ""
    keys_url: str = ""
    is_local: bool = False
    protocols: tuple[Protocol, ...] = ("chat",)
    headers: Mapping[str, str] = field(default_factory=dict)
    key_header: str = ""
    call_ids: CallIds = "any"
    order: Order = "turns"
    system: Literal["system", "developer"] = "system"
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    names_results: bool = False
    omits: frozenset[str] = frozenset()
    reasoning: tuple[str, ...] = ("reasoning_content", "reasoning")
    goes_back: tuple[str, ...] = ()
    goes_back_in: Literal["all", "turn", "calls"] = "all"
    cached: tuple[str, ...] = ("prompt_tokens_details.cached_tokens",)
    says: Mapping[RejectionKind, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    read: str = ""


_ANY_REASONING = ("reasoning_content", "reasoning_details", "reasoning")
OTHER = ServerRow(id="other", label="Other", reasoning=_ANY_REASONING, goes_back=(*_ANY_REASONING, "extra_content"))

SERVERS: tuple[ServerRow, ...] = (
    ServerRow(
        id="openrouter",
        label="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        hosts=r"(^|\.)openrouter\.ai$",
        keys_url="https://openrouter.ai/settings/keys",
        reasoning=("reasoning_details", "reasoning"),
        goes_back=("reasoning_details",),
    ),
    ServerRow(
        id="openai",
        label="OpenAI",
        base_url="https://api.openai.com/v1",
        hosts=r"(^|\.)openai\.com$",
        keys_url="https://platform.openai.com/api-keys",
        protocols=("chat", "responses"),
        output_limit="max_completion_tokens",
    ),
    ServerRow(
        id="anthropic",
        label="Anthropic",
        base_url="https://api.anthropic.com",
        hosts=r"(^|\.)anthropic\.com$",
        keys_url="https://console.anthropic.com/settings/keys",
        protocols=("messages",),
        call_ids="safe",
    ),
    ServerRow(
        id="mistral",
        label="Mistral",
        base_url="https://api.mistral.ai/v1",
        hosts=r"(^|\.)mistral\.ai$",
        keys_url="https://console.mistral.ai/api-keys",
        call_ids="nine",
        order="strict",
    ),
)


def server_of(base_url: str, protocol: Protocol = "chat", *, engine: str = "") -> ServerRow:
    """The row of this address, by its host or by what the server called itself (`engine`); `OTHER` without one.

    `base_url` "": the maker's own, OpenAI's or Anthropic's by the protocol.
    """
    if not base_url:
        return by_id("anthropic" if protocol == "messages" else "openai")
    host = (urlsplit(base_url).hostname or "").lower()
    found = next((row for row in SERVERS if row.hosts and re.search(row.hosts, host)), None)
    return found or by_id(engine)


def by_id(server_id: str) -> ServerRow:
    """The row of this id; `OTHER` without one."""
    return next((row for row in SERVERS if row.id == server_id), OTHER)
