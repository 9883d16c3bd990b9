"""Files that are deleted: back within a day, gone for good behind it, and never another file in their place."""

import io
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.base.clock import now
from cortex.base.errors import NotFound
from cortex.storage.documents import AllDocumentsRepository, DocumentRow, DocumentsRepository
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.still_clock import StillClock


@pytest.fixture
def clock() -> StillClock:
    return StillClock(now())


@pytest.fixture
async def house(tmp_path: Path, clock: StillClock) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home", clock=clock) as opened:
        yield opened


def folder(house: LivingHouse) -> Path:
    return house.cortex.homes.home_of(house.admin.id).path


def below(house: LivingHouse) -> list[str]:
    home = folder(house)
    return sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())


async def give(house: LivingHouse, name: str, data: bytes) -> DocumentRow:
    return await house.cortex.documents.give(house.admin, name, io.BytesIO(data), len(data))


async def settled(house: LivingHouse) -> None:
    house.cortex.document_reading.wake()
    assert await house.cortex.document_reading.settled(house.admin.id, PATIENCE_S) == 0


async def test_a_new_file_of_the_same_name_outlives_the_deleted_one(house: LivingHouse, clock: StillClock) -> None:
    documents = house.cortex.documents
    old = await give(house, "a.txt", b"old")
    await documents.delete(house.admin, old.id)
    new = await give(house, "a.txt", b"new")
    assert new.path == old.path
    for days in (0.5, 1):
        clock.forward(days=days)
        await house.cortex.document_reading.clearing.clear()
        with (await documents.opened(house.admin, new.id))[1] as file:
            assert file.read() == b"new"
    assert below(house) == ["files/uploads/a.txt"]
    with pytest.raises(NotFound):
        await documents.bring_back(house.admin, old.id)


async def test_what_stands_where_a_deleted_file_was_is_left_alone(house: LivingHouse) -> None:
    row = await give(house, "a.txt", b"old")
    path = folder(house) / "files" / row.path
    path.unlink()
    (path / "inner").mkdir(parents=True)  # as a program in the folder may
    await house.cortex.documents.delete(house.admin, row.id)
    with pytest.raises(NotFound):
        await house.cortex.documents.bring_back(house.admin, row.id)
    assert (path / "inner").is_dir()


async def test_a_deletion_that_a_kill_broke_off_is_finished_at_the_start(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        row = await give(house, "a.txt", b"words")
        await settled(house)
        rows = house.rows(DocumentsRepository)
        await rows.set_deleted(row.id, is_deleted=True)  # and here the process ends
    async with living_house(tmp_path / "home") as house:
        await house.cortex.document_reading.clearing.clear()
        await house.cortex.document_reading.looks.look(house.admin.id)
        assert (await house.cortex.documents.list(house.admin), below(house)) == ([], [f"removed/{row.id}"])
        assert (await house.cortex.documents.bring_back(house.admin, row.id)).path == "uploads/a.txt"


@pytest.mark.parametrize("is_found", [False, True], ids=["given", "found in the folder"])
async def test_a_file_that_is_deleted_as_its_turn_comes_is_read_once_it_is_back(
    house: LivingHouse, clock: StillClock, *, is_found: bool
) -> None:
    cortex = house.cortex
    row = await give(house, "a.txt", b"One small dog is allowed.")
    await settled(house)
    if is_found:
        (folder(house) / "files/b.txt").write_bytes(b"One small dog is allowed.")
        clock.forward(seconds=timedelta(minutes=5).total_seconds())
        await cortex.document_reading.looks.look(house.admin.id)
        await settled(house)
        row = next(each for each in await cortex.documents.list(house.admin) if each.is_found)
    await cortex.runtime.db.repository(DocumentsRepository, house.admin.id).read_again(row.id, row.size_bytes)
    claimed = await cortex.runtime.db.repository(AllDocumentsRepository).claim()
    await cortex.documents.delete(house.admin, row.id)
    assert (claimed or row).id == row.id
    async with cortex.document_reading.extractor.session() as session:
        await cortex.document_reading._read_one(session, claimed or row)
    await cortex.documents.bring_back(house.admin, row.id)
    clock.forward(minutes=4)  # behind the lease
    await settled(house)
    back, pages = await cortex.documents.text(house.admin, row.id)
    assert (back.state, ["small dog" in page.text for page in pages]) == ("ready", [True])
