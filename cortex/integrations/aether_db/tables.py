"""Gives the tables of a statement their schemas and checks that they are open. Used by the guard."""

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from cortex.base.errors import ToolFailed
from cortex.integrations.aether_db.open_names import OpenNames

INFORMATION = "information_schema"
# The tables that describe tables, with the columns by which they are narrowed to what is open.
DESCRIBING = {
    "tables": ("table_schema", "table_name"),
    "columns": ("table_schema", "table_name"),
    "statistics": ("table_schema", "table_name"),
    "key_column_usage": ("table_schema", "table_name"),
    "table_constraints": ("table_schema", "table_name"),
    "referential_constraints": ("constraint_schema", "table_name"),
    "views": ("table_schema", "table_name"),
    "schemata": ("schema_name", ""),
}


def place_tables(tree: exp.Expr, names: OpenNames, *, is_written: bool = False) -> None:
    """Give each table its schema and check it, in place; a table that describes tables is narrowed to what is open.

    is_written: the statement was written here, so that such tables are narrowed already.
    """
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Identifier):
            _place(table, names, is_written=is_written)
        elif not isinstance(table.this, exp.JSONTable):
            raise ToolFailed("A function in the place of a table is refused: read from a table or view by its name.")


def _place(table: exp.Table, names: OpenNames, *, is_written: bool) -> None:
    if table.catalog:
        raise ToolFailed(f"{table.catalog}.{table.db}.{table.name} has three parts and is refused: write schema.table.")
    if not table.db and table.name.lower() == "dual":
        table.parent.pop() if isinstance(table.parent, exp.From) else table.set("this", exp.to_identifier("DUAL"))
        return
    if not table.db and table.name.lower() in {name.lower() for name in _named_queries(table)}:
        return
    if (table.db or names.default_schema).lower() == INFORMATION:
        if not is_written:
            _narrow(table, names)
        return
    table.set("db", exp.to_identifier(names.placed(table.db, table.name), quoted=True))


def _named_queries(table: exp.Table) -> Iterator[str]:
    """The names of the WITH clauses that can be seen from where the table stands.

    In its own clause without RECURSIVE, a query sees those before it and not itself: its name there is a real table's.
    """
    node: Any = table  # Any: sqlglot's parents
    while (parent := node.parent) is not None:
        if isinstance(node, exp.CTE) and isinstance(parent, exp.With):
            queries = list(parent.expressions)
            until = len(queries) if parent.recursive else queries.index(node)
            yield from (query.alias for query in queries[:until])
        elif not isinstance(node, exp.With) and isinstance(with_ := parent.args.get("with_"), exp.With):
            yield from (query.alias for query in with_.expressions)
        node = parent


def _narrow(table: exp.Table, names: OpenNames) -> None:
    """Read only what is open from a table of the information schema."""
    columns = DESCRIBING.get(table.name.lower())
    if columns is None:
        raise ToolFailed(
            f"{INFORMATION}.{table.name} is refused: of that schema only {', '.join(sorted(DESCRIBING))} can be read."
        )
    schema, name = columns
    open_ones: list[exp.Condition] = [exp.column(schema).isin(*names.schemas)] if names.schemas else [exp.false()]
    for owner, single in names.tables:
        is_it: exp.Condition = exp.column(schema).eq(exp.Literal.string(owner))
        open_ones.append(exp.and_(is_it, exp.column(name).eq(exp.Literal.string(single))) if name else is_it)
    is_open = exp.or_(*open_ones)
    source = exp.table_(table.name, db=INFORMATION, quoted=True)
    alias = table.alias or table.name
    narrowed = exp.select("*").from_(source).where(is_open).subquery(alias)
    narrowed.set("joins", table.args.get("joins"))
    table.replace(narrowed)
