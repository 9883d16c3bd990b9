"""Everything that a person owns here as one archive: their files, their conversations to read, their rows to process.

Keys, logins and tokens are left out: they are of no use elsewhere and open doors here.
"""

import asyncio
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cortex.base.background import handed
from cortex.base.ids import new_id
from cortex.base.user import User
from cortex.services.chat.conversations import ConversationsService
from cortex.services.runtime import Runtime
from cortex.storage.given_files import INCOMING, PICTURES, REMOVED
from cortex.storage.home import Homes
from cortex.storage.owned import OwnedRepository

FOLDER = "exports"
PASSED_OVER = (FOLDER, "imports", INCOMING, REMOVED, PICTURES)
PAGE = 200
ABOUT = """Everything that Cortex keeps of {name}, {at}.

conversations/  each conversation as Markdown
data/           every table, a row a line, as JSON: tasks, jobs, journals, memory, settings, what was spent and so on
files/          the person's folder: notes, skills, roles, files, the list of models

Left out: keys, passwords, logins, tokens and the addresses of devices.
"""


class Belongings(Struct, frozen=True, kw_only=True):
    """Writes the archives."""

    runtime: Runtime
    homes: Homes
    conversations: ConversationsService

    async def archive(self, user: User) -> Path:
        """A new archive; whoever asked for it removes it again."""
        folder = await self.homes.home_of(user.id).folder(FOLDER)
        await asyncio.to_thread(_remove_left, folder)
        path = folder / f"{new_id(self.runtime.clock)}.zip"
        is_whole = False
        try:
            await self._write(user, path)
            is_whole = True
        finally:
            if not is_whole:  # a full disk above all: half an archive would keep it so
                await asyncio.to_thread(path.unlink, missing_ok=True)
        return path

    async def _write(self, user: User, path: Path) -> None:
        with await handed(lambda: _opened(path), zipfile.ZipFile.close) as archive:
            about = ABOUT.format(name=user.name, at=self.runtime.clock().date().isoformat())
            await asyncio.to_thread(archive.writestr, "README.txt", about)
            await self._tables(user, archive)
            await self._conversations(user, archive)
            await asyncio.to_thread(_add_files, archive, self.homes.home_of(user.id).path)

    async def _tables(self, user: User, archive: zipfile.ZipFile) -> None:
        async with self.runtime.db.read_transaction(user.id) as repository:
            owned = repository(OwnedRepository)
            for name in owned.tables():
                with archive.open(f"data/{name}.jsonl", "w", force_zip64=True) as member:
                    async for rows in owned.rows(name):
                        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                        await asyncio.to_thread(member.write, lines.encode("utf-8", "replace"))

    async def _conversations(self, user: User, archive: zipfile.ZipFile) -> None:
        for id in await self.conversations.ids(user):
            text = await self.conversations.export_markdown(user, id)
            await asyncio.to_thread(archive.writestr, f"conversations/{id}.md", text)


def _opened(path: Path) -> zipfile.ZipFile:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
    return zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=3)


def _remove_left(folder: Path) -> None:
    """Return what a download that was broken off left."""
    for path in folder.glob("*.zip"):
        path.unlink(missing_ok=True)


def _add_files(archive: zipfile.ZipFile, home: Path) -> None:
    for path in _files(home):
        try:
            archive.write(path, f"files/{path.relative_to(home).as_posix()}")
        except FileNotFoundError:
            continue  # it went in between


def _files(home: Path) -> Iterator[Path]:
    """Every file, but no link: it may lead to what is another's."""
    for folder, folders, names in os.walk(home):
        here = Path(folder)
        if here == home:
            folders[:] = [name for name in folders if name not in PASSED_OVER]
        folders.sort()
        for name in sorted(names):
            path = here / name
            if path.is_file() and not path.is_symlink():
                yield path
