"""The page of databases on a real MariaDB: set up on a card, browsed, asked, downloaded; only by whom it is open to."""

from cortex.app import Cortex
from cortex.storage.audit import AuditFilter
from tests.mariadb import MariaServer
from tests.web.conftest import Browser
from tests.web.marks import marks

CARD = "/admin/integrations/aether_db"
HREF = "/databases"


def typed(server: MariaServer, **other: str) -> dict[str, str]:
    """What an admin types into the card."""
    filled = {"name": "shop", "is_new": "1", "host": "127.0.0.1", "port": str(server.port), "user": "reader"}
    return {**filled, "password": "only-reading-ü€", "schemas": "shop club", "views": "old.kept", **other}


async def test_a_card_is_tested_in_words_and_saved(shop: MariaServer, ada: Browser) -> None:
    tried = await ada.post(f"{CARD}/test", **typed(shop))
    assert ("6 tables" in tried.text, "3 schemas" in tried.text) == (True, True)
    refused = await ada.post(f"{CARD}/test", **typed(shop, password="wrong"))
    assert (refused.status_code, "password" in marks(refused).said["bad"]) == (422, True)
    writer = await ada.post(f"{CARD}/test", **typed(shop, user="writer", password="may-do-anything"))
    assert (writer.status_code, "more than read" in marks(writer).said["bad"]) == (422, True)
    slip = await ada.post(CARD, **typed(shop, schemas="mysql", views="kept"))
    assert (slip.status_code, sorted(marks(slip).slips)) == (422, ["i-aether_db--schemas", "i-aether_db--views"])
    assert "mysql" in marks(slip).slips["i-aether_db--schemas"]
    assert (await ada.post(CARD, **typed(shop))).status_code == 303


async def test_tables_rows_and_statements_are_shown(shop: MariaServer, ada: Browser) -> None:
    await ada.post(CARD, **typed(shop))
    page = (await ada.get(HREF)).text
    assert "/databases?db=shop&table=members" in marks(page).links
    assert "who is in" in page
    table = (await ada.get(f"{HREF}?db=shop&table=members")).text
    assert ("varchar(40)" in table, "(as on the card)" in table) == (True, True)
    assert "by_town (town)" in table
    assert ">Dörte</td>" in table
    assert "member_id -&gt; members (id)" in (await ada.get(f"{HREF}?table=orders")).text
    assert "CREATE VIEW `active_members`" in (await ada.get(f"{HREF}?table=active_members")).text
    assert "club.events" not in (await ada.get(f"{HREF}?q=members")).text
    answer = await ada.post(f"{HREF}/query", sql="select name from members order by id", db="shop")
    assert (answer.status_code, answer.text.count("<td data-l")) == (200, 4)
    nothing = await ada.post(f"{HREF}/query", sql="select name from members where id > 99")
    assert "No rows." in nothing.text


async def test_what_is_refused_is_said_and_the_statement_stays(shop: MariaServer, ada: Browser) -> None:
    await ada.post(CARD, **typed(shop))
    for path in ("query", "query.csv"):
        refused = await ada.post(f"{HREF}/{path}", sql="delete from members", db="shop")
        assert refused.status_code == 422
        assert "Only one reading" in refused.text
        assert marks(refused).values["sql"] == "delete from members"
    assert "Near: members" in (await ada.get(f"{HREF}?table=member")).text


async def test_a_result_is_downloaded(shop: MariaServer, ada: Browser) -> None:
    await ada.post(CARD, **typed(shop))
    file = await ada.post(f"{HREF}/query.csv", sql="select id, '=cmd()' as word from members order by id", db="shop")
    assert file.headers["content-disposition"] == "attachment; filename*=UTF-8''shop.csv"
    assert file.text.splitlines() == ["id,word", *(f"{number},'=cmd()" for number in (1, 2, 3, 4))]


async def test_a_name_in_any_alphabet_names_the_file(shop: MariaServer, ada: Browser) -> None:
    await ada.post(CARD, **typed(shop, name="склад"))
    file = await ada.post(f"{HREF}/query.csv", sql="select id from members", db="склад")
    named = "attachment; filename*=UTF-8''%D1%81%D0%BA%D0%BB%D0%B0%D0%B4.csv"
    assert (file.status_code, file.headers["content-disposition"]) == (200, named)


async def test_a_result_of_a_tool_is_downloaded_by_its_owner_alone(house: Cortex, ada: Browser, bob: Browser) -> None:
    await house.homes.home_of(ada.user.id).write("files/query-results/0123456789ab.csv", "a\r\n1\r\n")
    link = f"{HREF}/result?name=0123456789ab.csv"
    assert (await ada.get(link)).text == "a\r\n1\r\n"
    assert (await bob.get(link)).status_code == 404
    assert (await ada.get(f"{HREF}/result?name=../../notes/x.csv")).status_code == 404


async def test_it_is_there_only_for_whom_it_is_open_to(shop: MariaServer, ada: Browser, bob: Browser) -> None:
    assert f'href="{HREF}"' not in (await bob.get("/more")).text
    await ada.post(CARD, **typed(shop))
    assert f'href="{HREF}"' in (await bob.get("/more")).text
    await ada.post(f"{CARD}/share", name="shop", people=ada.user.id)
    assert f'href="{HREF}"' not in (await bob.get("/more")).text
    assert "No databases shared" in (await bob.get(HREF)).text
    assert (await bob.get(f"{HREF}?db=shop")).status_code == 404
    refused = await bob.post(f"{HREF}/query", sql="select * from members")
    assert "No databases shared" in refused.text
    assert "Dörte" not in refused.text
    assert (await ada.get(f"{HREF}?db=shop")).status_code == 200


async def test_it_is_there_only_for_who_may_take_its_role(shop: MariaServer, ada: Browser, bob: Browser) -> None:
    await ada.post(CARD, **typed(shop))
    await ada.post(f"{CARD}/share", name="shop", roles="admin")
    assert f'href="{HREF}"' not in (await bob.get("/more")).text
    assert "No databases shared" in (await bob.get(HREF)).text
    for path in ("query", "query.csv"):
        assert "Dörte" not in (await bob.post(f"{HREF}/{path}", sql="select * from members")).text
    assert f'href="{HREF}"' in (await ada.get("/more")).text
    assert (await ada.get(f"{HREF}?db=shop")).status_code == 200
    await ada.post(f"{CARD}/share", name="shop", roles="research")
    assert (await bob.get(f"{HREF}?db=shop")).status_code == 200


async def test_a_statement_is_audited_and_minds_the_stop(
    house: Cortex, shop: MariaServer, ada: Browser, bob: Browser
) -> None:
    await ada.post(CARD, **typed(shop))
    await bob.post(f"{HREF}/query", sql="select name from members", db="shop")
    log = await ada.get("/admin/audit?kind=database.asked")
    assert "from members" in log.text
    for path in (f"{HREF}?db=shop&q=who", f"{HREF}?db=shop&table=members"):
        assert (await bob.get(path)).status_code == 200
    log = await ada.get("/admin/audit?kind=database.browsed")
    assert ("members" in log.text, "who" in log.text) == (True, True)
    await house.stop_all.stop(bob.user, bob.user)
    for path in ("query", "query.csv"):
        stopped = await bob.post(f"{HREF}/{path}", sql="select name from members", db="shop")
        assert (stopped.status_code, "Dörte" in stopped.text) == (422, False)
        assert "work is stopped" in stopped.text
    for path in (HREF, f"{HREF}?db=shop&table=members"):
        stopped = await bob.get(path)
        assert "work is stopped" in stopped.text
        assert ("Dörte" in stopped.text, "who is in" in stopped.text) == (False, False)


async def test_a_refused_statement_is_audited_once(house: Cortex, shop: MariaServer, ada: Browser) -> None:
    await ada.post(CARD, **typed(shop))
    await ada.post(f"{HREF}/query.csv", sql="delete from members", db="shop")
    log = [line async for line in house.audit_log.export(ada.user, AuditFilter(kind="database.asked"))]
    assert str(log).count("delete from members") == 1


async def test_hostile_words_in_rows_stay_text(shop: MariaServer, ada: Browser) -> None:
    await ada.post(CARD, **typed(shop))
    sql = "select '<script>alert(1)</script>' as `<b>x</b>`, 'a\\u202eb' as bidi"
    page = (await ada.post(f"{HREF}/query", sql=sql)).text
    assert "<script>alert(1)" not in page
    assert "<b>x</b>" not in page


async def test_a_database_that_is_away_is_a_sentence(ada: Browser, shop: MariaServer) -> None:
    await ada.post(CARD, **typed(shop, port="1"))
    page = await ada.get(HREF)
    assert page.status_code == 200
    assert "does not answer" in page.text
    card = (await ada.get("/admin/integrations")).text
    assert ("last call failed" in card, "127.0.0.1:1" in card) == (True, True)
