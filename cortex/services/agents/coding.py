"""Runs of the coding agent: begun once, followed while they run, merged or dropped by a person's word.

A run belongs to the process that began it: one that is killed leaves a run of which nobody says any more that it works
on it, and that counts as failed a minute later; nothing of it was merged, and it is begun anew by whoever wants it.
"""

import asyncio
import logging
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base import private
from cortex.base.errors import Conflict, CortexError, ToolFailed
from cortex.base.user import User
from cortex.integrations.aider.clones import TREE
from cortex.integrations.aider.runs import AiderEnd, AiderTask, run_aider
from cortex.integrations.aider.system import AiderSystem, repositories_in
from cortex.ports.agents import CodeRepository, CodingRun, CodingTask
from cortex.services.accounts.accounts import Accounts
from cortex.services.agents.coding_model import CodingModel
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.notifier import Notifier
from cortex.services.runtime import Runtime
from cortex.storage.audit import AuditRepository
from cortex.storage.coding import AllCodingRunsRepository, CodingFoldersRepository, CodingRunsRepository
from cortex.storage.coding import CodingRow as CodingRow
from cortex.storage.notices import NoticeValues

ONLY = "use the coding agent"  # for admins
KIND = "coding"
PAGE = "/admin/coding"
AT_ONCE = 2
SEEN_EVERY_S = 2.0
LOST = timedelta(minutes=1)
SAID_CHARACTERS = 20_000
DIFF_CHARACTERS = 300_000
GONE = "Cortex ended while the agent worked. Nothing was merged; start it again."

log = logging.getLogger(__name__)


class CodingRuns(Struct, frozen=True, kw_only=True):
    """The runs of one process. `folder`: below it each has its clone. `closed`: what no agent may be given."""

    runtime: Runtime
    accounts: Accounts
    clients: IntegrationClients
    model: CodingModel
    notifier: Notifier
    folder: Path
    closed: Sequence[Path]
    _working: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)

    async def repositories(self, user_id: str) -> Sequence[CodeRepository]:
        """Those that the card names, then what lies in the folders that were allowed."""
        system = await self._system(user_id)
        folders = await self.runtime.db.repository(CodingFoldersRepository).list()
        found = await asyncio.to_thread(repositories_in, folders, system.form.folders)
        return [CodeRepository(alias=alias, folder=folder) for alias, folder in found.items()]

    async def start(self, user_id: str, id: str, task: CodingTask) -> CodingRow:
        """Begin it, once per id. ToolFailed where program or repository are missing, or are at work."""
        runs = self.runtime.db.repository(CodingRunsRepository, user_id)
        if any(row.id == id for row in await runs.list(50)):
            return await self.get(user_id, id)
        user = await self.accounts.user(user_id)
        system = await self._system(user_id)
        await system.installation()
        folder = next((one.folder for one in await self.repositories(user_id) if one.alias == task.repository), "")
        if not folder:
            raise ToolFailed(f"There is no repository {task.repository!r}.")
        await self._must_be_free(folder)
        base = await system.clones.head(Path(folder))
        if await runs.begin(id, task, folder=folder, base=base):
            row = await runs.get(id)
            working = asyncio.ensure_future(self._work(user, row, system))  # noqa: TID251 - `close` ends it, it logs itself
            self._working[id] = working
            working.add_done_callback(lambda _: self._working.pop(id, None))
        return await runs.get(id)

    async def wait(self, user_id: str, id: str, timeout_s: float) -> CodingRow:
        """The run when its work has ended, or as it stands then."""
        if (working := self._working.get(id)) is not None:
            await asyncio.wait({working}, timeout=timeout_s)
        return await self.get(user_id, id)

    async def get(self, user_id: str, id: str) -> CodingRow:
        """One run; NotFound."""
        return await self._settled(await self.runtime.db.repository(CodingRunsRepository, user_id).get(id))

    async def newest(self, user_id: str, most: int, *, skip: int = 0) -> Sequence[CodingRow]:
        """The newest ones, behind the first `skip` of them."""
        rows = await self.runtime.db.repository(CodingRunsRepository, user_id).list(most, skip=skip)
        return [await self._settled(row) for row in rows]

    async def stop(self, user_id: str, id: str) -> CodingRow:
        """End the work on it, or drop what waits; one that has ended stays as it is."""
        row = await self.get(user_id, id)
        runs = self.runtime.db.repository(CodingRunsRepository, user_id)
        if await runs.end(id, "cancelled", ("running", "waiting")):
            if (working := self._working.get(id)) is not None:
                working.cancel()
                await asyncio.wait({working}, timeout=30)
            await self._clear(row)
        return await runs.get(id)

    async def merge(self, user: User, id: str) -> CodingRow:
        """Bring what it made into its repository. ToolFailed says why it stays on a branch; it can be tried again."""
        user.must_be_admin(ONLY)
        row = await self.get(user.id, id)
        if row.state != "waiting":
            raise Conflict("This run has nothing to merge.")
        system = await self._system(user.id)
        if not await asyncio.to_thread((self._place(row) / TREE).is_dir):
            raise ToolFailed("The clone with its work is gone. Discard this run and start it again.")
        branch = f"cortex/{row.id[:12]}"
        await system.clones.merge(Path(row.folder), self._place(row) / TREE, row.made, branch)
        async with self.runtime.db.transaction(user.id) as repository:
            if await repository(CodingRunsRepository).end(id, "done", ("waiting",)):
                detail = {"run": id, "commit": row.made, "stat": row.diff_stat}
                await repository(AuditRepository).add(user.id, "coding.merged", row.repository, detail)
        await self._clear(row)
        return await self.get(user.id, id)

    async def close(self) -> None:
        """End what runs here."""
        for id, working in list(self._working.items()):
            working.cancel()
            await asyncio.wait({working}, timeout=30)
            row = next((one for one in await self._running() if one.id == id), None)
            if row is not None:
                await self._give_up(row)

    # --- folders ------------------------------------------------------------------------------------------------

    async def folders(self) -> Sequence[str]:
        """Those that were allowed besides the card's."""
        return await self.runtime.db.repository(CodingFoldersRepository).list()

    async def must_be_possible(self, folder: str) -> None:
        """ToolFailed for what is no folder, or one that no agent may be given."""
        place = Path(folder)
        resolved = await asyncio.to_thread(place.resolve)
        if not await asyncio.to_thread(place.is_dir) or resolved != place:
            raise ToolFailed(f"{folder} is not a folder on this machine, or is a link to another place.")
        if any(place == one or one.is_relative_to(place) or place.is_relative_to(one) for one in self.closed):
            raise ToolFailed(f"{folder} contains or is inside a folder that coding agents cannot use.")

    async def allow(self, user_id: str, folder: str) -> bool:
        """Allow it; False when it was already. ToolFailed as `must_be_possible`."""
        (await self.accounts.user(user_id)).must_be_admin(ONLY)
        await self.must_be_possible(folder)
        async with self.runtime.db.transaction(user_id) as repository:
            is_new = await repository(CodingFoldersRepository).add(folder, user_id)
            if is_new:
                await repository(AuditRepository).add(user_id, "coding.folder_allowed", folder, {})
        return is_new

    async def revoke(self, user: User, folder: str) -> None:
        """Allow it no more; runs that began go on in their clones."""
        user.must_be_admin(ONLY)
        async with self.runtime.db.transaction(user.id) as repository:
            if await repository(CodingFoldersRepository).remove(folder):
                await repository(AuditRepository).add(user.id, "coding.folder_revoked", folder, {})

    # --- work ---------------------------------------------------------------------------------------------------

    async def _must_be_free(self, folder: str) -> None:
        rows = [await self._settled(row) for row in await self._running()]
        running = [row for row in rows if row.state == "running"]
        if any(row.folder == folder for row in running):
            raise ToolFailed("The coding agent is already working in this repository. Wait for it or stop it.")
        if len(running) >= AT_ONCE:
            raise ToolFailed(f"{AT_ONCE} coding agents are already running. Wait for one or stop one.")

    async def _settled(self, row: CodingRow) -> CodingRow:
        """The run; one on which nobody works any more has failed."""
        if row.state != "running" or self.runtime.clock() - row.seen_at < LOST or row.id in self._working:
            return row
        return await self._give_up(row)

    async def _give_up(self, row: CodingRow) -> CodingRow:
        runs = self.runtime.db.repository(CodingRunsRepository, row.owner_id)
        await runs.end(row.id, "failed", ("running",), failure=GONE)
        await self._clear(row)
        return await runs.get(row.id)

    async def _running(self) -> Sequence[CodingRow]:
        return await self.runtime.db.repository(AllCodingRunsRepository).running()

    async def _work(self, user: User, row: CodingRow, system: AiderSystem) -> None:
        lines: list[str] = []
        following = asyncio.ensure_future(self._follow(row, lines))  # noqa: TID251 - ended right below
        try:
            working = asyncio.ensure_future(self._run(user, row, system, lines))  # noqa: TID251 - as above
            await asyncio.wait({working, following}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await self._ended(row, working.result(), lines)
        except CortexError as error:
            await self._ended(row, None, lines, error.message)
        except OSError as error:
            log.warning("a run of the coding agent failed: %s", error)
            await self._ended(row, None, lines, f"The disk refused: {error.strerror or error}.")
        finally:
            for one in (working, following):
                one.cancel()
            await asyncio.gather(working, following, return_exceptions=True)

    async def _run(self, user: User, row: CodingRow, system: AiderSystem, lines: list[str]) -> AiderEnd:
        place = self._place(row)
        await asyncio.to_thread(private.make_folder, place)
        await system.clones.clone(Path(row.folder), place, row.base)
        return await run_aider(
            system.clones,
            await system.installation(),
            AiderTask(folder=place, base=row.base, message=row.message, files=row.files),
            complete=self.model.completion(user, row.id, system.form.model),
            on_line=lines.append,
            timeout_s=system.form.timeout_s,
        )

    async def _follow(self, row: CodingRow, lines: list[str]) -> None:
        """Until it is stopped elsewhere: keep what it says, and that somebody works on it."""
        runs = self.runtime.db.repository(CodingRunsRepository, row.owner_id)
        while await runs.seen(row.id, _said(lines)):  # noqa: ASYNC110 - what stops it may be another process
            await asyncio.sleep(SEEN_EVERY_S)

    async def _ended(self, row: CodingRow, end: AiderEnd | None, lines: list[str], failure: str = "") -> None:
        """Keep how its work ended, and tell its person, in one transaction."""
        changes, failure = (end.changes, end.failure) if end else (None, failure)
        state: Any = "waiting" if changes and changes.commit else "failed" if failure else "done"
        values: dict[str, Any] = {"said": _said(lines), "failure": failure}
        if changes:
            values |= {"made": changes.commit, "diff": changes.diff[:DIFF_CHARACTERS], "diff_stat": changes.stat}
        now = replace(row, state=state, **values)
        is_told = row.is_told or state == "waiting"
        notice = await self.notifier.draft(row.owner_id, f"coding:{row.id}", _notice(now)) if is_told else None
        async with self.runtime.db.transaction(row.owner_id) as repository:
            is_ended = await repository(CodingRunsRepository).end(row.id, state, ("running",), **values)
            if is_ended and notice is not None:
                await notice.write(repository)
        if notice is not None:
            self.notifier.wake(row.owner_id)
        if state != "waiting":
            await self._clear(row)

    async def _clear(self, row: CodingRow) -> None:
        await asyncio.to_thread(shutil.rmtree, self._place(row), ignore_errors=True)

    def _place(self, row: CodingRow) -> Path:
        return self.folder / row.id

    async def _system(self, user_id: str) -> AiderSystem:
        system: AiderSystem = await self.clients.peek(KIND, user_id=user_id)
        return system


class UserCoding(Struct, frozen=True, kw_only=True):
    """Implements `CodingAgent` and `AllowedFolders` for one user."""

    service: CodingRuns
    user_id: str

    async def repositories(self) -> Sequence[CodeRepository]:
        """All of them."""
        return await self.service.repositories(self.user_id)

    async def start(self, id: str, task: CodingTask) -> CodingRun:
        """Begin it, once per id."""
        return coding_run(await self.service.start(self.user_id, id, task))

    async def wait(self, id: str, timeout_s: float) -> CodingRun:
        """Return how it stands when it has ended, or then."""
        return coding_run(await self.service.wait(self.user_id, id, timeout_s))

    async def runs(self, most: int) -> Sequence[CodingRun]:
        """The newest ones."""
        return [coding_run(row) for row in await self.service.newest(self.user_id, most)]

    async def list(self) -> Sequence[str]:
        """The folders that were allowed."""
        return await self.service.folders()

    async def must_be_possible(self, folder: str) -> None:
        """Refuse what `allow` would refuse."""
        await self.service.must_be_possible(folder)

    async def allow(self, folder: str) -> bool:
        """Allow a folder."""
        return await self.service.allow(self.user_id, folder)


def coding_run(row: CodingRow) -> CodingRun:
    """The run as tools see it."""
    return CodingRun(
        id=row.id,
        repository=row.repository,
        message=row.message,
        state=row.state,
        started_at=row.started_at,
        ended_at=row.ended_at or (row.seen_at if row.state == "waiting" else None),
        commit=row.made,
        diff_stat=row.diff_stat,
        said=row.failure or row.said,
    )


def _said(lines: Sequence[str]) -> str:
    return "\n".join(lines)[-SAID_CHARACTERS:]


def _notice(row: CodingRow) -> NoticeValues:
    titles = {"waiting": "made a commit for you to review", "failed": "failed", "done": "changed nothing"}
    text = "\n".join(filter(None, (row.message[:200], row.made[:12], row.diff_stat[-600:], row.failure)))
    return NoticeValues(
        kind="agent",
        title=f"The coding agent in {row.repository} {titles[row.state]}",
        text=text,
        path=f"{PAGE}/{row.id}",
        tag=f"coding:{row.id}",
        subject_id=row.id,
        is_tainted=True,
    )
