"""What a page shows was read together: one transaction a look, whatever the page is made of."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import event

from cortex.app import Cortex
from tests.web.conftest import Browser


@contextmanager
def transactions(house: Cortex) -> Iterator[list[str]]:
    """The ends of what is read while the block goes on."""
    ends: list[str] = []
    engine = house.runtime.db.read.sync_engine

    def ended(_connection: object) -> None:
        ends.append("ended")

    for kind in ("commit", "rollback"):
        event.listen(engine, kind, ended)
    try:
        yield ends
    finally:
        for kind in ("commit", "rollback"):
            event.remove(engine, kind, ended)


@pytest.mark.parametrize(
    "path", ["/reminders", "/notes", "/account/chats", "/account/sign-in", "/admin/tools", "/notifications"]
)
async def test_a_page_reads_all_it_shows_in_one_transaction(house: Cortex, ada: Browser, path: str) -> None:
    await ada.get(path)
    with transactions(house) as ends:
        assert (await ada.get(path)).status_code == 200
    assert len(ends) == 1
