"""Deleting an account with all that is its person's: runs, files, rows. What is kept is that it happened.

Marked and closed first, in one commit; a process that is killed on the way leaves the mark, and the next start goes on.
The audit log keeps its rows, which hold names and no words; backups keep what they hold until they are pruned.
"""

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import CortexError, NotAllowed, UserError
from cortex.base.user import User
from cortex.ports.engine import KeptRuns
from cortex.services.accounts.credentials import end_credentials
from cortex.services.accounts.people import DELETED_BY
from cortex.storage.accounts import AccountsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.home import Homes
from cortex.storage.owned import OwnedRepository
from cortex.storage.preferences import AllPreferencesRepository, PreferencesRepository
from cortex.storage.tool_settings import ToolSettingsRepository
from cortex.storage.turns import TurnsRepository

LAST_ADMIN = "This is the last admin account. Make someone else an admin first."

log = logging.getLogger(__name__)


class Deletions(Struct, frozen=True, kw_only=True):
    """Ends accounts for good. access_ended: ends the streams and the work of the account of this id."""

    db: Database
    homes: Homes
    runs: KeptRuns
    access_ended: Callable[[str], Awaitable[None]]

    async def delete(self, by: User, account_id: str, typed_name: str) -> str:
        """Delete the account; its name.

        NotFound for none, UserError where another name was typed, NotAllowed for the last admin's and for the account
        of another where `by` is no admin.
        """
        account = await self.db.repository(AccountsRepository).get(account_id)
        if account.id != by.id and not by.is_admin:
            raise NotAllowed("Only an admin can delete another account.")
        if typed_name.strip().casefold() != account.name.casefold():
            raise UserError(f"Type the name {account.name} to confirm.", field="name")
        async with self.db.transaction(account_id) as repository:
            accounts = repository(AccountsRepository)
            if account.rank == "admin" and account.is_active and not await accounts.other_admins(account_id):
                raise NotAllowed(LAST_ADMIN)
            await accounts.set_active(account_id, False)
            await repository(ToolSettingsRepository).changed()  # others may have tools for what this person shares
            await end_credentials(repository, by=by.id)
            await repository(PreferencesRepository).set(DELETED_BY, by.id)
            await repository(AuditRepository).add(by.id, "user.deleting", account.name)
        await self.access_ended(account_id)
        await self._finish(account_id, by.id)
        return account.name

    async def finish_left(self) -> None:
        """At the start: go on with those that a killed process left."""
        for account_id in await self.db.repository(AllPreferencesRepository).marked(DELETED_BY):
            try:
                by = str(await self.db.repository(PreferencesRepository, account_id).get(DELETED_BY, ""))
                await self.access_ended(account_id)
                await self._finish(account_id, by)
            except (CortexError, SQLAlchemyError, OSError) as error:  # the next start tries again
                log.warning("accounts: cannot delete account %s yet: %s", account_id, error)

    async def _finish(self, account_id: str, by: str) -> None:
        """Runs, then files, then rows, some at a time: the row that bears the mark goes last."""
        await self.runs.forget(await self.db.repository(TurnsRepository, account_id).ids())
        await asyncio.to_thread(_remove_folder, self.homes.home_of(account_id).path)
        owned = self.db.repository(OwnedRepository, account_id)
        for name in await owned.removable():
            while await owned.remove_some(name):
                """Others write in between."""
        async with self.db.transaction() as repository:
            account = await repository(AccountsRepository).get(account_id)
            await repository(AccountsRepository).remove(account_id)
            # Of who deleted their own account the log names nobody any more.
            await repository(AuditRepository).add("" if by == account_id else by, "user.deleted", account.name)


def _remove_folder(path: Path) -> None:
    if path.is_symlink():  # somebody put one there: what it leads to is not ours
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
