"""Pages ask the database as often for many rows as for a few, and read as little of it after a year as after a season.

How much is read is counted in steps of SQLite's program for a statement, of which each row that it looks at takes some.
"""

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection, event, text

from cortex.app import Cortex
from cortex.services.mail.accounts import ACCOUNTS_MOST
from tests import many_rows
from tests.databases import copy_home, house_settings
from tests.web.conftest import logged_in
from tests.web.talks import talked_home
from web.app import create_app
from web.stretch import PAGE_ROWS

FEW, MANY = 2, 30
MORE = 120  # more than any page shows of one list
NAMED_BYTES = 40  # a row more may bring: its name, among those to choose from or in a finding of the doctor
OF_FEW = {"/mail"}  # what nobody has many of: ten mail accounts at most, which are shown at once
# Where each list has its rows, by the name of the start in the address.
ROWS = [
    ("/files", "start", r'<a href="/files/([^"/?]+)"'),
    ("/journals", "start", r'<tr id="journal-([^"]+)"'),
    ("/reminders", "next", r'<tr id="next-([^"]+)"'),
    ("/tasks", "start", r'<a href="/tasks/([^"/?]+)"'),
    ("/tasks", "offers", r'action="/lists/([^"/?]+)/accept"'),
    ("/memory", "fresh", r'<tr id="fact-([^"]+)"'),
    ("/account/sign-in", "logins", r'action="/account/logins/([^"/]+)/end"'),
    ("/shared", "start", r'<a href="/shared/([^"/?]+)"'),
    ("/snippets", "start", r'action="/snippets/([^"/?]+)/use"'),
    ("/admin/coding", "start", r'<tr id="coding-([^"]+)"'),
]
SEARCHES = {"/search?q=milk", "/files?q=x", "/jobs?q=x", "/journals?q=x"}
ASKED = re.compile(r'href="(/(?:admin/)?[a-z-]+)"')
OF_TURNS = re.compile(r'href="(/(?:c|runs|turns)/[^"#]+)"')
GROWING = frozenset(
    {
        "api_requests",
        "approvals",
        "calls",
        "conversations",
        "deliveries",
        "events",
        "messages",
        "notices",
        "plans",
        "rounds",
        "slots",
        "summaries",
        "turns",
        "undos",
    }
)
SEASON, YEAR = 70, 350  # copies, each a day earlier: more than a page lists, and than any page sums over
EVERY = 10  # steps between two counts
ROOM = 300  # steps that a statement may differ by
READS_ALL = "title_words LIKE"  # a search in titles reads those of all the person's chats
LOOKS = ("SCAN", "SEARCH")
INDEXES = re.compile(r"(\w+)_index MATCH")


async def test_a_page_asks_the_database_as_often_for_many_rows_as_for_a_few(tmp_path: Path) -> None:
    async with _house(tmp_path / "few", FEW) as (house, http):
        few = await _statements(house, http)
    async with _house(tmp_path / "many", MANY) as (house, http):
        many = await _statements(house, http)
    assert {"/tasks", "/usage", "/admin/budgets", "/more", "/jobs", "/notifications"} <= few.keys()
    assert {path: len(said) for path, said in many.items()} == {path: len(said) for path, said in few.items()}


async def test_a_page_reads_as_little_after_a_year_as_after_a_season(tmp_path: Path) -> None:
    read = []
    for times in (SEASON, YEAR):
        copies = _house(tmp_path / f"{times}", times, only=GROWING, apart=timedelta(days=1))
        async with copies as (house, http):
            read.append(await _steps(house, http, (await talked_home()).kitchen))
    season, year = read
    assert len(season) > 50
    assert season.keys() == year.keys()
    more: dict[str, list[str]] = {}
    for path, statements in year.items():
        for said, steps in statements.items():
            if READS_ALL not in said and steps > season[path][said] * 1.2 + ROOM:
                more.setdefault(said, []).append(f"{path}: {season[path][said]} steps, then {steps}")
    assert not more, "\n".join(f"{said}\n  on {len(paths)} pages, {paths[0]}" for said, paths in more.items())


async def test_a_page_stays_as_long_however_many_rows_there_are(tmp_path: Path) -> None:
    async with _house(tmp_path / "less", MORE) as (_, http):
        less = await _opened(http)
    async with _house(tmp_path / "more", 2 * MORE) as (_, http):
        more = await _opened(http)
    grown = {path: len(text) - len(less[path]) for path, text in more.items()}
    assert ACCOUNTS_MOST < FEW * MANY
    assert {path for path, length in grown.items() if length > MORE * NAMED_BYTES} <= OF_FEW


async def test_every_row_is_on_one_page_of_its_list(tmp_path: Path) -> None:
    async with _house(tmp_path, MORE) as (_, http):
        found = {f"{path}?{by}": await _rows(http, path, by, row) for path, by, row in ROWS}
    assert {where: len(rows) for where, rows in found.items() if not len(rows) == len(set(rows)) >= MORE} == {}


async def _rows(http: httpx.AsyncClient, path: str, by: str, row: str) -> list[str]:
    """What the pages of one list have, as each leads to the next."""
    seen, starts = list[str](), [0]
    while starts:
        shown = (await http.get(path, params={by: starts[0]})).text
        rows = re.findall(row, shown)
        assert 0 < len(rows) <= 2 * PAGE_ROWS, (path, by, starts)
        seen += rows
        links = re.findall(rf'href="{path}\?(?:[^"]*;)?{by}=(\d+)', shown)
        starts = [int(start) for start in links if int(start) > starts[0]]
    return seen


@pytest.mark.names_its_database("the plans of SQLite, which writes no statistics by itself")
async def test_a_search_goes_the_same_way_through_tables_that_statistics_call_small(tmp_path: Path) -> None:
    async with _house(tmp_path, FEW) as (house, http):
        with _said(house) as said:
            for path in sorted(SEARCHES):
                await http.get(path)
        matching = sorted({one for one in said if " MATCH " in one})
        assert sorted(word for one in matching for word in INDEXES.findall(one)) == ["document", "journal", "message"]
        without = [await _way(house, one) for one in matching]
        async with house.runtime.db.session_scope() as session:
            await session.execute(text("ANALYZE"))
        assert [await _way(house, one) for one in matching] == without


async def _way(house: Cortex, statement: str) -> list[str]:
    """The tables in the order in which SQLite would look into them, whatever is asked for."""
    asked = (None,) * statement.count("?")
    async with house.runtime.db.session_scope() as session:
        connection = await session.connection()
        steps = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", asked)
        return [" ".join(step.detail.split()[:2]) for step in steps if step.detail.startswith(LOOKS)]


@asynccontextmanager
async def _house(
    home: Path, times: int, *, only: Collection[str] = (), apart: timedelta = timedelta()
) -> AsyncIterator[tuple[Cortex, httpx.AsyncClient]]:
    """Open a house at rest in which there is so much of everything, or `only` of these, with a browser of its admin."""
    held = await talked_home()
    copy_home(held.home, home)
    async with Cortex.at_rest(house_settings(home)) as house:
        ada = await house.accounts.named("Ada")
        async with house.runtime.db.session_scope() as session:
            connection = await session.connection()
            await connection.run_sync(many_rows.fill, ada.id)
            await connection.run_sync(lambda rows: many_rows.multiply(rows, times, only=only, apart=apart))
        async with (await logged_in(create_app(house), house, "Ada", held.token)).http as http:
            yield house, http


async def _statements(house: Cortex, http: httpx.AsyncClient) -> dict[str, list[str]]:
    """What each page that is reached by two links says to the database, when it is opened a second time."""
    found = {}
    for path in sorted(await _linked(http) | SEARCHES):
        await http.get(path)
        with _said(house) as said:
            answer = await http.get(path)
        assert answer.status_code < 400, (path, answer.status_code)
        found[path] = said
    return found


async def _linked(http: httpx.AsyncClient) -> set[str]:
    paths = {"/c/new"}
    for _ in range(2):
        seen = [(await http.get(path)).text for path in sorted(paths)]
        paths |= {path for page in seen for path in ASKED.findall(page)}
    return paths


async def _steps(house: Cortex, http: httpx.AsyncClient, chat: str) -> Mapping[str, Counter[str]]:
    """The steps of each statement of each page, those of this chat and its turns too, when it is opened again."""
    talk = (await http.get(f"/c/{chat}")).text
    found = {}
    for path in sorted(await _linked(http) | SEARCHES | {f"/c/{chat}", *OF_TURNS.findall(talk)}):
        await http.get(path)
        with _counted(house) as steps:
            answer = await http.get(path)
        assert answer.status_code < 400, (path, answer.status_code)
        found[path] = steps
    return found


@contextmanager
def _counted(house: Cortex) -> Iterator[Counter[str]]:
    """Count the steps of each statement; SQLite calls back from the thread of the connection."""
    counts = Counter[str]()

    def begin(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        def count() -> int:
            counts[statement] += EVERY
            return 0

        _call_back(connection, count, EVERY)

    def end(connection: Connection, *_: object) -> None:
        _call_back(connection, None, 0)

    with _heard(house, "before_cursor_execute", begin), _heard(house, "after_cursor_execute", end):
        yield counts


def _call_back(connection: Connection, count: Callable[[], int] | None, every: int) -> None:
    driver: Any = connection.connection.dbapi_connection
    driver.run_async(lambda bare: bare.set_progress_handler(count, every))


async def _opened(http: httpx.AsyncClient) -> dict[str, str]:
    """Every page that is reached by two links, and searches, as they are shown."""
    return {path: (await http.get(path)).text for path in sorted(await _linked(http) | SEARCHES)}


@contextmanager
def _said(house: Cortex) -> Iterator[list[str]]:
    said = list[str]()

    def hear(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        said.append(statement)

    with _heard(house, "before_cursor_execute", hear):
        yield said


@contextmanager
def _heard(house: Cortex, what: str, hear: Callable[..., None]) -> Iterator[None]:
    engines = {house.runtime.db.read.sync_engine, house.runtime.db.write.sync_engine}
    for engine in engines:
        event.listen(engine, what, hear)
    try:
        yield
    finally:
        for engine in engines:
            event.remove(engine, what, hear)
