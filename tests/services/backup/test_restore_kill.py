"""A restore that is killed at any moment leaves the old home or the new one, whole, once Cortex starts again."""

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from cortex.base.settings import Settings
from cortex.services.backup import restore
from cortex.services.backup.backups import Backups
from tests.databases import house_settings, is_on_postgresql, rows_of
from tests.living_house import living_house

WRITES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.truncate")
OLD, NEW = "before", "after"


async def _home(home: Path, words: str) -> None:
    async with living_house(home) as house:
        await house.say(await house.conversation(), "hello")
        files = home / house.admin.id / "files"
        files.mkdir(parents=True, exist_ok=True)
        for name in ("one", "two", "three"):
            (files / name).write_text(words)
        (home / "persona.md").write_text(words)


def _state(home: Path) -> tuple[set[str], int, list[str]]:
    """The texts of all files, how many conversations there are, and which files stand at the top."""
    settings = house_settings(home)

    async def opens() -> None:
        async with living_house(home):
            pass

    asyncio.run(opens())
    with rows_of(home) as rows:
        count = rows.execute(text("SELECT count(*) FROM conversations")).scalar_one()
    texts = {path.read_text() for path in [*home.glob("0*/files/*"), home / "persona.md"]}
    names = [path.name for path in sorted(home.glob("0*/files/*"))]
    assert not restore.is_pending(settings.home)
    return texts, count, names


def _killed_at(home: Path, file: Path, moment: int) -> bool:
    """Restore in a process that kills itself before its write number `moment`; whether it came that far."""
    pid = os.fork()
    if pid == 0:
        left = moment

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            is_write = event in WRITES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & 3)
            if is_write and str(home) in str(arguments[0]):
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        code = 1
        try:
            settings = house_settings(home)
            sys.addaudithook(hook)
            asyncio.run(_restored(home, file, settings))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


async def _restored(home: Path, file: Path, settings: Settings) -> None:
    if not await restore.finish(settings):
        await restore.prepare(settings, file, "")
        await restore.finish(settings)


@pytest.mark.skipif(is_on_postgresql(), reason="moves of files; the database's part is one transaction of psql")
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.full), 9], ids=["each write", "a ninth"])
def test_a_killed_restore_leaves_one_home_whole(tmp_path: Path, every: int) -> None:
    home, file = tmp_path / "home", tmp_path / "file"
    asyncio.run(_home(home, NEW))
    made = asyncio.run(Backups(house_settings(home)).make())
    (home / "backups" / made.name).rename(file)
    asyncio.run(_home(home, OLD))  # a second conversation, and other texts
    (next(home.glob("0*/files")) / "four").write_text(OLD)
    old, new = _state(home), ({NEW}, 1, ["one", "three", "two"])
    assert old == ({OLD}, 2, ["four", "one", "three", "two"])
    keep = tmp_path / "keep"
    shutil.copytree(home, keep)
    seen = []
    moment = 0
    while True:
        shutil.rmtree(home)
        shutil.copytree(keep, home)
        if not _killed_at(home, file, moment):
            break
        again = _killed_at(home, file, 2)  # and once more while it is finished
        settings = house_settings(home)
        asyncio.run(restore.finish(settings))
        found = _state(home)
        assert found in (old, new), (moment, again)
        seen.append(found == new)
        moment += every
    assert _state(home) == new
    assert {True, False} == set(seen)  # on both sides of the moment that decides
