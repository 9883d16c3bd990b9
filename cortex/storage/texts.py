"""Texts that went out with requests, each kept once under its digest: a prompt that stands for weeks is one row."""

from collections.abc import Iterable, Mapping

from sqlalchemy import select

from cortex.base.ids import digest
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import TextTable


class TextsRepository(Repository):
    """The texts of a user's requests."""

    async def keep(self, *texts: str) -> None:
        """Keep these; one that stands already is left alone."""
        rows = [{"digest": digest(text), "text": text} for text in dict.fromkeys(texts)]
        await self.session.execute(self._insert(TextTable, *rows).on_conflict_do_nothing())

    @reading
    async def get(self, digests: Iterable[str]) -> Mapping[str, str]:
        """Digest -> text, of those that are kept."""
        statement = select(TextTable.digest, TextTable.text).where(
            TextTable.owner_id == self.owner_id, TextTable.digest.in_(list(digests))
        )
        return {row.digest: row.text for row in await self.session.execute(statement)}
