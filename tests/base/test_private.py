"""The walk through HOME: what it closes, what it leaves, and what it never follows or opens."""

import os
import stat
import threading
from pathlib import Path

import pytest

from cortex.base import private
from cortex.base.errors import ConfigError


def bits(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def made(path: Path, mode: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("before", "after"),
    [(0o644, 0o600), (0o666, 0o600), (0o755, 0o700), (0o4755, 0o700), (0o444, 0o600), (0o400, 0o400), (0o600, 0o600)],
    ids=oct,
)
async def test_a_file_keeps_whether_its_owner_may_run_it(tmp_path: Path, before: int, after: int) -> None:
    path = made(tmp_path / "a" / "file", before)
    await private.settle(tmp_path)
    assert (bits(path), bits(path.parent), bits(tmp_path)) == (after, 0o700, 0o700)


@pytest.mark.parametrize(("is_used", "said"), [(False, ""), (True, "removed permissions of other users")])
async def test_what_a_checkout_brought_is_closed_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_used: bool, said: str
) -> None:
    caplog.set_level("INFO")
    path = made(tmp_path / "example" / "README.md", 0o644)
    if is_used:
        made(tmp_path / private.KEY, 0o600)
    await private.settle(tmp_path)
    assert bits(path) == 0o600
    assert (said in caplog.text, bool(caplog.text)) == (True, is_used)


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o500, 0o777], ids=oct)
async def test_a_folder_is_its_owners_to_enter(tmp_path: Path, mode: int) -> None:
    inner = made(tmp_path / "a" / "file", 0o644)
    inner.parent.chmod(mode)
    await private.settle(tmp_path)
    assert (bits(inner.parent), bits(inner)) == (0o700, 0o600)


def test_looking_changes_nothing_and_names_the_first_few(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    paths = [made(tmp_path / f"{number}.txt", 0o640) for number in range(1_200)]
    seen = private.look(tmp_path)
    assert str(seen.loose) == "'0.txt', '1.txt', '10.txt' and 1,197 more"
    assert {bits(path) for path in paths} == {0o640}


async def test_pipes_are_closed_without_being_opened_and_links_are_left(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", made(tmp_path / "outside" / "a.txt", 0o644)
    home.mkdir()
    os.mkfifo(home / "pipe", 0o666)
    (home / "pipe").chmod(0o666)
    for name, place in {"file": outside, "folder": outside.parent, "nowhere": tmp_path / "gone", "self": home}.items():
        (home / name).symlink_to(place)
    await private.settle(home)
    assert bits(home / "pipe") == 0o600
    assert (bits(outside), bits(outside.parent)) == (0o644, 0o755)


def test_no_link_put_in_the_way_meanwhile_is_followed(tmp_path: Path) -> None:
    """Another program swaps a file for a link as fast as it can: what the link names keeps its mode."""
    home, outside = tmp_path / "home", made(tmp_path / "outside.txt", 0o644)
    swapped = made(home / "swapped", 0o644)
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            (home / "link").symlink_to(outside)
            (home / "link").replace(swapped)
            made(home / "file", 0o644).replace(swapped)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(400):
            private.look(home, is_mending=True)
    finally:
        is_over.set()
        swapping.join()
    assert bits(outside) == 0o644


async def test_a_home_reached_by_a_link_is_settled(tmp_path: Path) -> None:
    path = made(tmp_path / "real" / "a.txt", 0o644)
    (tmp_path / "home").symlink_to(tmp_path / "real")
    await private.settle(tmp_path / "home")
    assert (bits(path), bits(path.parent)) == (0o600, 0o700)


def test_folders_in_folders_without_end_are_walked(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1_500):  # deeper than Python recurses, than files may be open, than a path may be long
        os.mkdir("deeper", dir_fd=handle)
        below = os.open("deeper", os.O_RDONLY, dir_fd=handle)
        os.fchmod(below, 0o755)
        os.close(handle)
        handle = below
    seen = private.look(tmp_path, is_mending=True)
    assert (seen.loose.count, seen.stuck.count) == (1_500, 0)
    assert stat.S_IMODE(os.fstat(handle).st_mode) == 0o700
    for _ in range(1_500):
        above = os.open("..", os.O_RDONLY, dir_fd=handle)
        os.rmdir("deeper", dir_fd=above)
        os.close(handle)
        handle = above
    os.close(handle)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file to somebody else")
async def test_what_another_user_owns_is_named_and_left(tmp_path: Path) -> None:
    theirs, ours = made(tmp_path / "b.txt", 0o644), made(tmp_path / "a.txt", 0o644)
    made(tmp_path / "lost+found" / "x", 0o600)
    os.chown(tmp_path / "lost+found", 12_345, 12_345)
    os.chown(theirs, 12_345, 12_345)
    with pytest.raises(ConfigError, match=r"another user owns files in .*: 'b\.txt'\. .*chown -R 0 "):
        await private.settle(tmp_path)
    assert (bits(theirs), bits(ours)) == (0o644, 0o600)


def test_folders_on_the_way_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private.make_file(tmp_path / "a" / "b" / "c.txt")
        private.write_beside(tmp_path / "a" / "d.txt", b"x")
    finally:
        os.umask(before)
    assert [bits(tmp_path / one) for one in ("a", "a/b", "a/b/c.txt", "a/d.txt")] == [0o700, 0o700, 0o600, 0o600]
