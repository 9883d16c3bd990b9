"""What is said to MySQL where it differs from MariaDB, and how its answers are read: by its documentation."""

import pytest

from cortex.base.errors import ServiceDown, ToolFailed
from cortex.integrations.aether_db.database import ReadOnlyDatabase
from cortex.integrations.aether_db.open_names import Access, OpenNames, StatementLimits
from tests.mysql_double import MySqlDouble, Refusal, Rows, mysql_double

GRANTS = ("GRANT USAGE ON *.* TO `reader`@`%`", "GRANT SELECT, SHOW VIEW ON `shop`.* TO `reader`@`%`")
PLAN = ("id", "select_type", "table", "partitions", "type", "rows", "filtered", "Extra")
VERSION = "8.4.3-0ubuntu0.24.04.1"


def card(double: MySqlDouble, **limits: float) -> Access:
    names = OpenNames(default_schema="shop", schemas=("shop",))
    return Access(
        host="127.0.0.1",
        port=double.port,
        user="reader",
        password="x",
        names=names,
        limits=StatementLimits(**{"statement_s": 2.5, "rows": 50, **limits}),  # type: ignore[arg-type]
    )


def shop(sql: str) -> "Rows | Refusal | None":
    if sql == "SHOW GRANTS":
        return ("Grants",), tuple((line,) for line in GRANTS)
    if sql.startswith("EXPLAIN"):
        return PLAN, (("1", "SIMPLE", "members", "", "ALL", "900", "33.33", "Using where"),)
    if sql.startswith("SELECT"):
        return ("name",), (("Dörte",),)
    return None


async def asked(
    answer: object = shop, sql: str = "select name from members where id > 1", **limits: float
) -> list[str]:
    """The statements that one question sends, in order."""
    async with mysql_double(VERSION, answer) as double:  # type: ignore[arg-type]
        database = ReadOnlyDatabase(card(double, **limits))
        try:
            assert (await database.query(sql, 10)).rows == (("Dörte",),)
        finally:
            await database.close()
        return double.asked


async def test_its_limits_are_set_in_its_own_words_before_anything_is_read() -> None:
    said = await asked()
    (setting,) = [one for one in said if one.startswith("SET SESSION sql_mode")]
    assert setting.endswith(", max_execution_time = 2500"), "milliseconds, a whole number"
    assert "max_statement_time" not in str(said)
    begun = said.index("START TRANSACTION READ ONLY")
    assert said.index(setting) < said.index("SET SESSION TRANSACTION READ ONLY") < begun
    assert said[begun + 1].startswith("EXPLAIN FORMAT=TRADITIONAL SELECT")
    assert said[begun + 2].startswith("SELECT `name`")


async def test_its_plan_is_reckoned_with() -> None:
    with pytest.raises(ToolFailed, match=r"about 900 rows .at most 100 are allowed., most in members"):
        await asked(scan_rows=100)


@pytest.mark.parametrize(
    ("begins", "refusal", "says"),
    [
        ("SELECT", Refusal(3024, "maximum statement execution time exceeded"), "took longer than 2.5 seconds"),
        ("SET SESSION sql", Refusal(1193, "Unknown system variable 'max_execution_time'"), "MySQL 5.7.8 are the first"),
        ("SELECT", Refusal(1792, "Cannot execute statement in a READ ONLY transaction."), "only reading is allowed"),
        (
            "SELECT",
            Refusal(4031, "The client was disconnected by the server because of inactivity."),
            "does not answer",
        ),
    ],
    ids=["slow", "too old", "writes", "idle"],
)
async def test_its_refusals_are_sentences(begins: str, refusal: Refusal, says: str) -> None:
    with pytest.raises(ToolFailed, match=says):
        await asked(lambda sql: refusal if sql.startswith(begins) else shop(sql))


@pytest.mark.parametrize(
    ("grant", "extra"),
    [
        ("GRANT `app_read`@`%` TO `reader`@`%`", "the role `app_read`@`%`, whose rights are not shown"),
        ("GRANT BACKUP_ADMIN,CLONE_ADMIN ON *.* TO `reader`@`%`", "BACKUP_ADMIN, CLONE_ADMIN on *.*"),
        ("GRANT SELECT (`id`), INSERT (`id`) ON `shop`.`members` TO `reader`@`%`", "INSERT on `shop`.`members`"),
        ("GRANT SELECT ON `shop`.* TO `reader`@`%` WITH GRANT OPTION", "GRANT OPTION on `shop`.*"),
    ],
    ids=["role", "dynamic", "columns", "option"],
)
async def test_an_account_that_may_do_more_is_not_used(grant: str, extra: str) -> None:
    more = ("Grants",), ((GRANTS[0],), (grant,))
    with pytest.raises(ServiceDown) as refused:
        await asked(lambda sql: more if sql == "SHOW GRANTS" else shop(sql))
    assert ("more than read" in refused.value.message, f"({extra})" in refused.value.message) == (True, True)


async def test_its_name_and_number_are_told() -> None:
    async with mysql_double(VERSION, shop) as double:
        database = ReadOnlyDatabase(card(double))
        async with database._sessions.lent() as wire:
            assert (wire.version, wire.is_mariadb) == ("MySQL 8.4.3", False)
        await database.close()
