"""What models cost, from a table of public price data that `make prices` writes (`tests/bench/price_table.py`).

Works offline and may be behind the providers' own lists; a price typed into the registry outranks it.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from cortex.base import clock
from cortex.base.messages import Usage
from cortex.base.model import Price

# The first line of the table says where it is from and how each provider is found: [id, pattern of its address, clause
# of its other names, ids of providers whose models it has too, count of its own]. Then there is a line for each model,
# provider by provider: [clause of its names, tokens of context, prices, [condition, prices]...]. The last prices whose
# condition holds count: from a date on, or between two times of a day in UTC. Prices: dollars for a million tokens of
# input, output, read from the cache, written to it, and for a thousand requests; one that rises with the length of the
# input is [price, [tokens, price above them]...]. A clause is a mark and a text ("=" is it, "^" begins, "$" ends, "*"
# holds it, "~" fits this pattern) or a list: one of them holds, or, behind "&", all.
SHIPPED = Path(__file__).with_name("prices.json")
_MILLION, _THOUSAND = 1_000_000, 1_000
# A day whose parts OpenRouter and LiteLLM write together and the table with dashes.
_DAY = re.compile(r"(-)(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")


def cost_usd(provider: str, model: str, base_url: str, usage: Usage) -> float | None:
    """US dollars for this usage; None when the data does not know the model at that address."""
    found = _found(provider, model.lower(), base_url)
    prices = None if found is None else _now(found, clock.now())
    if prices is None:
        return None
    plain, output, cached, written, request = (_at(price, usage.input_tokens) for price in _five(prices))
    fresh = usage.input_tokens
    dollars = (output or 0.0) * usage.output_tokens
    for price, tokens in ((cached, usage.cached_tokens), (written, usage.written_tokens)):
        if price is not None:
            fresh -= tokens
            dollars += price * tokens
    if fresh < 0 and plain is not None:  # more from the cache than was sent: nobody knows what that costs
        return None
    return (dollars + (plain or 0.0) * fresh) / _MILLION + (request or 0.0) / _THOUSAND


def context_tokens(provider: str, model: str, base_url: str) -> int | None:
    """Return how much the model takes in, None where the data does not say."""
    found = _found(provider, model.lower(), base_url)
    return None if found is None else found[1]


def price(provider: str, model: str, base_url: str) -> Price:
    """The dollars for a million tokens of each kind; None where unknown. The lowest tier counts."""
    found = _found(provider, model.lower(), base_url)
    prices = None if found is None else _now(found, clock.now())
    if prices is None:
        return Price()
    plain, output, cached, written, _ = (_at(price, 0) for price in _five(prices))
    each = (plain, output, plain if cached is None else cached, plain if written is None else written)
    input_usd, output_usd, cached_usd, written_usd = (round(float(one or 0), 6) for one in each)
    return Price(input_usd=input_usd, output_usd=output_usd, cached_usd=cached_usd, written_usd=written_usd)


@lru_cache(maxsize=32)
def span_usd(provider: str, base_url: str, tokens: tuple[int, int], day: date) -> tuple[float, float] | None:
    """Return what a message of so many tokens in and out costs with most models of a provider on that day.

    The cheapest and the dearest tenth are left out: old ones, and those that nobody chats with.
    """
    place = _by_address(base_url) if base_url else _by_id(provider)
    if place is None:
        return None
    moment = datetime.combine(day, time(12), UTC)
    rows = filter(None, (_now(row, moment) for row in _rows(place)))
    each = [sum(count * (_at(price, 0) or 0) for count, price in zip(tokens, row, strict=False)) for row in rows]
    costs = sorted(one / _MILLION for one in each if one)
    return (costs[len(costs) // 10], costs[len(costs) * 9 // 10]) if costs else None


def _five(prices: list[Any]) -> list[Any]:
    return [*prices, *[None] * (5 - len(prices))]


def _at(price: Any, input_tokens: int) -> float | None:
    """The price for an input of this length."""
    base, *tiers = price if isinstance(price, list) else [price]
    found: float | None = next((above for start, above in reversed(tiers) if input_tokens > start), base)
    return found


def _now(model: list[Any], moment: datetime) -> list[Any] | None:
    """The prices that count at this moment; None where the model has none."""
    _, _, first, *later = model
    found: list[Any] | None = next(
        (prices for condition, prices in reversed(later) if _holds(condition, moment)), first
    )
    return found


def _holds(condition: str, moment: datetime) -> bool:
    start, _, end = condition.partition("/")
    if not end:
        return f"{moment:%Y-%m-%d}" >= start
    time = f"{moment:%H:%M:%S}"
    return start <= time < end if start <= end else time >= start or time < end


@lru_cache(maxsize=1_024)
def _found(provider: str, model: str, base_url: str) -> list[Any] | None:
    """The row of the model, in small letters, at this address or, without one, of this provider."""
    place = _by_address(base_url) if base_url else _by_id(provider.lower().strip())
    if place is None:
        return None
    dashed = _DAY.sub(r"\1\2-\3-\4", model)
    for name in (model, dashed) if dashed != model else (model,):
        for row in _offered(place):
            if _fits(row[0], name):
                return row
    return None


def _offered(place: int) -> Iterator[list[Any]]:
    """The provider's models, then those of the providers that it names."""
    yield from _models(place)
    ids = [each[0] for each in _providers()]
    for other in _providers()[place][3]:
        yield from _models(ids.index(other))


def _by_address(base_url: str) -> int | None:
    return next((at for at, (_, address, *_) in enumerate(_providers()) if re.match(address, base_url)), None)


def _by_id(name: str) -> int | None:
    known = _providers()
    exact = (at for at, (id, *_) in enumerate(known) if id == name)
    other = (at for at, (_, _, names, *_) in enumerate(known) if names and _fits(names, name))
    return next(exact, next(other, None))


def _fits(clause: Any, name: str) -> bool:
    if isinstance(clause, list):
        if clause[0] == "&":
            return all(_fits(each, name) for each in clause[1:])
        return any(_fits(each, name) for each in clause)
    mark, text = clause[0], clause[1:]
    match mark:
        case "=":
            return bool(name == text)
        case "^":
            return name.startswith(text)
        case "$":
            return name.endswith(text)
        case "*":
            return text in name
    return re.search(text, name) is not None


@lru_cache(maxsize=1)
def _providers() -> list[list[Any]]:
    with SHIPPED.open(encoding="utf-8") as file:
        found: list[list[Any]] = json.loads(file.readline())["providers"]
    return found


@lru_cache(maxsize=8)  # the longest takes .7 MB, and one names five others
def _models(place: int) -> list[list[Any]]:
    """The rows of one provider, kept."""
    return _rows(place)


def _rows(place: int) -> list[list[Any]]:
    """The rows of one provider."""
    counts = [each[4] for each in _providers()]
    start = 1 + sum(counts[:place])
    with SHIPPED.open(encoding="utf-8") as file:
        rows: list[list[Any]] = json.loads(f"[{','.join(islice(file, start, start + counts[place]))}]")
    return rows
