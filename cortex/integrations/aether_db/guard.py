"""Decides which statements are sent, and writes them anew: what is sent is what was understood, never the text given.

An allow-list of kinds of statement, of parts, of functions and of tables. The account and the transaction stand behind
it and refuse to write by themselves. sqlglot is heavy: this is loaded on first use, by `scan`.
"""

import logging
from itertools import pairwise
from typing import Any

import sqlglot
from msgspec import Struct
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from cortex.base.errors import ToolFailed
from cortex.integrations.aether_db.dialect import Aether
from cortex.integrations.aether_db.functions import ALLOWED, BEFORE_BRACKET
from cortex.integrations.aether_db.open_names import OpenNames
from cortex.integrations.aether_db.parts import check_parts
from cortex.integrations.aether_db.raw_text import check_text
from cortex.integrations.aether_db.show import shown, usual
from cortex.integrations.aether_db.tables import place_tables

ONE = "Only one reading statement is run here"
HOW = "SELECT, WITH ... SELECT, SHOW TABLES, SHOW COLUMNS, SHOW INDEX, SHOW CREATE, DESCRIBE or EXPLAIN"
FIRST = frozenset({"SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "TABLE", "("})
CLOSERS = (TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it would write statements into the log


class Checked(Struct, frozen=True, kw_only=True):
    """A statement that may be sent. `is_select`: it reads rows, and its cost can be asked for ahead of it."""

    sql: str
    is_select: bool
    is_plain: bool = False


def check(text: str, names: OpenNames, most: int) -> Checked:
    """The statement to be sent for this text, reading at most `most` rows; ToolFailed says what is refused.

    Works in its thread for some milliseconds, also for the worst text of the length that is taken.
    """
    statement = text.strip().rstrip(";").strip()
    check_text(statement)
    word = statement.split(None, 1)[0].upper()
    if not (word in FIRST or word.startswith("(") or word.partition("(")[0] in FIRST):
        raise ToolFailed(f"{ONE}, and {word[:40]!r} begins none: use {HOW}.")
    try:
        return _checked(statement, names, most)
    except RecursionError:
        raise ToolFailed("The statement is nested too deeply to be read: write it flatter.") from None
    except SqlglotError as error:
        raise ToolFailed(f"The statement was not understood{_place(error)}, so it is refused: use {HOW}.") from None


def _checked(statement: str, names: OpenNames, most: int) -> Checked:
    trees = [tree for tree in sqlglot.parse(usual(statement), dialect=Aether) if tree is not None]
    if len(trees) != 1:
        raise ToolFailed(f"{ONE}, and there are {len(trees)}: send them one by one.")
    (tree,) = trees
    if isinstance(tree, exp.Show):
        return Checked(sql=shown(tree, names), is_select=False)
    if isinstance(tree, exp.Describe):
        return _described(tree, names, most)
    return _selected(tree, names, most)


def _described(tree: exp.Describe, names: OpenNames, most: int) -> Checked:
    inner = tree.this
    if isinstance(inner, exp.Table):
        schema = names.placed(inner.db, inner.name)
        plain = exp.table_(inner.name, db=schema, quoted=True)
        return Checked(sql=f"DESCRIBE {plain.sql(dialect=Aether)}", is_select=False)
    style = (tree.args.get("style") or "").upper() or str(tree.args.get("format") or "").upper()
    if style not in ("", "EXTENDED", "JSON", "FORMAT=JSON"):
        raise ToolFailed(f"EXPLAIN {style} runs the statement or is unknown, and is refused: use EXPLAIN alone.")
    form = "FORMAT=JSON " if "JSON" in style else ""
    return Checked(sql=f"EXPLAIN {form}{_selected(inner, names, most).sql}", is_select=False)


def _selected(tree: exp.Expr, names: OpenNames, most: int) -> Checked:
    while isinstance(tree, exp.Subquery) and set(_given(tree)) == {"this"}:
        tree = tree.this
    if not isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery):
        raise ToolFailed(f"{ONE}, and {_kind(tree)} is refused: use {HOW}.")
    check_parts(tree)
    place_tables(tree, names)
    is_plain = _reads_until_full(tree)
    _limit(tree, most + 1)
    sql = Aether().generate(tree, copy=True, identify=True, comments=False, unsupported_level=sqlglot.ErrorLevel.RAISE)
    check_calls(sql)
    _read_again(sql, names)
    return Checked(sql=sql, is_select=True, is_plain=is_plain)


def _read_again(sql: str, names: OpenNames) -> None:
    """Check that what would be sent does pass by itself: one statement of allowed parts over tables that are open."""
    (tree,) = sqlglot.parse(sql, dialect=Aether)
    if not isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery):
        raise ToolFailed(f"{ONE}, and this came out as another: use {HOW}.")
    check_parts(tree)
    place_tables(tree, names, is_written=True)


def _limit(tree: exp.Expr, most: int) -> None:
    """Let the statement itself end at `most` rows."""
    limit = tree.args.get("limit")
    given = limit.expression if isinstance(limit, exp.Limit) else None
    if isinstance(given, exp.Literal) and not given.is_string and given.name.isdecimal() and int(given.name) <= most:
        return
    tree.set("limit", exp.Limit(expression=exp.Literal.number(most)))


def _reads_until_full(tree: exp.Expr) -> bool:
    """Tell whether rows are read only until there are enough: no condition, order or grouping makes it read on."""
    if not isinstance(tree, exp.Select) or not set(_given(tree)) <= {"expressions", "from_", "limit", "offset"}:
        return False
    source = tree.args.get("from_")
    offset = tree.args.get("offset")
    return (
        (source is None or isinstance(source.this, exp.Table))
        and not list(tree.find_all(exp.AggFunc, exp.Window, exp.Subquery))
        and (offset is None or (offset.expression.name.isdecimal() and int(offset.expression.name) <= 100_000))
    )


def check_calls(sql: str) -> None:
    """Every call in the statement as it is sent: names stand in backticks there, so a bare word and "(" is a call."""
    tokens: list[Token] = Aether().tokenize(sql)
    for before, token in pairwise(tokens):
        if token.token_type != TokenType.L_PAREN or before.token_type in CLOSERS or not before.text[:1].isalpha():
            continue
        if before.text.upper() not in ALLOWED and before.text.upper() not in BEFORE_BRACKET:
            raise ToolFailed(f"The function {before.text[:60]} is not one of those allowed here: compute without it.")


def _given(tree: exp.Expr) -> dict[str, Any]:  # Any: sqlglot's arguments
    return {key: value for key, value in tree.args.items() if value not in (None, [], False)}


def _kind(tree: exp.Expr) -> str:
    return (str(tree.this) if isinstance(tree, exp.Command) else tree.key).upper().split("(")[0][:40]


def _place(error: SqlglotError) -> str:
    """Where the parser stopped."""
    details: list[dict[str, Any]] = getattr(error, "errors", None) or [{}]
    if not details[0].get("line"):
        return ""
    near = " ".join(str(details[0].get("highlight") or "").split())[:40]
    return f"{f' near {near!r}' if near else ''} (line {details[0]['line']}, column {details[0].get('col')})"
