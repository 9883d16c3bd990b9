"""What a model call costs: by the price typed into the registry, else by public price data, else unknown."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cortex.base import clock
from cortex.base.messages import Usage
from cortex.base.model import OFFLINE, ModelEntry, Price
from cortex.ports.model_lists import ListedModel
from cortex.services.models import price_data
from cortex.services.models.presets import Preset
from cortex.services.models.registry import place_of

_MILLION = 1_000_000
USUAL_PROMPT_TOKENS = 3_000  # the words, a few tools and some of what was said before
USUAL_ANSWER_TOKENS = 300  # about 200 words: nobody knows how long an answer will be


async def price(entry: ModelEntry) -> Price:
    """Dollars for a million tokens of each kind."""
    if entry.price.input_usd is not None:
        return entry.price
    return await asyncio.to_thread(price_data.price, entry.provider, entry.model, entry.base_url)


async def filled(
    models: Sequence[ListedModel], provider: str, base_url: str
) -> tuple[tuple[ListedModel, ...], Mapping[str, Price]]:
    """The models with the context that their list did not say and the public data does; the price of each, by id."""

    def all_of_them() -> tuple[tuple[ListedModel, ...], Mapping[str, Price]]:
        known = {
            model.id: model.price
            if model.price.input_usd is not None
            else price_data.price(provider, model.id, base_url)
            for model in models
        }
        sizes = [model.context_tokens or price_data.context_tokens(provider, model.id, base_url) for model in models]
        return tuple(replace(one, context_tokens=size) for one, size in zip(models, sizes, strict=True)), known

    return await asyncio.to_thread(all_of_them)


async def offered(presets: Sequence[Preset]) -> Sequence[Preset]:
    """The presets with what a message costs there before anything is connected."""

    def all_of_them() -> Sequence[Preset]:
        day, usual = clock.now().date(), (USUAL_PROMPT_TOKENS, USUAL_ANSWER_TOKENS)
        return tuple(
            one
            if one.takes_address
            else replace(one, message_usd=price_data.span_usd(one.provider, one.base_url, usual, day))
            for one in presets
        )

    return await asyncio.to_thread(all_of_them)


async def cost_usd(entry: ModelEntry, usage: Usage) -> float | None:
    """Dollars for this usage; None where no price is known."""
    if entry.price.input_usd is not None:
        return by_price(entry.price, usage)
    return await asyncio.to_thread(price_data.cost_usd, entry.provider, entry.model, entry.base_url, usage)


async def of_draft(entry: ModelEntry, input_tokens: int) -> dict[str, Any]:
    """Return what answers a draft and for about how much: its first request and an answer of usual length.

    `cost_usd`: dollars, None where no price is known. `is_home`: it runs in this house; `is_offline`: it is no AI.
    """
    usage = Usage(input_tokens=input_tokens, output_tokens=USUAL_ANSWER_TOKENS)
    return {
        "model": entry.name,
        "payer": entry.owner,
        "is_home": place_of(entry) == "home",
        "is_offline": entry.provider == OFFLINE.provider,
        "cost_usd": await cost_usd(entry, usage),
    }


def by_price(price: Price, usage: Usage) -> float:
    """Price a usage as typed; a kind of token without a price of its own costs what plain input does."""
    plain = price.input_usd or 0.0
    fresh = usage.input_tokens - usage.cached_tokens - usage.written_tokens
    parts = (
        (fresh, plain),
        (usage.cached_tokens, plain if price.cached_usd is None else price.cached_usd),
        (usage.written_tokens, plain if price.written_usd is None else price.written_usd),
        (usage.output_tokens, price.output_usd or 0.0),
    )
    return sum(tokens * dollars for tokens, dollars in parts) / _MILLION
