"""The guard: what must not pass does not, in words; what is honest passes and means the same."""

import asyncio
import string

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from cortex.base.errors import ToolFailed
from cortex.integrations.aether_db import guard
from cortex.integrations.aether_db.dialect import Aether
from cortex.integrations.aether_db.open_names import OpenNames
from tests.shop import NAMES, statements

REFUSED = statements("refused.txt")
HONEST = statements("honest.txt")
MOST = 50


def refusal(sql: str, names: OpenNames = NAMES) -> str:
    """What the guard says to it; "" when it passes."""
    try:
        guard.check(sql, names, MOST)
    except ToolFailed as error:
        return error.message
    return ""


def test_there_are_enough_statements() -> None:
    assert len({sql for _, sql in REFUSED}) >= 400
    assert len({sql for _, sql in HONEST}) >= 140


@pytest.mark.parametrize("heading", sorted({heading for heading, _ in REFUSED}))
def test_nothing_that_must_not_pass_passes(heading: str) -> None:
    said = {sql: refusal(sql) for found, sql in REFUSED if found == heading}
    assert [sql for sql, words in said.items() if not words] == []
    assert [words for words in said.values() if not words.endswith(".") or ":" not in words] == []


def test_what_is_honest_passes() -> None:
    assert {sql: words for _, sql in HONEST if (words := refusal(sql))} == {}


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("select 1 for update", "FOR UPDATE and other locks are refused"),
        ("select @@version", "server's own variables"),
        ("select sleep(1)", "The function SLEEP is not one of those"),
        ("select * from secret.salaries", "read from what is open (shop, club, old.kept)"),
        ("select 1; select 2", "there are 2: send them one by one"),
        ("select * from members where", "not understood"),
        ("show grants", "SHOW TABLES, COLUMNS, INDEX"),
        ("select 1 \0", "zero character"),
        ("select " + "x" * 9_000, "1 to 8000"),
        ("select " + "(" * 500 + "1" + ")" * 500, "nested too deeply"),
        ("drop table x", "'DROP' begins none: use SELECT"),
    ],
)
def test_a_refusal_says_what_and_what_to_do(sql: str, says: str) -> None:
    assert says in refusal(sql)


def test_names_are_looked_for_in_the_default_schema() -> None:
    nowhere = OpenNames(schemas=("shop",))
    assert "write schema.members" in refusal("select * from members", nowhere)
    assert refusal("select * from shop.members", nowhere) == ""
    closed = OpenNames(default_schema="old", tables=(("old", "kept"),))
    assert refusal("select * from kept", closed) == ""
    assert "not open" in refusal("select * from other", closed)
    assert "not open" in refusal("with kept as (select * from other) select * from kept", closed)
    assert "not open" in refusal("show tables", closed)


def test_a_named_query_hides_no_table() -> None:
    """Inside its own WITH the name means the table, and that has to be open."""
    names = OpenNames(default_schema="old", tables=(("old", "kept"),))
    assert refusal("with other as (select 1) select * from other", names) == ""
    assert "old.other" in refusal("with other as (select * from other) select * from other", names)
    assert "old.other" in refusal("select * from (with other as (select 1) select * from other) x, other", names)


def test_what_describes_tables_shows_what_is_open() -> None:
    sql = guard.check("select * from information_schema.tables as t", NAMES, MOST).sql
    assert "WHERE `table_schema` IN ('shop', 'club') OR (`table_schema` = 'old' AND `table_name` = 'kept')" in sql


@pytest.mark.parametrize(
    ("sql", "sent"),
    [
        ("select 'a' 'b' -- x", "SELECT CONCAT('a', 'b') LIMIT 51"),
        ("select id from members limit 7", "SELECT `id` FROM `shop`.`members` LIMIT 7"),
        ("select id from members limit 9000", "SELECT `id` FROM `shop`.`members` LIMIT 51"),
        ("select name regexp 'a' from members", "SELECT `name` REGEXP 'a' FROM `shop`.`members` LIMIT 51"),
        ("select 1 union select 2", "SELECT 1 UNION SELECT 2 LIMIT 51"),
        ("explain format=json select 1", "EXPLAIN FORMAT=JSON SELECT 1 LIMIT 51"),
    ],
)
def test_what_is_sent_is_written_anew(sql: str, sent: str) -> None:
    assert guard.check(sql, NAMES, MOST).sql == sent


@pytest.mark.parametrize("sign", ["(", "abs(", "(select ", "case when ", "not ", "- ", "1 in (", "a.", "(a,(", "'a' "])
async def test_the_worst_text_ends_in_words(sign: str) -> None:
    """Whatever the nesting: an answer, and the loop goes on meanwhile."""
    text = ("select " + sign * 8_000)[:8_000]
    assert await asyncio.to_thread(refusal, text) != "" or sign in ("'a' ",)


FORBIDDEN = st.sampled_from(
    [
        "DELETE FROM members",
        "INSERT INTO members (id) VALUES (1)",
        "UPDATE members SET id = 1",
        "DROP TABLE members",
        "CREATE TABLE x (a int)",
        "SELECT 1 FOR UPDATE",
        "SELECT 1 INTO @a",
        "SELECT @a := 1",
        "SELECT @@version",
        "SELECT SLEEP(1)",
        "SELECT LOAD_FILE('x')",
        "SELECT NEXTVAL(numbers)",
        "SELECT bump()",
        "SELECT * FROM secret.salaries",
        "SELECT * FROM mysql.user",
        "SELECT CURRENT_USER()",
        "SET @a = 1",
    ]
)
AROUND = st.sampled_from(
    [
        "SELECT * FROM ({}) AS x",
        "SELECT ({})",
        "SELECT 1 WHERE EXISTS ({})",
        "SELECT id FROM members WHERE id IN ({})",
        "WITH x AS ({}) SELECT * FROM x",
        "SELECT 1 UNION ALL {}",
        "SELECT 1 UNION ({})",
        "({})",
        "SELECT IF(1, ({}), 2)",
        "SELECT CASE WHEN 1 THEN ({}) ELSE 2 END",
        "SELECT 1 FROM members ORDER BY ({})",
        "SELECT 1 FROM members GROUP BY 1 HAVING ({}) > 1",
        "SELECT 1 FROM members m JOIN orders o ON m.id = ({})",
        "SELECT SUM(({})) OVER (PARTITION BY 1)",
        "EXPLAIN {}",
        "SELECT 1 /* x */ , ({}) -- y",
    ]
)


@given(inner=FORBIDDEN, around=st.lists(AROUND, max_size=5), is_loud=st.booleans())
def test_what_is_forbidden_passes_nowhere(inner: str, around: list[str], is_loud: bool) -> None:
    sql = inner
    for shell in around:
        sql = shell.format(sql)
    assert refusal(sql if is_loud else sql.replace("SELECT", "sElEcT")) != ""


@given(text=st.text(alphabet=string.printable + "`'\"é\0", max_size=300))
def test_any_text_is_taken_or_refused_in_words(text: str) -> None:
    words = refusal("SELECT " + text)
    assert words == "" or words.endswith(".")


PIECES = st.sampled_from(
    [
        *"()*,;.@'\"`=<>+-/#",
        *(
            "/*",
            "*/",
            "/*!",
            "--",
            ":=",
            "@@",
            "||",
            "SELECT",
            "FROM",
            "WHERE",
            "UNION",
            "WITH",
            "AS",
            "INTO",
            "FOR UPDATE",
        ),
        *(
            "DELETE FROM",
            "members",
            "secret.salaries",
            "mysql.user",
            "SLEEP(1)",
            "bump()",
            "id",
            "1",
            "'a'",
            "OUTFILE 'x'",
        ),
        *(
            "SET",
            "x",
            "JOIN",
            "ON",
            "IN",
            "LIMIT",
            "PROCEDURE ANALYSE()",
            "@a",
            "ORDER BY",
            "GROUP BY",
            "VALUES",
            "CALL p()",
        ),
    ]
)


@given(pieces=st.lists(PIECES, min_size=1, max_size=14))
def test_what_passes_only_reads_what_is_open(pieces: list[str]) -> None:
    """Read again by the parser, what would be sent is one reading statement over open tables with known functions."""
    try:
        sent = guard.check("SELECT " + " ".join(pieces), NAMES, MOST).sql
    except ToolFailed:
        return
    (tree,) = sqlglot.parse(sent, dialect=Aether)
    assert isinstance(tree, exp.Select | exp.SetOperation)
    assert not list(tree.find_all(exp.DML, exp.DDL, exp.Command, exp.Set, exp.Lock, exp.Into, exp.Parameter))
    named = {query.alias for query in tree.find_all(exp.CTE)}
    assert {table.db for table in tree.find_all(exp.Table) if table.name not in named} <= {"shop", "club"}
    assert "SLEEP" not in sent.upper().replace("`SLEEP`", "").replace("'SLEEP", "")
    assert "/*" not in sent.replace("'", "")
