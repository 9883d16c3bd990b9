import asyncio
import os
from pathlib import Path

import pytest

from cortex.base.errors import Conflict, NotFound, UserError
from cortex.storage.home import ABSENT, MAX_SIZE_BYTES, Home, Homes

OUTSIDE = [
    "",
    ".",
    "..",
    "../ben/persona.md",
    "notes/../../ben/persona.md",
    "/etc/passwd",
    "notes//a.md",
    "notes/./a.md",
    "notes/",
    ".env",
    "notes/.hidden",
    "notes\\..\\..\\a",
    "C:\\a",
    "a:b",
    "a\x00b",
    "a\nb",
    "\u202egnp.md",
    "\ud800",
    " a",
    "a ",
    "a.",
    "...",
    "x" * 300,
    "/".join("abcdefghij"),
    "%2e%2e/..",
]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Homes(tmp_path).home_of("ann")


@pytest.mark.parametrize("path", OUTSIDE, ids=range(len(OUTSIDE)))
async def test_no_path_leads_outside(home: Home, tmp_path: Path, path: str) -> None:
    for attempt in (home.read(path), home.write(path, "x"), home.remove(path), home.folder(path)):
        with pytest.raises(UserError):
            await attempt
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("user_id", ["", "..", "a/b", ".hidden"])
def test_no_user_id_leads_outside(tmp_path: Path, user_id: str) -> None:
    with pytest.raises(UserError):
        Home(tmp_path, user_id)


async def test_what_was_written_is_read(home: Home) -> None:
    version = await home.write("notes/Gärten & mehr.md", "# Plan\r\n☃", ABSENT)
    assert await home.read("notes/Gärten & mehr.md") == ("# Plan\r\n☃", version)
    assert await home.version("notes/Gärten & mehr.md") == version
    assert await home.version("persona.md") == ABSENT
    assert home.path.joinpath("notes/Gärten & mehr.md").stat().st_mode & 0o777 == 0o600


async def test_an_old_version_overwrites_nothing(home: Home) -> None:
    first = await home.write("persona.md", "one")
    second = await home.write("persona.md", "two", first)
    with pytest.raises(Conflict):
        await home.write("persona.md", "three", first)
    with pytest.raises(Conflict, match="exists already"):
        await home.write("persona.md", "three", ABSENT)
    with pytest.raises(Conflict):
        await home.remove("persona.md", first)
    assert await home.read("persona.md") == ("two", second)
    assert await home.remove("persona.md", second) == ("two", second)
    with pytest.raises(NotFound):
        await home.read("persona.md")


async def test_of_many_writers_with_one_version_one_wins(home: Home) -> None:
    start = await home.write("scratchpad.md", "start")
    outcomes = await asyncio.gather(
        *(home.write("scratchpad.md", f"writer {n}", start) for n in range(20)), return_exceptions=True
    )
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 19
    assert sorted(os.listdir(home.path)) == ["scratchpad.md"]


async def test_links_devices_and_folders_are_not_followed(home: Home, tmp_path: Path) -> None:
    await home.write("notes/a.md", "mine")
    secret = tmp_path / "secret"
    secret.write_text("theirs")
    (home.path / "link.md").symlink_to(secret)
    (home.path / "linked").symlink_to(tmp_path)
    os.mkfifo(home.path / "pipe.md")
    for path in ("link.md", "linked/secret", "pipe.md", "notes"):
        with pytest.raises(NotFound):
            await home.read(path)
        with pytest.raises(NotFound):
            await home.write(path, "mine")
        with pytest.raises(NotFound):
            await home.remove(path)
    assert secret.read_text() == "theirs"
    assert [entry.name for entry in await home.list()] == ["notes"]


async def test_a_home_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "ann").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotFound):
        await Home(tmp_path, "ann").write("a.md", "x")
    assert os.listdir(tmp_path / "elsewhere") == []


async def test_a_folder_is_listed_by_name(home: Home) -> None:
    for name in ("b.md", "A.md", "sub/c.md"):
        await home.write(f"notes/{name}", "four")
    (home.path / "notes" / ".left-over.tmp").write_text("half")
    entries = await home.list("notes")
    assert [(entry.name, entry.is_folder, entry.size_bytes) for entry in entries] == [
        ("A.md", False, 4),
        ("b.md", False, 4),
        ("sub", True, 0),
    ]
    assert await home.list("nowhere") == []


async def test_a_rename_takes_no_others_place(home: Home) -> None:
    await home.write("notes/a.md", "a")
    await home.write("notes/b.md", "b")
    with pytest.raises(Conflict):
        await home.rename("notes/a.md", "notes/b.md")
    await home.rename("notes/a.md", "notes/c.md")
    assert (await home.read("notes/c.md")).text == "a"


async def test_what_is_too_long_or_no_text_is_refused_in_words(home: Home) -> None:
    with pytest.raises(UserError, match="too long"):
        await home.write("a.md", "x" * (MAX_SIZE_BYTES + 1))
    await home.write("a.md", "x")
    (home.path / "a.md").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="UTF-8"):
        await home.read("a.md")


async def test_files_is_a_real_folder_for_the_file_tools(home: Home) -> None:
    assert await home.folder("files") == home.path / "files"
    assert (home.path / "files").is_dir()
