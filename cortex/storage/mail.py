"""The mail accounts of people, and the folders of each with what was read of it.

Keys of accounts stand among the person's secrets (`storage/secrets.py`), under `mail_key`.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Literal, cast

from msgspec import Struct
from sqlalchemy import Select, select, update

from cortex.ports.mail import FolderRole
from cortex.storage.repository import Repository, SharedRepository, as_row, reading
from cortex.storage.schema import AccountTable, MailAccountTable, MailFolderTable, MailTable

Security = Literal["tls", "starttls", "none"]
Way = Literal["password", "google", "microsoft"]
NO_ACCOUNT = "There is no such mail account."
NO_FOLDER = "There is no such folder."


class MailAccountRow(Struct, frozen=True, kw_only=True):
    """An account. `next_at`: when it is asked again what came; `failures`: in a row, in whose words `failure`.

    `way`: how one logs in there; `address`: whose mail it is.
    """

    id: str
    owner_id: str
    address: str
    host: str
    port: int
    security: Security
    username: str
    way: Way
    created_at: datetime
    next_at: datetime
    worked_at: datetime | None
    failure: str
    failures: int


class MailFolderRow(Struct, frozen=True, kw_only=True):
    """A folder. `path`: as the server names it; `state`: by which it is told whether anything changed there.

    `lacking`: mails that are still to be read; `read_at`: when all that there were at first had been.
    """

    id: str
    owner_id: str
    account_id: str
    path: str
    name: str
    role: FolderRole
    is_read: bool
    uidvalidity: int
    state: str
    lacking: int
    read_at: datetime | None


def mail_key(account_id: str) -> str:
    """Under which name an account's password or tokens stand among its person's secrets."""
    return f"mail:{account_id}"


class MailAccountsRepository(Repository):
    """The mail accounts of one person."""

    @reading
    async def accounts(self) -> Sequence[MailAccountRow]:
        """The person's accounts, the oldest first."""
        return await self._where(MailAccountRow, MailAccountTable, "created_at")

    @reading
    async def account(self, id: str) -> MailAccountRow:
        """One of theirs; NotFound."""
        return await self._get(MailAccountRow, MailAccountTable, id, NO_ACCOUNT)

    @reading
    async def folders(self) -> Sequence[MailFolderRow]:
        """The folders of all their accounts, by name."""
        return await self._where(MailFolderRow, MailFolderTable, "name")

    @reading
    async def of_account(self, account_id: str) -> Sequence[MailFolderRow]:
        """The folders of an account, by name."""
        return await self._where(MailFolderRow, MailFolderTable, "name", account_id=account_id)

    @reading
    async def folder(self, id: str) -> MailFolderRow:
        """One of theirs; NotFound."""
        return await self._get(MailFolderRow, MailFolderTable, id, NO_FOLDER)

    async def add(self, account: MailAccountRow, folders: Sequence[MailFolderRow]) -> None:
        """Keep an account with its folders."""
        await self._add(MailAccountTable, [as_row(account)])
        await self.add_folders(folders)

    async def add_folders(self, folders: Sequence[MailFolderRow]) -> None:
        """Keep folders that came to an account of theirs."""
        await self._add(MailFolderTable, [as_row(one) for one in folders])

    async def set_account(self, id: str, **values: Any) -> None:
        """Change an account; NotFound."""
        change = self._change(MailAccountTable).where(MailAccountTable.id == id).values(**values)
        await self._must_touch(change, MailAccountTable.id, NO_ACCOUNT)

    async def set_folder(self, id: str, **values: Any) -> None:
        """Change a folder; NotFound."""
        change = self._change(MailFolderTable).where(MailFolderTable.id == id).values(**values)
        await self._must_touch(change, MailFolderTable.id, NO_FOLDER)

    async def set_read(self, id: str, uidvalidity: int, **values: Any) -> bool:
        """Change a folder, if it is still read, and of this count; whether it is."""
        still = MailFolderTable.id == id, MailFolderTable.is_read, MailFolderTable.uidvalidity == uidvalidity
        change = self._change(MailFolderTable).where(*still).values(**values)
        return bool(await self._touched(change, MailFolderTable.id))

    async def forget(self, folder_id: str) -> None:
        """Forget what was read of a folder."""
        await self.session.execute(self._remove(MailTable).where(MailTable.folder_id == folder_id))
        await self.set_folder(folder_id, uidvalidity=0, state="", lacking=0, read_at=None)

    async def remove_account(self, id: str) -> None:
        """Forget an account with all that was read from it; NotFound."""
        remove = self._remove(MailAccountTable).where(MailAccountTable.id == id)
        await self._must_touch(remove, MailAccountTable.id, NO_ACCOUNT)

    async def remove_folder(self, id: str) -> None:
        """Forget a folder that the server has no more; NotFound."""
        await self._must_touch(
            self._remove(MailFolderTable).where(MailFolderTable.id == id), MailFolderTable.id, NO_FOLDER
        )


class DueMailRepository(SharedRepository):
    """The mail accounts of everybody: who has one, which are to be asked what came, and which cannot be."""

    @reading
    async def owners(self) -> frozenset[str]:
        """Return whoever has one."""
        statement = self._of_active(MailAccountTable.owner_id).distinct()
        return frozenset((await self.session.execute(statement)).scalars())

    @reading
    async def next_at(self) -> datetime | None:
        """When the first account is due; None where there is none."""
        statement = self._of_active(MailAccountTable.next_at).order_by(MailAccountTable.next_at).limit(1)
        return cast("datetime | None", (await self.session.execute(statement)).scalar_one_or_none())

    @reading
    async def due(self, most: int) -> Sequence[tuple[str, str]]:
        """Owner and id of accounts that are due now, the longest first."""
        statement = (
            self._of_active(MailAccountTable.owner_id, MailAccountTable.id)
            .where(MailAccountTable.next_at <= self.clock())
            .order_by(MailAccountTable.next_at)
            .limit(most)
        )
        return [(row[0], row[1]) for row in (await self.session.execute(statement)).all()]

    async def take(self, id: str, until: datetime) -> bool:
        """Take a due account for oneself until then, so that no other process asks it as well; whether it was free.

        Nobody takes one of a person who was shut out.
        """
        active = select(AccountTable.id).where(AccountTable.is_active)
        change = (
            update(MailAccountTable)
            .execution_options(synchronize_session=False)
            .where(MailAccountTable.id == id, MailAccountTable.next_at <= self.clock())
            .where(MailAccountTable.owner_id.in_(active))
            .values(next_at=until)
        )
        return bool(await self._touched(change, MailAccountTable.id))

    async def free(self, ids: Sequence[str] | None = None) -> None:
        """Let these accounts be due, None for all; those that failed wait as long as they did."""
        now = self.clock()
        change = update(MailAccountTable).execution_options(synchronize_session=False).values(next_at=now)
        change = change.where(MailAccountTable.failures == 0, MailAccountTable.next_at > now)
        if ids is not None:
            change = change.where(MailAccountTable.id.in_(ids))
        await self.session.execute(change)

    @reading
    async def standing(self, ids: Collection[str]) -> frozenset[str]:
        """Those of these accounts that are there, of people who were not shut out."""
        statement = self._of_active(MailAccountTable.id).where(MailAccountTable.id.in_(ids))
        return frozenset((await self.session.execute(statement)).scalars())

    @reading
    async def failing(self) -> tuple[int, Sequence[str]]:
        """Return how many accounts there are, and the people of those that failed twice or more in a row."""
        owner, failures = AccountTable.name, MailAccountTable.failures
        rows = (await self.session.execute(self._of_active(owner, failures).order_by(owner))).all()
        return len(rows), sorted({row[0] for row in rows if row[1] > 1})

    def _of_active(self, *columns: Any) -> Select[Any]:
        joined = select(*columns).join(AccountTable, AccountTable.id == MailAccountTable.owner_id)
        return joined.where(AccountTable.is_active)
