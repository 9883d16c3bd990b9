"""The open clients of the systems that are set up: opened at the first need, again when their settings change.

Tools reach them through `using`, which keeps how each call went: that is what the card, the doctor and the health page
say.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import DatabaseUnavailable, ServiceDown, ToolFailed
from cortex.ports.integrations import IntegrationClient, IntegrationKind
from cortex.services.integrations.access import PortRule
from cortex.services.integrations.forms import checked
from cortex.services.integrations.integrations import Integrations
from cortex.storage.accounts import AccountsRepository
from cortex.storage.integrations import IntegrationRow, IntegrationsRepository

SWEPT_EVERY_S = 30.0
NOTED_EVERY = timedelta(minutes=5)  # successes in a row are kept no more often: each is a commit

log = logging.getLogger(__name__)


class _Opened(Struct):
    version: int
    set_at: datetime | None
    form: BaseModel
    client: IntegrationClient
    worked_at: datetime | None
    failure: str


class IntegrationClients(Struct, frozen=True, kw_only=True):
    """The clients of one process."""

    integrations: Integrations
    _opened: dict[tuple[str, str], _Opened] = field(default_factory=dict)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def using(self, kind_name: str, name: str = "", *, user_id: str) -> AsyncIterator[Any]:  # Any: its client
        """The client of this system. ToolFailed where it is not set up, switched off, or not open to this account.

        A `ServiceDown` that leaves the block is kept as its last failure, a block that ends well as a success.
        """
        opened = await self._open(kind_name, name, user_id)
        try:
            yield opened.client
        except ServiceDown as error:
            await self._note(kind_name, name, opened, error.message)
            raise
        await self._note(kind_name, name, opened, "")

    @asynccontextmanager
    async def of_server(self, kind_name: str) -> AsyncIterator[Any]:  # Any: its client
        """The same for what is nobody's own, such as to hear what came in."""
        async with self.using(kind_name, user_id="") as client:
            yield client

    async def peek(self, kind_name: str, name: str = "", *, user_id: str) -> Any:  # Any: its client
        """The same client for what asks nothing of the system, so that it proves nothing of it. ToolFailed alike."""
        return (await self._open(kind_name, name, user_id)).client

    async def sweep(self) -> None:
        """Until cancelled: close the clients of what was switched off or removed, here or in another process."""
        while True:
            await asyncio.sleep(SWEPT_EVERY_S)
            for kind_name, name in list(self._opened):
                try:
                    row = await self._rows.get(kind_name, name)
                except (DatabaseUnavailable, SQLAlchemyError) as error:
                    log.warning("integrations: database error, looking again: %s", error)
                    break
                if row is None or not row.is_on:
                    await self._let_go(kind_name, name)

    async def close(self) -> None:
        """Close every client."""
        for opened in list(self._opened.values()):
            await opened.client.close()
        self._opened.clear()

    async def _open(self, kind_name: str, name: str, user_id: str) -> _Opened:
        kind = self.integrations.kind(kind_name)
        row = await self._rows.get(kind_name, name)
        if row is None or not row.is_on:
            await self._let_go(kind_name, name)
            raise ToolFailed(kind.setup(is_off=row is not None).text)
        if user_id and not PortRule(people=row.people).has(user_id):
            raise ToolFailed(f"{kind.title} is not available to this account.")
        async with self._opening:
            known = self._opened.get((kind_name, name))
            if known is None or (known.version, known.set_at) != (row.version, row.changed_at):
                form = checked(kind.form, row.settings, await self.integrations.secrets.kept(kind, name))
                known = self._opened.get((kind_name, name))  # it may have been let go while the secrets were read
                self._opened[kind_name, name] = made = self._made(row, form, known)
                if known is not None and known.client is not made.client:
                    await known.client.close()
            return self._opened[kind_name, name]

    def _made(self, row: IntegrationRow, form: BaseModel, known: _Opened | None) -> _Opened:
        """The system as it is set now; with the client that is open, where that works and all it needs is as it was."""
        is_kept = known is not None and known.form == form and not known.failure
        return _Opened(
            version=row.version,
            set_at=row.changed_at,
            form=form,
            client=known.client
            if known is not None and is_kept
            else self.integrations.kind(row.kind).client(form, row.name),
            worked_at=row.worked_at,
            failure=row.failure,
        )

    async def _note(self, kind_name: str, name: str, opened: _Opened, failure: str) -> None:
        """Keep how a call went, unless that is known already."""
        at = self.integrations.clock()
        is_old = opened.worked_at is None or at - opened.worked_at > NOTED_EVERY
        if failure == opened.failure and (failure or not is_old):
            return
        opened.failure = failure
        if not failure:
            opened.worked_at = at
        await self._rows.note(kind_name, name, opened.version, failure=failure)

    async def _let_go(self, kind_name: str, name: str) -> None:
        opened = self._opened.pop((kind_name, name), None)
        if opened is not None:
            await opened.client.close()

    @property
    def _rows(self) -> IntegrationsRepository:
        return self.integrations.db.repository(IntegrationsRepository)


class UserPort:
    """A port as tools open it for one user: each call goes to the client of a card, which has the port's methods.

    It is asked anew each time whether the system is set up and open to this account. ToolFailed where it is not.
    """

    def __init__(self, clients: IntegrationClients, kind: IntegrationKind, port: type[Any], user_id: str) -> None:
        self._clients = clients
        self._kind = kind
        self._port = port
        self._user_id = user_id

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:  # Any: what the port's method takes and gives
        """The port's method of this name."""

        async def call(*given: Any, **named: Any) -> Any:
            async with self._of_person() as client:
                return await getattr(client, name)(*given, **named)

        return call

    @asynccontextmanager
    async def _of_person(self) -> AsyncIterator[Any]:
        """The object with the port's methods; its row and the account are read in one transaction, let go of here."""
        db, of = self._clients.integrations.db, self._kind.by_person
        async with db.one_view():
            person = (await db.repository(AccountsRepository).get(self._user_id)).name if of else ""
            async with self._clients.using(self._kind.name, user_id=self._user_id) as client:
                await db.end_view()
                yield await of(client, self._port, person) if of else client
