"""The table of prices says what the price data says that it was made from, for every model and any usage."""

from collections.abc import Iterator
from typing import Any

import pytest
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from genai_prices.data import providers
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ClauseAnd, ClauseOr, ClauseRegex, ModelInfo

from cortex.base.messages import Usage
from cortex.base.model import ModelEntry, Price
from cortex.services.models import price_data, prices
from tests.bench import price_table

USAGES = (
    Usage(input_tokens=1_000, output_tokens=100),
    Usage(input_tokens=150_000, output_tokens=3_000, cached_tokens=100_000, written_tokens=2_000),
    Usage(input_tokens=300_000, output_tokens=3_000, cached_tokens=300_000),
    Usage(input_tokens=600_000, written_tokens=600_000),
    Usage(output_tokens=7),
    Usage(input_tokens=10, cached_tokens=20),
    Usage(),
)
ADDRESSES = (
    "https://api.openai.com/v1",
    "https://openrouter.ai/api/v1",
    "https://mine.openai.azure.com/openai",
    "https://generativelanguage.googleapis.com/v1beta/openai",
    "https://router.huggingface.co/novita/v1",
    "https://bedrock-runtime.us-east-1.amazonaws.com/model",
    "http://localhost:11434/v1",
)
MODELS = (
    "gpt-5-mini",
    "openai/GPT-5",
    "gpt-5.2-20251211",
    "claude-sonnet-4-5-20250929",
    "anthropic.claude-3-5-sonnet-20241022-v2:0",
    "models/gemini-2.5-flash",
    "deepseek/deepseek-chat",
    "nobody-knows",
    "",
)


def names(clause: Any) -> Iterator[str]:
    """A name for each text that a clause looks for."""
    match clause:
        case ClauseOr(clauses):
            yield from (name for each in clauses for name in names(each))
        case ClauseAnd(clauses):
            yield "-".join(name for each in clauses for name in names(each))
        case ClauseRegex():
            pass
        case _:
            (text,) = vars(clause).values()
            yield from (text, f"{text}-20251211", f"x/{text}")


def by_the_data(place: dict[str, str], model: str, usage: Usage) -> float | None:
    priced = PricedUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.written_tokens,
    )
    try:
        return float(calc_price(priced, model, **place).total_price)  # type: ignore[call-overload]
    except (LookupError, ValueError):
        return None


def window_by_the_data(place: dict[str, str], model: str) -> int | None:
    try:
        found = get_snapshot().find_provider_model(model, None, place.get("provider_id"), place.get("provider_api_url"))
    except LookupError:
        return None
    return found[1].context_window


def assert_same(place: dict[str, str], model: str) -> None:
    where = (place.get("provider_id", "openai"), model, place.get("provider_api_url", ""))
    here = [price_data.cost_usd(*where, usage) for usage in USAGES]
    there = [by_the_data(place, model, usage) for usage in USAGES]
    assert here == [one if one is None else pytest.approx(one, rel=1e-6) for one in there], where
    assert price_data.context_tokens(*where) == window_by_the_data(place, model), where


def test_the_table_is_what_make_prices_would_write() -> None:
    assert price_data.SHIPPED.read_text(encoding="utf-8") == price_table.table()


@pytest.mark.parametrize("step", [pytest.param(1, id="all", marks=pytest.mark.full), pytest.param(40, id="some")])
def test_each_model_costs_and_takes_in_what_the_data_says(step: int) -> None:
    every: list[tuple[str, ModelInfo]] = [(provider.id, model) for provider in providers for model in provider.models]
    for provider, model in every[::step]:
        for name in {model.id, f"{model.id}-preview", *names(model.match)}:
            assert_same({"provider_id": provider}, name)


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_finds_what_the_data_finds_there(address: str) -> None:
    for model in MODELS:
        assert_same({"provider_api_url": address}, model)


def test_the_lowest_tier_is_the_price_that_is_shown_and_a_request_is_no_token() -> None:
    shown = price_data.price("anthropic", "claude-opus-4-6", "")
    assert shown == Price(input_usd=5.0, output_usd=25.0, cached_usd=0.5, written_usd=6.25)
    assert price_data.price("perplexity", "sonar", "") == Price(
        input_usd=1.0, output_usd=1.0, cached_usd=1.0, written_usd=1.0
    )
    assert price_data.price("openai", "gpt-5", "http://localhost:1234/v1") == Price()


async def test_a_price_that_was_typed_goes_before_the_table() -> None:
    typed = ModelEntry(name="x", provider="openai", model="gpt-5", price=Price(input_usd=3.0))
    assert await prices.cost_usd(typed, Usage(input_tokens=1_000_000)) == 3.0
    assert await prices.price(typed) == Price(input_usd=3.0)


@pytest.mark.parametrize(("model", "is_home"), [("qwen3:4b", True), ("gpt-oss:120b-cloud", False)])
async def test_a_model_that_a_local_server_passes_on_is_not_at_home(model: str, is_home: bool) -> None:
    entry = ModelEntry(name="m", provider="openai", model=model, base_url="http://127.0.0.1:11434/v1")
    assert (await prices.of_draft(entry, 10))["is_home"] == is_home
