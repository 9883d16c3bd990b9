"""Clears away what is left of people's files: by uploads that a kill broke off, and by deletions after a day."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from cortex.services.runtime import Runtime
from cortex.storage.accounts import AccountsRepository
from cortex.storage.documents import AllDocumentsRepository, DocumentsRepository
from cortex.storage.given_files import GivenFiles
from cortex.storage.home import Homes
from cortex.storage.ready_pictures import ReadyPictures

UNDO = timedelta(days=1)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileClearing:
    """At the start, and once a day."""

    runtime: Runtime
    homes: Homes

    async def clear(self) -> None:
        """Of everybody: what killed uploads left, and for good what was deleted more than `UNDO` ago."""
        known = await self.runtime.db.repository(AllDocumentsRepository).ids()
        deleted = await self.runtime.db.repository(AllDocumentsRepository).owners(of_deleted=True)
        for account in await self.runtime.db.repository(AccountsRepository).list():
            try:
                await GivenFiles(home=self.homes.home_of(account.id)).sweep(known)
                if account.id in deleted:
                    await self._clear(account.id, self.runtime.clock() - UNDO)
            except OSError as error:  # one person's folder keeps nobody else's from being cleared
                log.warning("files: the folder of %s was not cleared: %s", account.id, error)

    async def _clear(self, user_id: str, before: datetime) -> None:
        home = self.homes.home_of(user_id)
        files = GivenFiles(home=home)
        documents = self.runtime.db.repository(DocumentsRepository, user_id)
        for row in await documents.deleted(self.runtime.clock()):
            if await documents.at(row.path) is None:  # else its name has gone to another file
                await files.remove(row.id, row.path)  # a kill in the middle of the deletion left it where it was
        for row in await documents.deleted(before):
            await files.forget(row.id)
            while await documents.drop_pages(row.id):
                """Others write in between."""
            await documents.remove(row.id)
            if not await documents.has(row.sha256):
                await ReadyPictures(home=home).remove(row.sha256)
