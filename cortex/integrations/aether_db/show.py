"""SHOW, written anew from what was understood: tables, columns, indexes and definitions of what is open."""

import re

from sqlglot import exp

from cortex.base.errors import ToolFailed
from cortex.integrations.aether_db.dialect import Aether
from cortex.integrations.aether_db.open_names import OpenNames

OF_SCHEMA = ("TABLES", "TABLE STATUS")
OF_TABLE = {
    "COLUMNS": "COLUMNS FROM",
    "INDEX": "INDEX FROM",
    "CREATE TABLE": "CREATE TABLE",
    "CREATE VIEW": "CREATE VIEW",
}
TAKEN = frozenset({"this", "target", "db", "like", "full"})
OTHER_NAMES = {"FIELDS": "COLUMNS", "KEYS": "INDEX", "INDEXES": "INDEX"}  # which the parser does not know
OTHER_NAME = re.compile(rf"(?i)^(show\s+(?:full\s+)?)({'|'.join(OTHER_NAMES)})\b")


def usual(statement: str) -> str:
    """The statement with SHOW FIELDS, KEYS and INDEXES under the names that the parser knows."""
    return OTHER_NAME.sub(lambda found: found[1] + OTHER_NAMES[found[2].upper()], statement)


def shown(tree: exp.Show, names: OpenNames) -> str:
    """The statement to be sent; ToolFailed when it shows something else, or of something that is not open."""
    given = {key: value for key, value in tree.args.items() if value}
    kind = tree.name.upper()
    if kind in ("DATABASES", "SCHEMAS"):
        return _schemas(names)
    if kind not in OF_SCHEMA and kind not in OF_TABLE:
        raise ToolFailed(
            f"SHOW {kind[:40]} is refused: SHOW TABLES, COLUMNS, INDEX, CREATE TABLE and CREATE VIEW can be used."
        )
    if extra := set(given) - TAKEN:
        raise ToolFailed(f"SHOW with {', '.join(sorted(extra)).upper()} is refused: use LIKE, or leave it out.")
    like = f" LIKE {_text(given['like'])}" if "like" in given else ""
    full = "FULL " if "full" in given else ""
    if kind in OF_SCHEMA:
        return f"SHOW {full}{kind} FROM {_schema(given.get('db'), names)}{like}"
    return f"SHOW {full}{OF_TABLE[kind]} {_table(given, names)}{like}"


def _schemas(names: OpenNames) -> str:
    """The schemas that are open: the server would show all that the account may see."""
    found = sorted({*names.schemas, *(schema for schema, _ in names.tables)})
    rows = [f"SELECT {exp.Literal.string(name).sql(dialect=Aether)} AS `Database`" for name in found]
    return " UNION ALL ".join(rows) or "SELECT NULL AS `Database` LIMIT 0"


def _schema(given: object, names: OpenNames) -> str:
    schema = _name(given) or names.default_schema
    if schema not in names.schemas:
        raise ToolFailed(f"The schema {schema!r} is not open to you: use what is open ({names.words()}).")
    return _quoted(schema)


def _table(given: dict[str, object], names: OpenNames) -> str:
    schema, table = _name(given.get("db")), _name(given.get("target"))
    if not table:
        raise ToolFailed("That SHOW names no table: write the table's name behind it.")
    return f"{_quoted(names.placed(schema, table))}.{_quoted(table)}"


def _name(value: object) -> str:
    return value.name if isinstance(value, exp.Expression) else str(value or "")


def _text(value: object) -> str:
    if not isinstance(value, exp.Literal) or not value.is_string:
        raise ToolFailed("LIKE takes one text here: write it in quotes.")
    return value.sql(dialect=Aether)


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect=Aether)
