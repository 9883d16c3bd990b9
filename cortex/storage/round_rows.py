"""Rows of the ledger of rounds as values, and a receipt as figures of it. No query: those are in `rounds.py`."""

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from cortex.base.role import Channel

State = Literal["held", "planned", "answered", "refused", "failed"]
CUTS = {"gate": "cut_role", "mode": "cut_mode", "budget": "cut_budget", "form": "cut_form", "compact": "cut_form"}
META = "meta"


class RoundRow(Struct, frozen=True, kw_only=True):
    """A model call.

    Tokens of tools: `total` = all that are ready in full, `sent` of them, `extra` = the way back and the catalog,
    `cut_*` = what was left out and by what. `cost_usd` None = price unknown; `cache`: see
    `services/models/cache_misses.py`. `paid_by`: the account whose shared model it was, "" for the person's own.
    """

    turn_id: str
    round: int
    conversation_id: str
    created_at: datetime
    state: State
    role: str
    channel: Channel
    job_id: str
    model: str
    endpoint: str
    paid_by: str
    total_tokens: int
    sent_tokens: int
    extra_tokens: int
    cut_role: int
    cut_mode: int
    cut_choice: int
    cut_budget: int
    cut_form: int
    request_tokens: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    written_tokens: int
    cost_usd: float | None
    ms: int | None
    cache: str
    idle_s: float | None
    kept_tokens: int
    tools_digest: str
    system_digest: str
    history: str
    sent: dict[str, Any]


class Spent(Struct, frozen=True, kw_only=True):
    """A sum over rounds: tokens in and out, dollars where the price is known, and how many rounds have none.

    `held_*`: what calls that are under way may take at most.
    """

    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    held_tokens: int = 0
    held_usd: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        """Both together."""
        return Spent(**{name: getattr(self, name) + getattr(other, name) for name in _SPENT})


_SPENT = ("tokens", "usd", "unpriced", "held_tokens", "held_usd")


class SpentBy(Struct, frozen=True, kw_only=True):
    """The calls of one person in one role, for one job and with one model, summed; the last three may be ""."""

    owner_id: str
    role: str
    job_id: str
    model: str
    spent: Spent


class Borrowed(Struct, frozen=True, kw_only=True):
    """One person's use of one shared model; `model` is its name as the person has it."""

    person_id: str
    model: str
    rounds: int
    tokens: int
    usd: float
    unpriced: int


class RoundBefore(Struct, frozen=True, kw_only=True):
    """The last answered request of a conversation, as far as a cache is concerned. `is_replaced`: its turn was."""

    created_at: datetime
    model: str
    input_tokens: int
    tools_digest: str
    system_digest: str
    history: str
    is_replaced: bool


class CacheSample(Struct, frozen=True, kw_only=True):
    """A provider's report on a request whose beginning it had seen before, whole."""

    idle_s: float
    kept_tokens: int
    cached_tokens: int


def figures(receipt: dict[str, Any]) -> dict[str, int]:
    """The tool tokens of a receipt as the ledger has them."""
    found = {name: 0 for name in RoundRow.__struct_fields__ if name.startswith("cut_")}
    for stage, tokens in receipt.get("left_out", {}).items():
        found[CUTS.get(stage, "cut_choice")] += tokens
    sent = receipt.get("sent", ())
    meta = sum(one["tokens"] for one in sent if one["category"] == META)
    tools = sum(one["tokens"] for one in sent) - meta
    return {
        **found,
        "total_tokens": receipt.get("total_tokens", 0),
        "sent_tokens": tools + receipt.get("notes_tokens", 0),
        "extra_tokens": meta + receipt.get("catalog_tokens", 0),
    }
