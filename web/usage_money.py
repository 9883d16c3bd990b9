"""Sums up what the usage page opens with: the money of a time, or its messages where nothing has a price.

Who and what took it too. Pure, from the same view as the tables of `web/usage_tables.py`.
"""

import calendar
from collections.abc import Sequence
from datetime import date

from msgspec import Struct

from cortex.services.usage.budget_admin import BudgetStanding
from cortex.services.usage.usage import UsageRow, View
from web.plots import Plot, Series, stacked
from web.usage_tables import dollars, short

BARS_MOST, LIMITS_MOST = 8, 3
PACE_FROM_DAYS = 3  # a pace read off one or two days says nothing


class MoneyBar(Struct, frozen=True, kw_only=True):
    """One person or model: what it took, and its share of the largest, in percent."""

    label: str
    amount: str
    percent: float


class Money(Struct, frozen=True, kw_only=True):
    """The page's first part. `figure`: dollars, or messages where nothing has a price (`is_priced` False).

    pace: what the month will come to, "" where that cannot be told. limits: the budgets in dollars, of today.
    free: model calls that cost nothing, of `calls`.
    """

    title: str
    figure: str
    is_priced: bool
    pace: str
    limits: tuple[MoneyBar, ...]
    plot: Plot | None
    people: tuple[MoneyBar, ...]
    models: tuple[MoneyBar, ...]
    free: int
    calls: int


def money(view: View, standings: Sequence[BudgetStanding], *, is_month: bool) -> Money:
    """The figure, the pace and the bars of this view."""
    spent, last = view.whole.cost_usd, view.days[-1][0]
    is_priced = spent > 0
    free = sum(row.sum.rounds for row in view.models if not row.sum.cost_usd and not row.sum.unpriced)
    return Money(
        title=f"{last:%B}" if is_month else "",
        figure=dollars(spent) if is_priced else f"{view.turns:,}",
        is_priced=is_priced,
        pace=_pace(spent, last) if is_month and is_priced else "",
        limits=_limits(standings),
        plot=_plot(view, is_priced),
        people=_bars(view.persons, is_priced),
        models=_bars(view.models, is_priced),
        free=free,
        calls=view.whole.rounds,
    )


def _pace(spent: float, today: date) -> str:
    if today.day < PACE_FROM_DAYS:
        return ""
    return dollars(spent / today.day * calendar.monthrange(today.year, today.month)[1])


def _limits(standings: Sequence[BudgetStanding]) -> tuple[MoneyBar, ...]:
    """Return how much of each day's dollars is gone, the fullest first."""
    found = [
        MoneyBar(
            label=_whose(one),
            amount=f"{dollars(one.spent.usd)} of {dollars(one.budget.limit_usd)}",
            percent=min(100.0, 100 * one.spent.usd / one.budget.limit_usd) if one.budget.limit_usd else 100.0,
        )
        for one in standings
        if one.budget.limit_usd is not None
    ]
    return tuple(sorted(found, key=lambda bar: -bar.percent)[:LIMITS_MOST])


def _whose(one: BudgetStanding) -> str:
    return {"house": "everybody together", "user": one.who}.get(one.budget.kind, one.subject or one.who)


def _plot(view: View, is_priced: bool) -> Plot | None:
    """The cost of each day, or how often a model was asked."""
    values = [sums.cost_usd if is_priced else float(sums.rounds) for _, sums in view.days]
    unit = "US dollars" if is_priced else "model calls"
    days = [f"{on.day} {on:%b}" for on, _ in view.days]
    return stacked("A day", unit, days, [Series(name=unit, values=values)], dollars if is_priced else short)


def _bars(rows: Sequence[UsageRow], is_priced: bool) -> tuple[MoneyBar, ...]:
    """The largest first, what is behind them added up."""
    amounts = [(row.label, row.sum.cost_usd if is_priced else float(row.sum.rounds)) for row in rows]
    amounts.sort(key=lambda one: -one[1])
    shown, rest = amounts[:BARS_MOST], amounts[BARS_MOST:]
    if rest:
        shown.append(("others", sum(amount for _, amount in rest)))
    most = max((amount for _, amount in shown), default=0.0) or 1.0
    return tuple(
        MoneyBar(label=label, amount=dollars(amount) if is_priced else f"{amount:,.0f}", percent=100 * amount / most)
        for label, amount in shown
    )
