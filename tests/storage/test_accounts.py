import asyncio
from datetime import timedelta

import pytest

from cortex.base.errors import Conflict
from cortex.storage.accounts import AccountsRepository, AllLoginsRepository, LoginsRepository
from cortex.storage.db import Database
from cortex.storage.preferences import PreferencesRepository
from tests.patience import PATIENCE_S
from tests.still_clock import StillClock

WINDOW, LONGEST = timedelta(minutes=15), timedelta(minutes=1)


async def test_of_many_tries_at_once_only_the_free_ones_are_heard(db: Database) -> None:
    accounts = db.repository(AccountsRepository)
    waits = await asyncio.gather(*(accounts.try_now("account:x", 5, WINDOW, LONGEST) for _ in range(30)))
    assert sorted(waits) == [0.0] * 5 + [1.0] * 25
    assert await accounts.try_now("account:y", 5, WINDOW, LONGEST) == 0.0


async def test_the_wait_doubles_up_to_its_longest_and_is_forgotten_in_time(db: Database, clock: StillClock) -> None:
    accounts, waits = db.repository(AccountsRepository), []
    for _ in range(9):
        assert await accounts.try_now("k", 1, WINDOW, LONGEST) == 0.0
        waits.append(await accounts.try_now("k", 1, WINDOW, LONGEST))
        clock.forward(seconds=waits[-1])
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    clock.forward(minutes=16)
    await accounts.try_now("k", 1, WINDOW, LONGEST)
    assert await accounts.try_now("k", 1, WINDOW, LONGEST) == 1.0
    await accounts.give_try_back("k")
    assert await accounts.try_now("k", 1, WINDOW, LONGEST) == 0.0
    await accounts.forget_tries("k")
    assert await accounts.try_now("k", 1, WINDOW, LONGEST) == 0.0


async def test_a_link_is_used_once(db: Database, clock: StillClock, ann: str) -> None:
    accounts = db.repository(AccountsRepository)
    await accounts.add_link("t1", None, clock() + WINDOW)
    await accounts.add_link("t2", ann, clock() + WINDOW)
    assert sorted(await asyncio.gather(*(accounts.use_link("t1") for _ in range(5)))) == [False] * 4 + [True]
    link = await accounts.link("t2")
    assert link is not None
    assert link.account_id == ann
    clock.forward(minutes=16)
    assert await accounts.link("t2") is None
    assert await accounts.use_link("t2") is False


async def test_of_two_who_take_one_name_at_once_one_gets_it(db: Database) -> None:
    accounts = db.repository(AccountsRepository)
    outcomes = await asyncio.gather(
        accounts.add("1", "Ann", "admin", None, "UTC"),
        accounts.add("2", "ANN", "member", None, "UTC"),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes].count(Conflict) == 1
    assert await accounts.count() == 1


async def test_a_token_opens_its_own_login_only(db: Database, clock: StillClock, ann: str, ben: str) -> None:
    for owner_id in (ann, ben):
        await db.repository(LoginsRepository, owner_id).add(
            f"l-{owner_id}", f"t-{owner_id}", "::1", "Firefox", clock() + WINDOW
        )
    login = await db.repository(AllLoginsRepository).of_token("t-ann")
    assert login is not None
    assert login.owner_id == ann
    assert await db.repository(LoginsRepository, ben).end("l-ann") is False
    assert await db.repository(LoginsRepository, ben).end_all() == 1
    await db.repository(AccountsRepository).set_active(ann, False)
    assert await db.repository(AllLoginsRepository).of_token("t-ann") is None


async def test_writers_that_are_cancelled_leave_the_database_usable(db: Database, ann: str) -> None:
    async def write(number: int) -> None:
        async with db.transaction(ann) as repository:
            await repository(PreferencesRepository).set(f"a{number}", 1)
            await asyncio.sleep(0.001 * (number % 7))
            await repository(PreferencesRepository).set(f"b{number}", 1)

    for moment in range(12):
        workers = [asyncio.create_task(write(number)) for number in range(10)]
        await asyncio.sleep(0.002 * moment)
        for worker in workers[::2]:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    async with asyncio.timeout(PATIENCE_S):
        await write(100)
    kept = await db.repository(PreferencesRepository, ann).all()
    assert {key[1:] for key in kept if key[0] == "a"} == {key[1:] for key in kept if key[0] == "b"}
    assert "b100" in kept


@pytest.mark.parametrize("name", ["Ａnn", "ann ", "ANN"], ids=["wide", "blank", "case"])  # noqa: RUF001 - on purpose
async def test_a_name_is_found_in_any_spelling(db: Database, ann: str, name: str) -> None:
    account = await db.repository(AccountsRepository).named(name)
    assert account is not None
    assert account.id == ann
