"""No path leads out of a user's folders, whatever it says, whatever stands there, whoever renames meanwhile."""

import asyncio
import contextlib
import os
import socket
import threading
from pathlib import Path

import pytest

from cortex.base.errors import Conflict, CortexError, NotFound, ToolFailed
from cortex.integrations.files import WRITE_BYTES, Files, Root, roots_from, version_of
from tests.attacks import ways_out
from tests.integrations.paths import TRAVERSALS
from tests.patience import PATIENCE_S

SECRET = b"the secret of the house"


@pytest.fixture(params=[False, True], ids=["openat2", "old-kernel"])
async def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    own = tmp_path / "home" / "ann" / "files"
    (own / "sub" / "deep").mkdir(parents=True)
    (own / "a.txt").write_bytes(b"alpha\n")
    (own / "sub" / "b.txt").write_bytes(b"beta\n")
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (tmp_path / "home" / "cortex.db").write_bytes(SECRET)
    (tmp_path / "home" / "ben").mkdir()
    (tmp_path / "home" / "ben" / "b.txt").write_bytes(SECRET)
    (own / "link.txt").symlink_to(tmp_path / "secret.txt")
    (own / "up").symlink_to(tmp_path)
    (own / "loop").symlink_to("loop")
    (own / "root").symlink_to("/")
    (own / "self").symlink_to("/proc/self/environ")
    os.mkfifo(own / "pipe")
    (own / "cwd").symlink_to("/proc/self/cwd")
    return Files(own, is_old_kernel=request.param)


def _outside(place: Path) -> list[str]:
    return sorted(str(found) for found in place.rglob("*") if "files" not in found.parts)


async def _leaks(files: Files, path: str) -> bool:
    """Whether any of the doors gave out what is outside; an honest refusal or "not there" is none."""
    for door in (files.read, files.stat, files.list):
        try:
            found = await asyncio.wait_for(door(path), PATIENCE_S)
        except CortexError:
            continue
        if found == SECRET or (isinstance(found, list) and any("secret" in entry.path for entry in found)):
            return True
    return False


@pytest.mark.parametrize("path", TRAVERSALS)
async def test_no_path_reads_outside(files: Files, path: str) -> None:
    assert not await _leaks(files, path)


@pytest.mark.parametrize("path", TRAVERSALS)
async def test_no_path_writes_outside(files: Files, tmp_path: Path, path: str) -> None:
    before = _outside(tmp_path)
    for work in (files.write(path, b"mine"), files.remove(path, expected=version_of(SECRET))):
        try:
            await asyncio.wait_for(work, PATIENCE_S)
        except CortexError:
            continue
    assert _outside(tmp_path) == before
    assert (tmp_path / "secret.txt").read_bytes() == SECRET
    assert (tmp_path / "home" / "cortex.db").read_bytes() == SECRET


async def test_no_way_out_of_the_folder_is_open_at_any_door(files: Files, tmp_path: Path) -> None:
    before = _outside(tmp_path)
    leaked = [path for path in ways_out() if await _leaks(files, path)]
    for path in ways_out():
        with contextlib.suppress(CortexError):
            await files.write(path, b"mine")
    assert leaked == []
    assert len(ways_out()) * 4 > 3500
    assert _outside(tmp_path) == before
    assert {(tmp_path / each).read_bytes() for each in ("secret.txt", "home/cortex.db", "home/ben/b.txt")} == {SECRET}


@pytest.mark.parametrize("name", ["pipe", "sub", "link.txt", "loop", "self"])
async def test_what_is_no_ordinary_file_is_refused_at_once(files: Files, name: str) -> None:
    with pytest.raises(ToolFailed):
        await asyncio.wait_for(files.read(name), PATIENCE_S)


async def test_a_socket_is_refused(files: Files, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "home" / "ann" / "files" / "s"))
        with pytest.raises(ToolFailed):
            await files.read("s")


async def test_a_rename_race_never_shows_the_outside(files: Files, tmp_path: Path) -> None:
    own = tmp_path / "home" / "ann" / "files"
    (own / "swap").mkdir()
    (own / "swap" / "secret.txt").write_bytes(b"harmless")
    (own / "evil").symlink_to(tmp_path)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(own / "swap", own / "t")
            os.rename(own / "evil", own / "swap")
            os.rename(own / "swap", own / "evil")
            os.rename(own / "t", own / "swap")

    worker = threading.Thread(target=swap)
    worker.start()
    seen = set()
    try:
        for _ in range(400):
            try:
                seen.add(await files.read("swap/secret.txt"))
            except CortexError:
                seen.add(b"refused")
    finally:
        stop.set()
        worker.join()
    assert SECRET not in seen


async def test_reading_writing_and_listing(files: Files) -> None:
    assert await files.read("sub/b.txt") == b"beta\n"
    made = await files.write("new/folder/c.txt", b"gamma")
    assert (made.before, made.version) == (None, version_of(b"gamma"))
    assert (await files.write("a.txt", b"changed")).before == b"alpha\n"
    assert [entry.path for entry in await files.list("new", is_deep=True)] == ["new/folder", "new/folder/c.txt"]
    kinds = {entry.path: entry.kind for entry in await files.list("")}
    assert (kinds["a.txt"], kinds["sub"], kinds["link.txt"], kinds["pipe"]) == ("file", "folder", "link", "other")
    assert (await files.stat("a.txt")).size_bytes == 7


async def test_a_deep_list_does_not_follow_links(files: Files) -> None:
    assert not any(entry.path.startswith(("up/", "root/", "cwd/")) for entry in await files.list("", is_deep=True))


async def test_a_write_replaces_a_link_instead_of_following_it(files: Files, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed):
        await files.write("link.txt", b"mine")
    assert (tmp_path / "secret.txt").read_bytes() == SECRET


async def test_a_changed_file_is_not_overwritten(files: Files) -> None:
    with pytest.raises(Conflict):
        await files.write("a.txt", b"x", expected=version_of(b"something else"))
    with pytest.raises(Conflict):
        await files.write("a.txt", b"x", expected="")
    with pytest.raises(Conflict):
        await files.remove("a.txt", expected=version_of(b"something else"))
    assert await files.read("a.txt") == b"alpha\n"


async def test_what_is_too_large_is_refused(files: Files, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="1 MB"):
        await files.write("a.txt", b"x" * (WRITE_BYTES + 1))
    (tmp_path / "home" / "ann" / "files" / "big").write_bytes(b"x" * (WRITE_BYTES + 1))
    with pytest.raises(ToolFailed, match="larger"):
        await files.write("big", b"x")
    with pytest.raises(ToolFailed, match="larger"):
        await files.read("big", limit_bytes=10)


async def test_what_is_not_there_is_not_found(files: Files) -> None:
    with pytest.raises(NotFound):
        await files.read("none.txt")
    with pytest.raises(NotFound):
        await files.list("none")


async def test_an_allowed_folder_is_a_root_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "main.py").write_bytes(b"pass")

    async def allowed() -> tuple[Root, ...]:
        return (Root(name="project", path=tmp_path / "project", is_writable=False),)

    files = Files(tmp_path / "own", allowed)
    assert await files.read("project:main.py") == b"pass"
    assert [entry.path for entry in await files.list("project:")] == ["project:main.py"]
    for path in ("project:../own/x", "project:/etc/passwd", "other:main.py", "project:main.py/../../own"):
        with pytest.raises(CortexError):
            await files.read(path)
    with pytest.raises(ToolFailed, match="reading only"):
        await files.write("project:main.py", b"x")


def test_roots_that_touch_the_house_are_left_out(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    for place in (home / "ann", project):
        place.mkdir(parents=True)
    (tmp_path / "alias").symlink_to(home)
    wanted = {
        "project": str(project),
        "house": str(home),
        "above": str(tmp_path),
        "inside": str(home / "ann"),
        "alias": str(tmp_path / "alias"),
        "none": str(tmp_path / "none"),
        "relative": "project",
        "no name": str(project),
    }
    assert [root.name for root in roots_from(wanted, [home])] == ["project"]
    assert roots_from(["project"], [home]) == ()
