"""How many rows a statement will have the server look at, by its own estimate (EXPLAIN). Pure."""

from collections.abc import Mapping, Sequence

CAP = 10**18
ANEW = ("DEPENDENT", "UNCACHEABLE", "LATERAL")  # SUBQUERY, UNION or DERIVED behind it, by server and version


def looked_at(plan: Sequence[Mapping[str, str]]) -> int:
    """The rows that the plan reads: those of joined tables multiplied, those of the parts added up.

    A part that is run anew for each row of the one before counts as often as that one has rows.
    """
    products: dict[str, int] = {}
    repeated: set[str] = set()
    for line in plan:
        part = line.get("id", "")
        if line.get("select_type", "").upper().startswith(ANEW):
            repeated.add(part)
        products[part] = min(products.get(part, 1) * _rows(line), CAP)
    outer = max((rows for part, rows in products.items() if part not in repeated), default=1)
    return min(sum(rows * (outer if part in repeated else 1) for part, rows in products.items()), CAP)


def _rows(line: Mapping[str, str]) -> int:
    text = line.get("rows", "")
    return max(int(text), 1) if text.isdecimal() else 1
