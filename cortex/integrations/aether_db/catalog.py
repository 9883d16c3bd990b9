"""Tables, columns, keys and views, read from the information schema and narrowed to what is open."""

import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cortex.base.errors import ToolFailed
from cortex.integrations.aether_db.open_names import OpenNames
from cortex.ports.aether import TableFacts

TABLES_MOST = 5_000
NEAR = 5
COMMENT_CHARACTERS = 120
COLUMN_DEFAULT_CHARACTERS = 40
TABLES = "SELECT table_schema, table_name, table_type, table_rows, table_comment FROM information_schema.tables"

Do = Callable[[str, tuple[object, ...]], Awaitable[list[tuple[Any, ...]]]]  # Any: cells, as the driver hands them


async def tables(do: Do, names: OpenNames, words: str) -> Sequence[TableFacts]:
    """Return what is open and holds all the words in its name or comment."""
    wanted = words.lower().split()
    return [
        facts
        for facts in await _all(do, names)
        if all(word in facts.name.lower() or word in facts.comment.lower() for word in wanted)
    ]


async def table(do: Do, names: OpenNames, name: str) -> TableFacts:
    """The table of this name with all that is known of it."""
    schema, single = parts(names, name)
    found = [facts for facts in await _all(do, names) if facts.name == _named(names, schema, single)]
    if not found or not names.holds(schema, single):
        raise await unknown(do, names, name)
    place = (schema, single)
    columns = await do(
        "SELECT column_name, column_type, is_nullable, column_default, extra, column_comment "
        "FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
        place,
    )
    indexes = await do(
        "SELECT index_name, MIN(non_unique), GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ', ') "
        "FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s "
        "GROUP BY index_name ORDER BY index_name",
        place,
    )
    keys = await do(
        "SELECT constraint_name, GROUP_CONCAT(column_name ORDER BY ordinal_position SEPARATOR ', '), "
        "referenced_table_schema, referenced_table_name, "
        "GROUP_CONCAT(referenced_column_name ORDER BY ordinal_position SEPARATOR ', ') "
        "FROM information_schema.key_column_usage WHERE table_schema = %s AND table_name = %s "
        "AND referenced_table_name IS NOT NULL "
        "GROUP BY constraint_name, referenced_table_schema, referenced_table_name ORDER BY constraint_name",
        place,
    )
    facts = found[0]
    return TableFacts(
        name=facts.name,
        kind=facts.kind,
        rows=facts.rows,
        comment=facts.comment,
        columns=tuple(_column(row) for row in columns),
        indexes=tuple(f"{index} ({held}){'' if str(many) == '1' else ' unique'}" for index, many, held in indexes),
        keys=tuple(f"{held} -> {_named(names, there, to)} ({of})" for _, held, there, to, of in keys),
    )


async def view(do: Do, names: OpenNames, name: str) -> str:
    """The view's statement, without the name of who made it."""
    facts = await table(do, names, name)
    if facts.kind != "view":
        raise ToolFailed(f"{facts.name} is a {facts.kind} and no view: describe it instead.")
    rows = await do(f"SHOW CREATE VIEW {quoted(*parts(names, name))}", ())
    return re.sub(r"^CREATE .*? VIEW ", "CREATE VIEW ", str(rows[0][1]), count=1, flags=re.DOTALL)


def parts(names: OpenNames, name: str) -> tuple[str, str]:
    """The schema and the name of `shop.members` or `members`, backticks and all; ToolFailed when it is not open."""
    found = [part.strip("`") for part in name.strip().split(".")]
    if len(found) > 2 or not all(found):
        raise ToolFailed(f"{name!r} is not a table name: write table or schema.table.")
    schema, single = found if len(found) == 2 else ("", found[0])
    if not schema and not names.default_schema and len(names.schemas) == 1:
        schema = names.schemas[0]
    return names.placed(schema, single), single


def quoted(schema: str, table: str) -> str:
    """The name as a statement writes it."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in (schema, table))


async def _all(do: Do, names: OpenNames) -> Sequence[TableFacts]:
    schemas = sorted({*names.schemas, *(schema for schema, _ in names.tables)})
    if not schemas:
        return []
    marks = ", ".join(["%s"] * len(schemas))
    rows = await do(f"{TABLES} WHERE table_schema IN ({marks}) ORDER BY 1, 2 LIMIT {TABLES_MOST}", tuple(schemas))
    return [
        TableFacts(
            name=_named(names, schema, name),
            kind="view" if "VIEW" in kind else "table",
            rows=None if rows is None or "VIEW" in kind else int(rows),
            comment="" if "VIEW" in kind else " ".join(str(comment or "").split())[:COMMENT_CHARACTERS],
        )
        for schema, name, kind, rows, comment in rows
        if names.holds(schema, name) and kind != "SEQUENCE"
    ]


async def unknown(do: Do, names: OpenNames, name: str) -> ToolFailed:
    """The refusal of a name that is not there, with those near it."""
    known = [facts.name for facts in await _all(do, names)]
    lowered = {one.lower().rpartition(".")[2]: one for one in known} | {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower().strip("`"), lowered, NEAR, 0.5)
    near += [one for one in lowered if name.lower().strip("`") in one and one not in near]
    shown = list(dict.fromkeys(lowered[one] for one in near))[:NEAR] or known[:NEAR]
    return ToolFailed(f"There is no table {name!r}. Near: {', '.join(shown) or 'nothing is open'}.", is_tainted=True)


def _named(names: OpenNames, schema: str, table: str) -> str:
    return table if schema == names.default_schema else f"{schema}.{table}"


def _column(row: Sequence[Any]) -> str:
    name, kind, null, default, extra, comment = row
    words = [str(name), str(kind), "" if null == "YES" else "not null", str(extra or "")]
    if default is not None and default != "NULL":
        words.append(f"default {str(default)[:COLUMN_DEFAULT_CHARACTERS]}")
    text = " ".join(word for word in words if word)
    note = " ".join(str(comment or "").split())[:COMMENT_CHARACTERS]
    return f"{text} ({note})" if note else text
