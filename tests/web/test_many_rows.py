"""Pages that list things ask the database as often for many as for a few."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
from sqlalchemy import event

from cortex.app import Cortex
from tests import many_rows
from tests.databases import copy_home, house_settings
from tests.web.conftest import logged_in
from tests.web.talks import talked_home
from web.app import create_app

FEW, MANY = 2, 30
SEARCHES = {"/search?q=milk", "/files?q=x", "/jobs?q=x"}
ASKED = re.compile(r'href="(/(?:admin/)?[a-z-]+)"')


async def test_a_page_asks_the_database_as_often_for_many_rows_as_for_a_few(tmp_path: Path) -> None:
    async with _house(tmp_path / "few", FEW) as (house, http):
        few = await _statements(house, http)
    async with _house(tmp_path / "many", MANY) as (house, http):
        many = await _statements(house, http)
    assert {"/tasks", "/usage", "/admin/budgets", "/more", "/jobs", "/notifications"} <= few.keys()
    assert {path: len(said) for path, said in many.items()} == {path: len(said) for path, said in few.items()}


@asynccontextmanager
async def _house(home: Path, times: int) -> AsyncIterator[tuple[Cortex, httpx.AsyncClient]]:
    """Open a house at rest in which there is so much of everything, with a browser of its admin."""
    held = await talked_home()
    copy_home(held.home, home)
    async with Cortex.at_rest(house_settings(home)) as house:
        ada = await house.accounts.named("Ada")
        async with house.runtime.db.session_scope() as session:
            connection = await session.connection()
            await connection.run_sync(many_rows.fill, ada.id)
            await connection.run_sync(many_rows.multiply, times)
        async with (await logged_in(create_app(house), house, "Ada", held.token)).http as http:
            yield house, http


async def _statements(house: Cortex, http: httpx.AsyncClient) -> dict[str, list[str]]:
    """What each page that is reached by two links says to the database, when it is opened a second time."""
    paths = {"/c/new"}
    for _ in range(2):
        seen = [(await http.get(path)).text for path in sorted(paths)]
        paths |= {path for text in seen for path in ASKED.findall(text)}
    found = {}
    for path in sorted(paths | SEARCHES):
        await http.get(path)
        with _said(house) as said:
            answer = await http.get(path)
        assert answer.status_code < 400, (path, answer.status_code)
        found[path] = said
    return found


@contextmanager
def _said(house: Cortex) -> Iterator[list[str]]:
    said = list[str]()
    engines = {house.runtime.db.read.sync_engine, house.runtime.db.write.sync_engine}

    def hear(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        said.append(statement)

    for engine in engines:
        event.listen(engine, "before_cursor_execute", hear)
    try:
        yield said
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", hear)
