"""What models cost, from the public price data that comes with genai-prices. Loaded when a price is first asked for.

Works offline and may be behind the providers' own lists; a price typed into the registry outranks it.
"""

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot

from cortex.base.messages import Usage
from cortex.base.model import Price

_MILLION = 1_000_000
_PROVIDERS = {"openai": "openai", "anthropic": "anthropic"}


def cost_usd(provider: str, model: str, base_url: str, usage: Usage) -> float | None:
    """US dollars for this usage; None when the data does not know the model at that address."""
    priced = PricedUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.written_tokens,
    )
    try:
        if base_url:
            found = calc_price(priced, model, provider_api_url=base_url)
        else:
            found = calc_price(priced, model, provider_id=_PROVIDERS.get(provider, provider))
    except (LookupError, ValueError):
        return None
    return float(found.total_price)


def context_tokens(provider: str, model: str, base_url: str) -> int | None:
    """How much the model takes in, None where the data does not say."""
    provider_id = None if base_url else _PROVIDERS.get(provider, provider)
    try:
        _, found = get_snapshot().find_provider_model(model, None, provider_id, base_url or None)
    except (LookupError, ValueError):
        return None
    return found.context_window


def price(provider: str, model: str, base_url: str) -> Price:
    """The dollars for a million tokens of each kind; None where unknown. The lowest tier counts."""

    def each(usage: Usage) -> float | None:
        cost = cost_usd(provider, model, base_url, usage)
        return None if cost is None else round(cost * 1_000, 6)

    # A thousand tokens at a time: some models charge more from a certain length of the request on.
    thousand = _MILLION // 1_000
    return Price(
        input_usd=each(Usage(input_tokens=thousand)),
        output_usd=each(Usage(output_tokens=thousand)),
        cached_usd=each(Usage(input_tokens=thousand, cached_tokens=thousand)),
        written_usd=each(Usage(input_tokens=thousand, written_tokens=thousand)),
    )
