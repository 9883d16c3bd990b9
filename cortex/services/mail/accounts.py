"""Connects mail accounts: tried before they are kept; which folders are read; the keys, sealed among the secrets.

A server inside the network is reached only where an admin named it (`CORTEX_MAIL_SERVERS`); any public one may be
named by everybody.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.clock import Clock
from cortex.base.crypto import Vault
from cortex.base.errors import ConfigError, Conflict, Throttled, UserError
from cortex.base.ids import new_id
from cortex.base.record import Veiled
from cortex.base.user import User
from cortex.integrations.mail.client import MailConnection, MailDoor
from cortex.integrations.mail.imap import Imap
from cortex.integrations.mail.oauth import Tokens
from cortex.integrations.mail.server import PROVIDERS as PROVIDERS
from cortex.integrations.mail.server import MailProvider as MailProvider
from cortex.integrations.mail.server import MailServer, mail_server_at
from cortex.integrations.mail.server import Security as Security
from cortex.integrations.mail.server import provider_of as provider_of
from cortex.integrations.mail.values import ServerFolder
from cortex.services.mail.logins import MailLogins
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.mail import MailAccountRow as MailAccountRow
from cortex.storage.mail import MailAccountsRepository, mail_key
from cortex.storage.mail import MailFolderRow as MailFolderRow
from cortex.storage.mail import Way as Way
from cortex.storage.secrets import SecretsRepository
from cortex.storage.tool_settings import ToolSettingsRepository

ACCOUNTS_MOST = 10
ADDRESS_CHARACTERS = 200
TRIES_MOST, TRIED_S = 2, 40.0
LOST_KEY = "The password of this account cannot be read any more. Connect it again."
NO_ADDRESS = "This is no mail address: write it such as ada@example.org."
UNREAD = ("junk", "trash", "drafts")
FRESH = timedelta(minutes=2)  # a token that ends so soon is renewed first


class MailLogin(Veiled, Struct, frozen=True, kw_only=True):
    """An account as its person enters it. `host`: "" where the address is of a provider that is known (`PROVIDERS`).

    `username`: "" for the address.
    """

    VEILED = ("password",)

    address: str
    password: str
    host: str = ""
    port: int = 993
    security: Security = "tls"
    username: str = ""


class MailAccounts(Struct, frozen=True, kw_only=True):
    """The accounts of people. `inside`: the servers in the network that an admin named; `logins`: keys by OAuth 2."""

    db: Database
    vault: Vault
    clock: Clock
    door: MailDoor
    logins: MailLogins
    inside: Callable[[], frozenset[tuple[str, int]]]
    changed: Callable[[], None]
    _renewing: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _tries: WeakValueDictionary[str, asyncio.Semaphore] = field(default_factory=WeakValueDictionary)

    async def list(self, user: User) -> Sequence[tuple[MailAccountRow, Sequence[MailFolderRow]]]:
        """Their accounts, each with its folders."""
        repository = self.db.repository(MailAccountsRepository, user.id)
        accounts, folders = await repository.accounts(), await repository.folders()
        return [(one, [folder for folder in folders if folder.account_id == one.id]) for one in accounts]

    def ways(self) -> Sequence[Way]:
        """Return by whose logins an account can be connected here."""
        return tuple(self.logins.clients)

    async def add(self, user: User, given: MailLogin) -> str:
        """Connect an account by a password, once its server has answered; its id. UserError, ToolFailed, in words."""
        own, known = _address(given.address), provider_of(given.address)
        host, port, security = given.host.strip(), given.port, given.security
        if not host and known is None:
            raise UserError("Enter the server of this address, such as imap.example.org.", field="host")
        if not host and known is not None:
            host, port, security = known.host, known.port, known.security
        at = mail_server_at(host, port, security, (given.username.strip() or own, given.password), self.inside())
        account = self._row(user, own, at, "password")
        await self._keep(user, account, await self._tried(user, at), {"password": given.password})
        return account.id

    async def add_by_login(self, user: User, address: str, way: Way, tokens: Tokens) -> str:
        """Connect an account by a login at its provider (`services/mail/logins.py`), once its server has answered."""
        at = replace(self.logins.server(way, self.inside()), username=_address(address), token=tokens.access)
        account = self._row(user, at.username, at, way)
        await self._keep(user, account, await self._tried(user, at), tokens.kept)
        return account.id

    async def finish_login(self, user: User, pasted: str = "") -> str:
        """Connect the account of the login that is under way (`MailLogins.begin`); its id, "" where it is not done yet.

        An account that stands already by its address takes the new keys.
        """
        done = await self.logins.finish(user, pasted)
        if done is None:
            return ""
        known = await self.db.repository(MailAccountsRepository, user.id).accounts()
        same = next((one for one in known if (one.way, one.username) == (done.way, done.address)), None)
        if same is None:
            return await self.add_by_login(user, done.address, done.way, done.tokens)
        await self._take(user, same, await self._sealed(done.tokens.kept))
        return same.id

    async def renew(self, user: User, account_id: str, password: str) -> None:
        """Take another password for an account, once its server takes it."""
        account = await self.db.repository(MailAccountsRepository, user.id).account(account_id)
        key = account.username, password
        await self._tried(user, mail_server_at(account.host, account.port, account.security, key, self.inside()))
        await self._take(user, replace(account, way="password"), await self._sealed({"password": password}))

    async def _take(self, user: User, account: MailAccountRow, sealed: bytes) -> None:
        """Take another key for an account that stands."""
        async with self.db.transaction(user.id) as repository:
            await repository(MailAccountsRepository).set_account(account.id, way=account.way, next_at=self.clock())
            await repository(SecretsRepository).put(mail_key(account.id), sealed)
            detail = {"account": account.id, "way": account.way}
            await repository(AuditRepository).add(user.id, "mail.connected", account.address, detail)
        self.changed()

    @asynccontextmanager
    async def opened(self, account: MailAccountRow) -> AsyncIterator[MailConnection]:
        """A connection of an account, which is left at the end. ConfigError where its key cannot be read any more."""
        connection = await self.door.open(await self._server(account))
        try:
            yield connection
        finally:
            await connection.close()

    async def _server(self, account: MailAccountRow) -> MailServer:
        key, _ = await self._key(account)
        if account.way == "password":
            given = account.username, str(key["password"])
            return mail_server_at(account.host, account.port, account.security, given, self.inside())
        tokens = Tokens.from_kept(key)
        if tokens.until <= self.clock() + FRESH:
            async with self._renewing.setdefault(account.id, asyncio.Lock()):
                tokens = await self._renewed(account)
        return MailServer(
            host=account.host,
            port=account.port,
            security=account.security,
            username=account.username,
            token=tokens.access,
            is_inside=(account.host, account.port) in self.inside(),
        )

    async def _key(self, account: MailAccountRow) -> tuple[dict[str, Any], bytes]:
        sealed = await self.db.repository(SecretsRepository, account.owner_id).get(mail_key(account.id))
        if sealed is None:
            raise ConfigError(LOST_KEY)
        return json.loads(await asyncio.to_thread(self.vault.unseal, sealed)), sealed

    async def _renewed(self, account: MailAccountRow) -> Tokens:
        """Return tokens that are good for a while, new ones kept in place of the old ones, where those still stand.

        The account may be removed meanwhile, or logged in anew: then its key is what stands now.
        """
        kept, sealed = await self._key(account)
        tokens = Tokens.from_kept(kept)
        if tokens.until > self.clock() + FRESH:  # somebody did it while we waited
            return tokens
        fresh = await self.logins.renewed(account.way, tokens)
        secrets = self.db.repository(SecretsRepository, account.owner_id)
        if await secrets.replace(mail_key(account.id), sealed, await self._sealed(fresh.kept)):
            return fresh
        return Tokens.from_kept((await self._key(account))[0])

    async def set_folders(self, user: User, account_id: str, ids: Collection[str]) -> None:
        """Say which folders of an account are read. What was read of others is forgotten."""
        async with self.db.transaction(user.id) as repository:
            accounts = repository(MailAccountsRepository)
            await accounts.account(account_id)
            for one in await accounts.of_account(account_id):
                if one.is_read != (one.id in ids):
                    await accounts.set_folder(one.id, is_read=one.id in ids)
                if one.is_read and one.id not in ids:
                    await accounts.forget(one.id)
        await self.refresh(user, account_id)

    async def refresh(self, user: User, account_id: str) -> None:
        """Have the server asked now what came."""
        await self.db.repository(MailAccountsRepository, user.id).set_account(account_id, next_at=self.clock())
        self.changed()

    async def remove(self, user: User, account_id: str) -> None:
        """Forget an account, its key, and all that was read from it. What stands on the server stays there."""
        async with self.db.transaction(user.id) as repository:
            account = await repository(MailAccountsRepository).account(account_id)
            await repository(MailAccountsRepository).remove_account(account_id)
            await repository(SecretsRepository).remove(mail_key(account_id))
            await repository(AuditRepository).add(user.id, "mail.removed", account.address, {"account": account_id})
            await repository(ToolSettingsRepository).changed()
        self.changed()  # whoever waits there for news leaves

    async def _tried(self, user: User, server: MailServer) -> Sequence[ServerFolder]:
        """The folders of a server that answers. Throttled where this person has others tried already."""
        tries = self._tries.setdefault(user.id, asyncio.Semaphore(TRIES_MOST))
        if tries.locked():
            raise Throttled("Other servers of yours are being tried. Wait until they have answered.", wait_s=TRIED_S)
        async with tries:
            connection = await self.door.open(server)
            try:
                return await connection.do(Imap.folders)
            finally:
                await connection.close()

    def _row(self, user: User, address: str, server: MailServer, way: Way) -> MailAccountRow:
        now = self.clock()
        return MailAccountRow(
            id=new_id(self.clock),
            owner_id=user.id,
            address=address,
            host=server.host,
            port=server.port,
            security=server.security,
            username=server.username,
            way=way,
            created_at=now,
            next_at=now,
            worked_at=None,
            failure="",
            failures=0,
        )

    async def _sealed(self, key: dict[str, Any]) -> bytes:
        return await asyncio.to_thread(self.vault.seal, json.dumps(key))

    async def _keep(
        self, user: User, account: MailAccountRow, found: Sequence[ServerFolder], key: dict[str, Any]
    ) -> None:
        sealed = await self._sealed(key)
        rows = [folder_row(account, one, new_id(self.clock)) for one in found]
        async with self.db.transaction(user.id) as repository:
            accounts = repository(MailAccountsRepository)
            known = await accounts.accounts()
            if len(known) >= ACCOUNTS_MOST:
                raise UserError(f"You can connect {ACCOUNTS_MOST} accounts. Remove one first.")
            if (account.host, account.username) in {(one.host, one.username) for one in known}:
                raise Conflict("This account is connected already.")
            await accounts.add(account, rows)
            await repository(SecretsRepository).put(mail_key(account.id), sealed)
            await repository(ToolSettingsRepository).changed()  # whoever has mail is offered its tools
            detail = {"account": account.id, "way": account.way}
            await repository(AuditRepository).add(user.id, "mail.connected", account.address, detail)
        self.changed()


def folder_row(account: MailAccountRow, found: ServerFolder, id: str) -> MailFolderRow:
    """A folder as it comes to an account: read, unless it holds what nobody looks for, or what lies in others too."""
    return MailFolderRow(
        id=id,
        owner_id=account.owner_id,
        account_id=account.id,
        path=found.path,
        name=found.name,
        role=found.role,
        is_read=found.role not in UNREAD and not found.is_all,
        uidvalidity=0,
        state="",
        lacking=0,
        read_at=None,
    )


def _address(text: str) -> str:
    address = text.strip()
    name, at, domain = address.rpartition("@")
    if not (name and at and "." in domain) or len(address) > ADDRESS_CHARACTERS or not address.isprintable():
        raise UserError(NO_ADDRESS, field="address")
    if set(address) & set(' ,;<>"'):
        raise UserError(NO_ADDRESS, field="address")
    return address
