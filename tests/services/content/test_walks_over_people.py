"""What looks after everybody asks who has something to do, once: people who have nothing cost no query each."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from cortex.services.content.file_looks import FileClearing
from cortex.storage.accounts import AccountsRepository
from cortex.storage.home import Homes
from tests.living_house import LivingHouse

Walk = Callable[[LivingHouse], Awaitable[None]]


async def digests(house: LivingHouse) -> None:
    await house.cortex.digests.go_round()


async def clearing(house: LivingHouse) -> None:
    runtime = house.cortex.runtime
    await FileClearing(runtime=runtime, homes=Homes(runtime.settings.home)).clear()


async def looks(house: LivingHouse) -> None:
    reading = house.cortex.document_reading
    accounts, known = await reading.whose()
    for account in accounts:
        await reading.looks.look(account.id, has_known=account.id in known)


@contextmanager
def counted(house: LivingHouse) -> Iterator[list[str]]:
    """The statements that the house sends to its database inside the block."""
    engine, sent = house.cortex.runtime.db.read.sync_engine, list[str]()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    yield sent
    sa.event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize("walk", [digests, clearing, looks], ids=lambda walk: walk.__name__)
async def test_people_who_have_nothing_cost_no_query_each(house: LivingHouse, walk: Walk) -> None:
    for person in (house.admin, house.member):
        await house.cortex.notification_preferences.change(person, digest_hour="8")
    before = await house.cortex.runtime.db.repository(AccountsRepository).list()
    with counted(house) as sent:
        await walk(house)
    assert len(before) == 2
    mine = [one for one in sent if "owner_id = " in one and "DISTINCT" not in one]
    assert mine == []
