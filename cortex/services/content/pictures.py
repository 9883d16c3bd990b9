"""A person's pictures as models and pages get them: made once from the file, then always the same bytes."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from cortex.base.errors import CortexError, NotFound
from cortex.base.messages import Picture
from cortex.ports.documents import Pictures
from cortex.services.runtime import Runtime
from cortex.storage.documents import DocumentRow, DocumentsRepository
from cortex.storage.given_files import GivenFiles
from cortex.storage.home import Homes
from cortex.storage.ready_pictures import KeptPicture, ReadyPictures


class PicturesService(Struct, frozen=True, kw_only=True):
    """Every method takes whose pictures."""

    runtime: Runtime
    homes: Homes
    maker: Pictures

    async def ready(self, user_id: str, sha256: str, path: str) -> KeptPicture:
        """The picture of the file at this path, of this hash, made once. UserError for one that cannot be read."""
        home = self.homes.home_of(user_id)
        kept = ReadyPictures(home=home)
        found = await kept.find(sha256)
        if found is None:
            with closing(await GivenFiles(home=home).opened(path)) as file:
                made = await self.maker.ready(file)
            await kept.keep(sha256, made.media_type, (made.width, made.height), made.data, made.small)
            found = await kept.find(sha256)
        if found is None:
            raise NotFound("There is no such picture.")
        return found

    async def small(self, user_id: str, row: DocumentRow) -> Path:
        """Where its small one is."""
        await self.ready(user_id, row.sha256, row.path)
        return await ReadyPictures(home=self.homes.home_of(user_id)).small(row.sha256)

    async def part(self, user_id: str, row: DocumentRow) -> Picture:
        """It as a part of a message."""
        kept = await self.ready(user_id, row.sha256, row.path)
        return Picture(
            document=row.id,
            sha256=row.sha256,
            name=row.name,
            media_type=kept.media_type,
            width=kept.width,
            height=kept.height,
        )

    async def data(self, user_id: str, pictures: Iterable[Picture]) -> dict[str, bytes]:
        """The bytes of those that are there, by hash."""
        found: dict[str, bytes] = {}
        ready = ReadyPictures(home=self.homes.home_of(user_id))
        for picture in pictures:
            data = await ready.data(picture.sha256)
            if data is None:
                data = await self._again(user_id, picture)
            if data is not None:
                found[picture.sha256] = data
        return found

    async def _again(self, user_id: str, picture: Picture) -> bytes | None:
        """Made anew: a restored backup or a tidy hand may have left it out."""
        try:
            row = await self.runtime.db.repository(DocumentsRepository, user_id).get(picture.document)
            await self.ready(user_id, row.sha256, row.path)
        except CortexError:  # deleted since
            return None
        return await ReadyPictures(home=self.homes.home_of(user_id)).data(picture.sha256)
