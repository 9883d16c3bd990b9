"""Runs of coding agents, of one user; the folders in which they may work, of the whole server."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import delete, select

from cortex.ports.agents import CodingTask, RunState
from cortex.storage.repository import Repository, SharedRepository, reading, selected
from cortex.storage.schema import CodingFolderTable, CodingRunTable


class CodingRow(Struct, frozen=True, kw_only=True):
    """A run as it is stored; the fields are those of `CodingRunTable`."""

    id: str
    owner_id: str
    repository: str
    folder: str
    message: str
    files: tuple[str, ...]
    is_told: bool
    state: RunState
    base: str
    made: str
    diff: str
    diff_stat: str
    said: str
    failure: str
    started_at: datetime
    seen_at: datetime
    ended_at: datetime | None


class CodingRunsRepository(Repository):
    """The runs of one user."""

    async def begin(self, id: str, task: CodingTask, *, folder: str, base: str) -> bool:
        """Begin one, once per id; whether it was begun now."""
        head: dict[str, Any] = {"id": id, "repository": task.repository, "folder": folder, "base": base}
        head |= {"message": task.message, "files": task.files, "is_told": task.is_told}
        now = {"started_at": self.clock(), "seen_at": self.clock()}
        return await self._is_new(CodingRunTable, {**head, **now})

    @reading
    async def get(self, id: str) -> CodingRow:
        """One run; NotFound."""
        return await self._get(CodingRow, CodingRunTable, id, "This run of a coding agent does not exist.")

    @reading
    async def list(self, most: int, *, skip: int = 0) -> Sequence[CodingRow]:
        """The newest ones, behind the first `skip` of them."""
        rows = self._mine(CodingRow, CodingRunTable)
        return await self._all(
            CodingRow, rows.order_by(CodingRunTable.started_at.desc(), CodingRunTable.id).offset(skip).limit(most)
        )

    async def seen(self, id: str, said: str) -> bool:
        """Note that somebody works on it, and what it says; whether it shall go on."""
        change = self._change(CodingRunTable).where(CodingRunTable.id == id, CodingRunTable.state == "running")
        return bool(await self._touched(change.values(seen_at=self.clock(), said=said), CodingRunTable.id))

    async def end(self, id: str, state: RunState, was: tuple[RunState, ...], **values: str) -> bool:
        """Let it stand so, unless it does otherwise already; whether that changed it.

        values: `made`, `diff`, `diff_stat`, `said`, `failure`. One that waits has ended its work, not its run.
        """
        change = self._change(CodingRunTable).where(CodingRunTable.id == id, CodingRunTable.state.in_(was))
        ended = {} if state == "waiting" else {"ended_at": self.clock()}
        return bool(await self._touched(change.values(state=state, **ended, **values), CodingRunTable.id))


class AllCodingRunsRepository(SharedRepository):
    """The runs of everybody."""

    @reading
    async def running(self) -> Sequence[CodingRow]:
        """Those that somebody works on, or should."""
        rows = selected(CodingRow, CodingRunTable)
        return await self._all(CodingRow, rows.where(CodingRunTable.state == "running"))


class CodingFoldersRepository(SharedRepository):
    """The folders that were allowed besides those of the card."""

    @reading
    async def list(self) -> Sequence[str]:
        """Their paths."""
        statement = select(CodingFolderTable.folder).order_by(CodingFolderTable.folder)
        return (await self.session.execute(statement)).scalars().all()

    async def add(self, folder: str, by: str) -> bool:
        """Allow it; whether it was not allowed before."""
        row = {"folder": folder, "added_by": by, "added_at": self.clock()}
        statement = self._upsert(CodingFolderTable, row).on_conflict_do_nothing().returning(CodingFolderTable.folder)
        return (await self.session.execute(statement)).first() is not None

    async def remove(self, folder: str) -> bool:
        """Allow it no more; whether it was."""
        gone = delete(CodingFolderTable).where(CodingFolderTable.folder == folder)
        return bool(await self._touched(gone, CodingFolderTable.folder))
