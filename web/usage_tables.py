"""The usage page's numbers as tables: the same rows for the page and for the file that is downloaded.

Pure. `web/pages/usage.py` asks for them; nothing is summed here that the service has not summed.
"""

import csv
import io
from datetime import date, datetime
from typing import Any, Literal

from msgspec import Struct

from cortex.services.chat.transcript_views import key_of
from cortex.services.usage.usage import Sum, View
from web.plots import Plot, Series, largest, stacked

Kind = Literal["text", "day", "moment", "number", "usd", "share"]
LONE = ("api:", "coding:")  # model calls that are no turn: there is no page of one
BY_WORDS = {"model": "Model", "role": "Role", "tool": "Tool", "job": "Job", "token": "Token", "person": "Person"}
CUTS = (
    ("sent_tokens", "sent"),
    ("extra_tokens", "way back and catalog"),
    ("cut_form", "shorter forms"),
    ("cut_role", "role and rights"),
    ("cut_limits", "tool mode and budget"),
    ("cut_choice", "not needed for the message"),
)


class TableColumn(Struct, frozen=True, kw_only=True):
    """A column: its head, and how its values are written."""

    label: str
    kind: Kind = "number"

    @property
    def is_figure(self) -> bool:
        """Tell whether the values stand to the right, in one line with their digits."""
        return self.kind in ("number", "usd", "share")

    def write(self, value: Any) -> str:
        """The value as the page shows it; what is unknown is said to be. Moments are the template's, for the zone."""
        if value is None:
            return "unknown" if self.kind == "usd" else "-"
        match self.kind:
            case "number":
                return f"{value:,}"
            case "usd":
                return dollars(value)
            case "share":
                return f"{100 * value:.0f} %"
            case "day":
                return _short(value)
            case _:
                return str(value)


class TableRow(Struct, frozen=True, kw_only=True):
    """A row; `href` is where its first cell leads, "" = nowhere."""

    cells: tuple[Any, ...]
    href: str = ""


class UsageTable(Struct, frozen=True, kw_only=True):
    """A table with a name for its file."""

    name: str
    caption: str
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]


def tables(view: View, *, is_admin: bool) -> dict[str, UsageTable]:
    """Every table of the page by name; those without a row are there too."""
    made = [_tokens(view), _costs(view), _by(view), _cache(view), _rounds(view), _turns(view), _tools(view)]
    return {one.name: one for one in (*made, _never(view, is_admin))}


def plots(view: View) -> dict[str, Plot]:
    """The plots that there is something to see in."""
    days = [_short(on) for on, _ in view.days]
    layers = [Series(name=words, values=[_cut(sums, name) for _, sums in view.days]) for name, words in CUTS]
    layers = [layer for layer in layers if any(layer.values)]
    costs = [Series(name=row.label, values=row.cost_by_day) for row in view.rows]
    counts = [Series(name="messages", values=[turns for _, turns in view.histogram])]
    rounds = [str(number) for number, _ in view.histogram]
    found = {
        "tokens": stacked("Tool tokens a day, by what removed them", "tokens", days, layers, short),
        "cost": stacked("Cost a day", "US dollars", days, largest(costs, "others"), dollars) if costs else None,
        "rounds": stacked("Rounds a message", "messages", rounds, counts, _whole) if rounds else None,
    }
    return {name: plot for name, plot in found.items() if plot is not None}


def as_csv(table: UsageTable) -> str:
    """The table as a file: plain numbers, days and moments as ISO writes them, nothing that a sheet would run."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([column.label for column in table.columns])
    for row in table.rows:
        writer.writerow([_plain(value) for value in row.cells])
    return out.getvalue()


def dollars(value: float) -> str:
    """$0, $0.0042, $1.20."""
    if not value:
        return "$0"
    return f"${value:.4f}" if value < 0.1 else f"${value:,.2f}"


def short(value: float) -> str:
    """950, 1.2k, 3.4M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}".removesuffix(".0") + letter
    return f"{value:g}"


def _tokens(view: View) -> UsageTable:
    columns = (TableColumn(label="Day", kind="day"), TableColumn(label="All tools in full"), *_labels())
    rows = [TableRow(cells=(on, sums.total_tokens, *(_cut(sums, name) for name, _ in CUTS))) for on, sums in view.days]
    return UsageTable(name="tokens", caption="Tool tokens a day", columns=columns, rows=tuple(rows))


def _labels() -> tuple[TableColumn, ...]:
    return tuple(TableColumn(label=words[:1].upper() + words[1:]) for _, words in CUTS)


def _costs(view: View) -> UsageTable:
    names = tuple(TableColumn(label=row.label, kind="usd") for row in view.rows)
    columns = (
        TableColumn(label="Day", kind="day"),
        TableColumn(label="All", kind="usd"),
        TableColumn(label="Unknown price"),
        *names,
    )
    rows = [
        TableRow(cells=(on, sums.cost_usd, sums.unpriced, *(row.cost_by_day[place] for row in view.rows)))
        for place, (on, sums) in enumerate(view.days)
    ]
    return UsageTable(name="cost", caption="Cost a day in US dollars", columns=columns, rows=tuple(rows))


def _by(view: View) -> UsageTable:
    head = TableColumn(label=BY_WORDS[view.by], kind="text")
    names = ("Rounds", "Tool tokens sent", "Input", "Cached", "Written", "Fresh", "Output")
    columns = (head, *(TableColumn(label=name) for name in names), TableColumn(label="Cost", kind="usd"))
    rows = [TableRow(cells=(row.label, *_sums(row.sum))) for row in view.rows]
    caption = f"By {BY_WORDS[view.by].lower()}"
    return UsageTable(name="by", caption=caption, columns=columns, rows=tuple(rows))


def _sums(sums: Sum) -> tuple[Any, ...]:
    cost = None if sums.unpriced == sums.rounds and sums.rounds else sums.cost_usd
    tokens = (sums.cached_tokens, sums.written_tokens, sums.fresh_tokens, sums.output_tokens)
    return (sums.rounds, sums.sent_tokens + sums.extra_tokens, sums.input_tokens, *tokens, cost)


def _cache(view: View) -> UsageTable:
    whole = sum(miss.rounds for miss in view.misses)
    columns = (
        TableColumn(label="What the provider's cache did", kind="text"),
        TableColumn(label="Rounds"),
        TableColumn(label="Share", kind="share"),
        TableColumn(label="Tokens paid in full"),
    )
    rows = [TableRow(cells=(miss.words, miss.rounds, miss.rounds / whole, miss.fresh_tokens)) for miss in view.misses]
    return UsageTable(name="cache", caption="Cache hits, and why it missed", columns=columns, rows=tuple(rows))


def _rounds(view: View) -> UsageTable:
    columns = (TableColumn(label="Rounds"), TableColumn(label="Messages"))
    return UsageTable(
        name="rounds",
        caption="Rounds a message",
        columns=columns,
        rows=tuple(TableRow(cells=pair) for pair in view.histogram),
    )


def _turns(view: View) -> UsageTable:
    columns = (
        TableColumn(label="When", kind="moment"),
        TableColumn(label="Who", kind="text"),
        TableColumn(label="Model", kind="text"),
        TableColumn(label="Rounds"),
        TableColumn(label="Tokens"),
        TableColumn(label="Cost", kind="usd"),
    )
    rows = [
        TableRow(
            cells=(one.at, view.name_of(one.owner_id), one.model, one.rounds, one.tokens, one.cost_usd),
            href="" if one.turn_id.startswith(LONE) else f"/runs/{key_of(one.turn_id)}",
        )
        for one in view.dear
    ]
    return UsageTable(name="turns", caption="The dearest messages", columns=columns, rows=tuple(rows))


def _tools(view: View) -> UsageTable:
    columns = (
        TableColumn(label="Tool", kind="text"),
        TableColumn(label="Sent with rounds"),
        TableColumn(label="Tokens sent"),
        TableColumn(label="Called"),
    )
    rows = [TableRow(cells=(one.name, one.rounds, one.tokens, one.calls)) for one in view.tools]
    return UsageTable(name="tools", caption="By tool", columns=columns, rows=tuple(rows))


def _never(view: View, is_admin: bool) -> UsageTable:
    columns = (
        TableColumn(label="Tool", kind="text"),
        TableColumn(label="Sent with rounds"),
        TableColumn(label="Tokens sent"),
    )
    rows = [
        TableRow(cells=(one.name, one.rounds, one.tokens), href=f"/admin/tools/{one.name}" if is_admin else "")
        for one in view.never
    ]
    return UsageTable(name="never", caption="Never called", columns=columns, rows=tuple(rows))


def _cut(sums: Sum, name: str) -> int:
    """One layer of the day's tool tokens; mode and budget are one layer."""
    if name == "cut_limits":
        return sums.cut_mode + sums.cut_budget
    found: int = getattr(sums, name)
    return found


def _short(on: date) -> str:
    return f"{on.day} {on:%b}"


def _whole(value: float) -> str:
    return f"{value:g}"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return "" if value is None else value
