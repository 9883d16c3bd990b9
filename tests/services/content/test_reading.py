"""Documents are read in the background: what was given, what tools made, once each, also across a kill."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.errors import NotFound, ToolFailed
from cortex.base.user import User
from cortex.ports.documents import DocumentTexts
from cortex.storage.documents import AllDocumentsRepository, DocumentsRepository
from tests.living_house import LivingHouse, living_house
from tests.made_documents import docx
from tests.patience import PATIENCE_S

PETS = "# Pets\n\nOne small dog is allowed.\n"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path) as opened:
        yield opened


def folder(house: LivingHouse, user: User) -> Path:
    own = house.cortex.homes.home_of(user.id).path / "files"
    own.mkdir(parents=True, exist_ok=True)
    return own


def keep(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PETS)


def documents(house: LivingHouse, user: User) -> DocumentTexts:
    return house.cortex.scope.provide(DocumentTexts, user.id)


async def read(house: LivingHouse, user: User) -> None:
    """Wait until all that is in the folder was read; a search itself waits for a few seconds only."""
    await house.cortex.document_reading.looks.look(user.id)
    house.cortex.document_reading.wake()
    assert await house.cortex.document_reading.settled(user.id, PATIENCE_S) == 0


async def found(house: LivingHouse, user: User, query: str) -> list[tuple[str, int]]:
    await read(house, user)
    return [(hit.path, hit.number) for hit in (await documents(house, user).search(query)).hits]


async def test_files_are_found_changed_and_forgotten_as_the_folder_is(house: LivingHouse) -> None:
    lease = folder(house, house.admin) / "lease.docx"
    lease.write_bytes(docx("<w:p><w:r><w:t>One small dog is allowed.</w:t></w:r></w:p>"))
    (folder(house, house.admin) / ".secret.md").write_text(PETS)
    assert await found(house, house.admin, "dogs") == [("lease.docx", 1)]
    assert await found(house, house.member, "dogs") == []
    lease.write_bytes(docx("<w:p><w:r><w:t>No cats, and no others.</w:t></w:r></w:p>"))
    os.utime(lease, (1, 1))
    assert (await found(house, house.admin, "dogs"), await found(house, house.admin, "cats")) == (
        [],
        [("lease.docx", 1)],
    )
    lease.unlink()
    assert await found(house, house.admin, "cats") == []


async def test_a_file_that_was_only_touched_is_not_read_again(house: LivingHouse) -> None:
    note = folder(house, house.admin) / "pets.md"
    note.write_text(PETS)
    assert await found(house, house.admin, "dog") == [("pets.md", 1)]
    rows = house.rows(DocumentsRepository)
    (before,) = await rows.list()
    os.utime(note, (1, 1))
    assert await found(house, house.admin, "dog") == [("pets.md", 1)]
    (after,) = await rows.list()
    assert (after.read_at, after.state) == (before.read_at, "ready")
    assert after.changed_at != before.changed_at


async def test_what_a_killed_process_was_reading_is_read_at_the_next_start(tmp_path: Path) -> None:
    async with living_house(tmp_path) as house:
        (folder(house, house.admin) / "pets.md").write_text(PETS)
        db = house.cortex.runtime.db
        await house.cortex.document_reading.looks.look(house.admin.id)
        await db.repository(AllDocumentsRepository).claim()  # as a process that dies right behind it
    async with living_house(tmp_path) as house:
        assert await found(house, house.admin, "dog") == [("pets.md", 1)]
        rows = house.rows(DocumentsRepository)
        assert [row.state for row in await rows.list()] == ["ready"]


async def test_names_that_nobody_can_write_keep_no_other_file_from_being_read(house: LivingHouse) -> None:
    own = os.fsencode(folder(house, house.admin))
    names = (b"a\xff.txt", b"d\xfe/in.txt", b"~away/in.txt", b"two\nlines.txt", b"<img src=x onerror=alert(1)>.txt")
    for name in (*names, b"gpj\xe2\x80\xaetxt.txt", b"x/" * 8 + b"y" * 200 + b".txt", b"-rf.txt"):
        keep(Path(os.fsdecode(own + b"/" + name)))
    deep = folder(house, house.admin)
    for _ in range(12):
        deep /= "z" * 100  # longer than a path may be
        deep.mkdir()
    keep(deep / "in.txt")
    readable = {
        "two\nlines.txt",
        "<img src=x onerror=alert(1)>.txt",
        "gpj\u202etxt.txt",
        "x/" * 8 + "y" * 200 + ".txt",
        "-rf.txt",
    }
    async with asyncio.timeout(PATIENCE_S):
        hits: set[str] = set()
        while not hits >= readable:  # a look that had begun by itself may have passed the last of them by
            hits = {path for path, _ in await found(house, house.admin, "dog")}
    assert hits == readable


async def test_a_link_to_another_persons_file_is_not_read(house: LivingHouse) -> None:
    (folder(house, house.member) / "pets.md").write_text(PETS)
    (folder(house, house.admin) / "theirs").symlink_to(folder(house, house.member))
    (folder(house, house.admin) / "pets.md").symlink_to(folder(house, house.member) / "pets.md")
    assert await found(house, house.admin, "dog") == []
    with pytest.raises(ToolFailed, match="link"):
        await documents(house, house.admin).read("theirs/pets.md", 1, None)
    with pytest.raises(NotFound):
        await documents(house, house.admin).read("none.pdf", 1, None)


async def test_a_file_with_no_text_says_why(house: LivingHouse) -> None:
    (folder(house, house.admin) / "lease.pdf").write_bytes(b"%PDF-1.7 and no more")
    await read(house, house.admin)
    with pytest.raises(ToolFailed, match=r"damaged and cannot be read|in a sandbox only"):
        await documents(house, house.admin).read("lease.pdf", 1, None)
