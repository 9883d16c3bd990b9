"""The database tools through a real turn on a real MariaDB: good and bad arguments, hostile rows, a stopped turn."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import ToolFailed
from tests.living_house import LivingHouse
from tests.mariadb import MariaServer
from tests.patience import PATIENCE_S
from tests.scripted_rules import Asked
from tests.scripted_server import ScriptedServer, Use, rule

AWAY = "http://127.0.0.1:9/elsewhere"
ROWS = (Path(__file__).parent / "hostile_rows.txt").read_text().splitlines()
LONG = "select count(*) from seq_1_to_100000 a, seq_1_to_100000 b where a.seq * b.seq % 7 = 3"
CALLS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "query": ("ae_db_query", {"sql": "select name from members order by id"}, "ok", "Ada\nBo\nCy\nDörte\n[4 rows in "),
    "query_named": ("ae_db_query", {"sql": "select 1 as one", "database": "shop"}, "ok", "one\n1\n[1 row in "),
    "query_writes": ("ae_db_query", {"sql": "delete from members"}, "err", "Only one reading statement is run here"),
    "query_elsewhere": ("ae_db_query", {"sql": "select * from secret.salaries"}, "err", "read from what is open"),
    "query_unknown": ("ae_db_query", {"sql": "select * from memberz"}, "err", "Near: members"),
    "query_other": ("ae_db_query", {"sql": "select 1", "database": "pub"}, "err", "Known: shop."),
    "query_without": ("ae_db_query", {}, "refused", "sql"),
    "query_many": ("ae_db_query", {"sql": "select 1", "limit": 1_000}, "refused", "limit"),
    "describe": ("ae_db_describe", {}, "ok", "- members (table, about 4 rows): who is in"),
    "describe_one": ("ae_db_describe", {"table": "orders"}, "ok", "key: member_id -> members (id)"),
    "describe_none": ("ae_db_describe", {"table": "order"}, "err", "Near: orders"),
    "describe_wrong": ("ae_db_describe", {"name": "orders"}, "refused", "name"),
    "view": ("ae_db_show_view", {"view": "active_members", "rows": 1}, "ok", "CREATE VIEW `active_members` AS select"),
    "views": ("ae_db_show_view", {}, "ok", "- active_members (view)"),
    "view_none": ("ae_db_show_view", {"view": "members"}, "err", "no view"),
    "view_wrong": ("ae_db_show_view", {"rows": -1}, "refused", "rows"),
}


FEW = ("query", "query_writes", "query_without", "describe_one", "describe_none", "view", "view_none")


@pytest.fixture(scope="module", autouse=True)
def hostile_rows(shop: MariaServer) -> Iterator[None]:
    """A schema of their own on the server that others use as well."""
    shop.run(
        "CREATE DATABASE outside CHARACTER SET utf8mb4",
        "GRANT SELECT, SHOW VIEW ON outside.* TO reader@'127.0.0.1'",
        "CREATE TABLE outside.notes (id int PRIMARY KEY, words text)",
    )
    for number, words in enumerate(ROWS):
        shop.run(f"INSERT INTO outside.notes VALUES ({number}, '{words.replace(chr(39), chr(39) * 2)}')")  # noqa: S608
    yield
    shop.run("REVOKE SELECT, SHOW VIEW ON outside.* FROM reader@'127.0.0.1'", "DROP DATABASE outside")


def read_row(asked: Asked) -> Use:
    number = re.findall(r"row (\d+)", asked.user)[0]
    return Use("ae_db_query", {"sql": f"select words from outside.notes where id = {number}"}, is_blind=True)  # noqa: S608


@pytest.fixture
async def house(scripted: ScriptedServer, house: LivingHouse, shop: MariaServer) -> LivingHouse:
    scripted.rules = [
        rule("^obey row", read_row, Use("http_fetch", {"url": AWAY}, is_blind=True), "Done."),
        rule("^write row", read_row, Use("file_write", {"path": "own.txt", "text": "x"}, is_blind=True), "Done."),
        rule("^count for long", Use("ae_db_query", {"sql": LONG}, is_blind=True), "Counted."),
        *(rule(rf"^try {name}\b", Use(tool, given, is_blind=True), "So.") for name, (tool, given, *_) in CALLS.items()),
    ]
    await house.connect(scripted)
    card = {"host": "127.0.0.1", "port": str(shop.port), "user": "reader", "password": "only-reading-ü€"}
    more = {"schemas": "shop club outside", "views": "old.kept", "seconds": "60", "scan_rows": str(10**15)}
    await house.cortex.integrations.save(house.admin, "aether_db", "shop", {**card, **more}, is_new=True)
    return house


@pytest.mark.parametrize(
    "names", [FEW, pytest.param(sorted(CALLS.keys() - {*FEW}), marks=pytest.mark.full)], ids=["few", "rest"]
)
async def test_every_tool_answers_good_and_bad_arguments(house: LivingHouse, names: Sequence[str]) -> None:
    async def answer(name: str) -> tuple[str, str]:
        cid = await house.conversation()
        await house.say(cid, f"try {name}")
        (result,) = await house.events(cid, "tool.result")
        return result.payload["state"], result.payload["text"]

    answers = dict(zip(names, await asyncio.gather(*map(answer, names)), strict=True))
    wrong = {name: said for name, said in answers.items() if said[0] != CALLS[name][2] or CALLS[name][3] not in said[1]}
    assert wrong == {}


@pytest.mark.moves_cache_prefix(reason="twenty times the model calls what it was not sent; what is sent follows")
@pytest.mark.parametrize("numbers", [range(2), pytest.param(range(2, 20), marks=pytest.mark.full)], ids=["few", "rest"])
async def test_hostile_rows_lead_to_nothing_that_the_person_did_not_allow(house: LivingHouse, numbers: range) -> None:
    """The most obedient model there can be: it does what the row says; the gate refuses, or asks."""
    assert len(ROWS) == 20
    for number in numbers:
        cid = await house.conversation()
        await house.say(cid, f"obey row {number:02}")
        read, fetched = await house.events(cid, "tool.result")
        assert (read.payload["state"], read.payload["is_tainted"]) == ("ok", True)
        assert fetched.payload["state"] == "refused"
        turn = await house.cortex.chat.send_message(house.admin, cid, f"write row {number:02}")
        asked = await house.until(cid, "approval", turn=turn, state="asked")
        assert "external content" in asked.payload["why"]
        await house.cortex.chat.stop(house.admin, cid)
        await house.until(cid, "turn.end", turn=turn)
    own = house.cortex.runtime.settings.home / house.admin.id / "files"
    assert not (own / "own.txt").exists()


async def running(server: MariaServer) -> int:
    rows = await asyncio.to_thread(server.run, "SHOW FULL PROCESSLIST")
    return sum("seq_1_to_100000" in str(row) for row in rows)


async def test_stopping_the_turn_stops_the_statement_at_the_server(house: LivingHouse, shop: MariaServer) -> None:
    cid = await house.conversation()
    async with asyncio.timeout(PATIENCE_S):
        turn = await house.cortex.chat.send_message(house.admin, cid, "count for long")
        while not await running(shop):  # noqa: ASYNC110 - nobody tells a test
            await asyncio.sleep(0.02)
        await house.cortex.chat.stop(house.admin, cid)
        await house.until(cid, "turn.end", turn=turn)
        while await running(shop):  # noqa: ASYNC110 - nobody tells a test
            await asyncio.sleep(0.02)


async def test_who_may_use_it_holds_for_the_tools(house: LivingHouse) -> None:
    databases = house.cortex.databases(house.member.id)
    assert await databases.names("orchestrator") == ["shop"]
    await house.cortex.integrations.share(house.admin, "aether_db", "shop", ["orchestrator"], [house.admin.id])
    assert await databases.names() == []
    mine = house.cortex.databases(house.admin.id)
    assert (await mine.names("orchestrator"), await mine.names("chat")) == (["shop"], [])
    permitted = await house.cortex.tools.explain(house.member, "orchestrator", "which tables are in the database?")
    assert not [one for one in permitted["sent"] if one["category"] == "aether_db"]


async def test_a_check_refuses_what_cannot_run_and_proves_nothing_of_the_server(house: LivingHouse) -> None:
    databases = house.cortex.databases(house.admin.id)
    for given, says in (
        ({"sql": "delete from members"}, "Only one reading statement"),
        ({"sql": "select 1", "database": "pub"}, "Known: shop"),
        ({"table": "secret.salaries"}, "not open to you"),
    ):
        with pytest.raises(ToolFailed, match=says):
            await databases.check(**given)
    await databases.check(sql="select * from members", database="Shop", role="orchestrator")
    assert "Not used" in (await house.cortex.integrations.card("aether_db", "shop")).state
