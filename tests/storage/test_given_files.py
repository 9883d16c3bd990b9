"""Files that people gave, on the disk: whole or not at all, whenever a kill comes; never in place of another."""

import asyncio
import fcntl
import io
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from cortex.base.errors import NotFound, UserError
from cortex.storage.given_files import GivenFiles
from cortex.storage.home import Homes
from tests.patience import PATIENCE_S

KILLED = """
import asyncio, io, os, signal, sys
from pathlib import Path
from cortex.storage.given_files import GivenFiles
from cortex.storage.home import Homes

class Source(io.BytesIO):
    def read(self, size=-1):
        if self.tell() >= int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(100)

async def main():
    files = GivenFiles(home=Homes(Path(sys.argv[1])).home_of("ann"))
    async with files.receive("one", "a.txt", Source(b"x" * 1000)):
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.fixture
def files(tmp_path: Path) -> GivenFiles:
    return GivenFiles(home=Homes(tmp_path).home_of("ann"))


def below(files: GivenFiles) -> list[str]:
    home = files.home.path
    return sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())


async def given(files: GivenFiles, id: str, name: str, data: bytes = b"words") -> str:
    async with files.receive(id, name, io.BytesIO(data)) as file:
        return file.path


async def test_names_that_are_taken_get_a_number(files: GivenFiles) -> None:
    assert [await given(files, id, "../a.txt", id.encode()) for id in ("one", "two", "three")] == [
        "uploads/a.txt",
        "uploads/a (2).txt",
        "uploads/a (3).txt",
    ]
    with await files.opened("uploads/a (2).txt") as file:
        assert file.read() == b"two"
    assert below(files) == ["files/uploads/a (2).txt", "files/uploads/a (3).txt", "files/uploads/a.txt"]


async def test_what_is_refused_or_not_made_known_leaves_nothing(files: GivenFiles) -> None:
    for name, data in (("a.zip", b"PK\3\4"), ("empty.txt", b"")):
        with pytest.raises(UserError):
            await given(files, "one", name, data)
    with pytest.raises(RuntimeError):
        async with files.receive("two", "a.txt", io.BytesIO(b"words")):
            raise RuntimeError("the database is away")
    assert below(files) == []


async def test_a_cancelled_one_leaves_nothing(files: GivenFiles) -> None:
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Source(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            loop.call_soon_threadsafe(began.set)
            return super().read(100)

    work = asyncio.create_task(given_from(files, Source(b"x" * 1_000_000)))
    await began.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert below(files) == []


async def given_from(files: GivenFiles, source: io.BytesIO) -> None:
    async with files.receive("one", "a.txt", source):
        pass


@pytest.mark.parametrize("at", [*range(0, 1000, 100), 10_000], ids=lambda at: f"at {at}")
async def test_a_kill_at_any_tenth_leaves_nothing_once_it_is_swept(files: GivenFiles, at: int) -> None:
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", KILLED, str(files.home.path.parent), str(at)],
        check=False,
        timeout=PATIENCE_S,
    )
    assert (ended.returncode, bool(below(files))) == (-signal.SIGKILL, True)
    assert (await files.sweep(frozenset()), below(files)) == (1, [])


async def test_a_kill_behind_the_commit_keeps_the_file(files: GivenFiles) -> None:
    await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", KILLED, str(files.home.path.parent), "10000"],
        check=False,
        timeout=PATIENCE_S,
    )
    assert (await files.sweep(frozenset({"one"})), below(files)) == (1, ["files/uploads/a.txt"])


async def test_what_is_being_received_is_not_swept(files: GivenFiles) -> None:
    async with files.receive("one", "a.txt", io.BytesIO(b"words")):
        assert await files.sweep(frozenset()) == 0
    assert below(files) == ["files/uploads/a.txt"]


async def test_files_that_come_while_sweeps_run_all_arrive(files: GivenFiles) -> None:
    is_over = threading.Event()

    def sweep_on() -> None:
        while not is_over.is_set():
            files._sweep(frozenset())

    sweeping = asyncio.create_task(asyncio.to_thread(sweep_on))
    try:
        for number in range(200):
            await given(files, str(number), f"{number}.txt", b"words")
    finally:
        is_over.set()
        await sweeping
    assert len(below(files)) == 200


async def test_a_file_swept_before_it_was_locked_is_begun_again(
    files: GivenFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, swept = fcntl.flock, list[int]()

    def swept_first(file: int | IO[bytes], how: int) -> None:
        if not swept:
            swept.append(0)
            swept[0] = files._sweep(frozenset())
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", swept_first)
    assert await given(files, "one", "a.txt", b"words") == "uploads/a.txt"
    assert (swept, below(files)) == ([1], ["files/uploads/a.txt"])


async def test_a_removed_one_comes_back_beside_what_took_its_name(files: GivenFiles) -> None:
    path = await given(files, "one", "a.txt", b"first")
    await files.remove("one", path)
    with pytest.raises(NotFound):
        await files.opened(path)
    await given(files, "two", "a.txt", b"second")
    assert await files.bring_back("one", path) == "uploads/a (2).txt"
    await files.remove("one", "uploads/a (2).txt")
    await files.forget("one")
    with pytest.raises(NotFound):
        await files.bring_back("one", path)
    assert below(files) == ["files/uploads/a.txt"]


async def test_links_are_not_followed(files: GivenFiles, tmp_path: Path) -> None:
    await given(files, "one", "a.txt")
    secret = tmp_path / "secret"
    secret.write_text("of another")
    os.symlink(secret, files.home.path / "files/uploads/b.txt")
    os.symlink(files.home.path / "files/uploads", files.home.path / "files/way")
    os.mkfifo(files.home.path / "files/uploads/pipe.txt")
    for path in ("uploads/b.txt", "way/a.txt", "uploads/pipe.txt", "uploads"):
        with pytest.raises(NotFound):
            await files.opened(path)


async def test_a_link_that_comes_in_between_is_not_followed(files: GivenFiles, tmp_path: Path) -> None:
    """A program in the folder puts a link in the file's place, and the file back, as fast as it can."""
    path = await given(files, "one", "a.txt", b"own")
    (secret := tmp_path / "secret").write_bytes(b"of another")
    place, away, link = (files.home.path / "files" / name for name in (path, "away.txt", "link.txt"))
    link.symlink_to(secret)
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for one, other in ((place, away), (link, place), (place, link), (away, place)):
                one.rename(other)

    swapping = asyncio.create_task(asyncio.to_thread(swap))
    read = set()
    for _ in range(500):
        with suppress(NotFound), await files.opened(path) as file:
            read.add(file.read())
    over.set()
    await swapping
    assert read == {b"own"}
