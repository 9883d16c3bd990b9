"""Makes `services/models/prices.json` from the price data of genai-prices: `make prices`, after another version of it.

Which models cost what is kept; texts, other kinds of units (pictures, audio, searches) and batch prices are left out.
"""

import json
from importlib.metadata import version
from typing import Any

from genai_prices.data import providers
from genai_prices.types import (
    ClauseAnd,
    ClauseContains,
    ClauseEndsWith,
    ClauseEquals,
    ClauseOr,
    ClauseRegex,
    ClauseStartsWith,
    ModelInfo,
    ModelPrice,
    Provider,
    StartDateConstraint,
    TieredPrices,
    TimeOfDateConstraint,
)

from cortex.services.models.price_data import SHIPPED

KEPT = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "requests_kcount")
# Of other units than the tokens that Cortex counts; a key that is in neither list stops the making.
LEFT_OUT = ("audio", "image", "video", "document", "searches", "messages", "mchars", "1h", "reasoning", "citation")
HEAD = {
    "about": "What models cost, by the address of their provider. Made by `make prices`; services/models/price_data.py "
    "says what a line holds.",
    "source": f"genai-prices {version('genai-prices')}, https://github.com/pydantic/genai-prices",
    "licence": "MIT, Copyright (c) Pydantic Services Inc. 2025 to present; its permission notice is that of LICENSE.",
}


def table() -> str:
    """The file: a line of facts, with how each provider is found, then a line for each of their models."""
    lines: list[Any] = [HEAD | {"providers": [_found_by(each) for each in providers]}]
    lines += [_row(model) for each in providers for model in each.models]
    return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)


def _found_by(provider: Provider) -> list[Any]:
    known = None if provider.provider_match is None else _clause(provider.provider_match)
    return [provider.id, provider.api_pattern, known, provider.fallback_model_providers or [], len(provider.models)]


def _row(model: ModelInfo) -> list[Any]:
    if isinstance(model.prices, ModelPrice):
        return [_clause(model.match), model.context_window, _prices(model.prices)]
    first = _prices(model.prices[0].prices) if model.prices else None
    later = [[_condition(each.constraint), _prices(each.prices)] for each in model.prices[1:]]
    return [_clause(model.match), model.context_window, first, *later]


def _clause(clause: Any) -> str | list[Any]:
    match clause:
        case ClauseEquals(text):
            return f"={text.lower()}"
        case ClauseStartsWith(text):
            return f"^{text.lower()}"
        case ClauseEndsWith(text):
            return f"${text.lower()}"
        case ClauseContains(text):
            return f"*{text.lower()}"
        case ClauseRegex(text):
            return f"~{text}"
        case ClauseOr(clauses):
            return [_clause(each) for each in clauses]
        case ClauseAnd(clauses):
            return ["&", *(_clause(each) for each in clauses)]
    raise ValueError(f"Unknown kind of clause: {clause!r}")


def _condition(constraint: Any) -> str:
    match constraint:
        case None:
            return ""
        case StartDateConstraint(day):
            return day.isoformat()
        case TimeOfDateConstraint(start, end):
            if start.utcoffset() or end.utcoffset():
                raise ValueError(f"Not in UTC: {constraint!r}")
            return f"{start:%H:%M:%S}/{end:%H:%M:%S}"
    raise ValueError(f"Unknown kind of condition: {constraint!r}")


def _prices(prices: ModelPrice) -> list[Any]:
    known = {key: value for key, value in prices.__dict__.items() if value is not None}
    strange = [key for key in known if key not in KEPT and not any(part in key for part in LEFT_OUT)]
    if strange:
        raise ValueError(f"Unknown units: {strange}")
    found = [_price(known.get(key)) for key in KEPT]
    while found and found[-1] is None:
        found.pop()
    return found


def _price(price: Any) -> Any:
    if isinstance(price, TieredPrices):
        return [_number(price.base), *([tier.start, _number(tier.price)] for tier in price.tiers)]
    return None if price is None else _number(price)


def _number(price: Any) -> float | int:
    return int(price) if price == int(price) else round(float(price), 9)


if __name__ == "__main__":
    SHIPPED.write_text(table(), encoding="utf-8")
