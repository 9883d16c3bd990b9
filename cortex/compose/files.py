"""The lowest part of what Cortex is made of: what all else stands on, and the files of people.

`services.py` says how the files of this folder go together.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property

from cortex.base.crypto import Vault
from cortex.base.log import LogBook
from cortex.base.settings import Settings
from cortex.integrations.foreign.documents import DocumentReader
from cortex.integrations.foreign.door import ForeignFiles
from cortex.integrations.pictures import PictureMaker
from cortex.integrations.sandbox import Sandbox
from cortex.ports.engine import SharedHub
from cortex.ports.foreign import ForeignReader
from cortex.services.backup.backups import Backups
from cortex.services.backup.restore import Restores
from cortex.services.content.documents import DocumentsService
from cortex.services.content.file_looks import FileClearing, FileLooks
from cortex.services.content.notes import NotesService
from cortex.services.content.pictures import PicturesService
from cortex.services.content.reading import DocumentReading
from cortex.services.content.snippets import SnippetsService
from cortex.services.content.tasks import TasksService
from cortex.services.runtime import Runtime
from cortex.storage.home import Homes


class FileServices:
    """The secrets, the backups, and what people keep: notes, tasks, snippets, files with their texts and pictures."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        sandbox: Sandbox,
        is_boxed: bool,
        log_book: LogBook,
        access_ended: Sequence[Callable[[str], Awaitable[None]]] = (),
    ) -> None:
        """is_boxed: whether the sandbox works on this machine. access_ended: who else hears that a login ended."""
        self.runtime = runtime
        self._sandbox, self._is_boxed, self._log_book = sandbox, is_boxed, log_book
        self._access_ended = access_ended
        self.started_at = runtime.clock()

    @property
    def settings(self) -> Settings:
        return self.runtime.settings

    @property
    def hub(self) -> SharedHub:
        return self.runtime.hub

    @cached_property
    def vault(self) -> Vault:
        return Vault(self.settings.secret_key)

    @cached_property
    def backups(self) -> Backups:
        return Backups(self.settings, clock=self.runtime.clock)

    @cached_property
    def restores(self) -> Restores:
        return Restores(self.settings)

    @cached_property
    def homes(self) -> Homes:
        return Homes(self.settings.home)

    @cached_property
    def foreign(self) -> ForeignReader:
        return ForeignFiles(self._sandbox, is_boxed=self._is_boxed)

    @cached_property
    def notes(self) -> NotesService:
        return NotesService(self.homes, self.runtime.db)

    @cached_property
    def document_reading(self) -> DocumentReading:
        looks = FileLooks(runtime=self.runtime, homes=self.homes)
        extractor = DocumentReader(self._sandbox, is_boxed=self._is_boxed)
        clearing = FileClearing(runtime=self.runtime, homes=self.homes)
        return DocumentReading(runtime=self.runtime, looks=looks, clearing=clearing, extractor=extractor)

    @cached_property
    def documents(self) -> DocumentsService:
        return DocumentsService(
            runtime=self.runtime, homes=self.homes, pictures=self.pictures, wake=self.document_reading.wake
        )

    @cached_property
    def pictures(self) -> PicturesService:
        return PicturesService(runtime=self.runtime, homes=self.homes, maker=PictureMaker(sandbox=self._sandbox))

    @cached_property
    def tasks(self) -> TasksService:
        return TasksService(self.runtime.db, self.hub)

    @cached_property
    def snippets(self) -> SnippetsService:
        return SnippetsService(self.runtime.db)
