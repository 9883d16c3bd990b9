"""One connection to MariaDB or MySQL, by aiomysql: what that library leaves open is closed here.

Directly, and not by SQLAlchemy's engine: rows are streamed and counted at the wire, and a query is stopped by its
connection's number; the engine would stand between, with an import of its own. Loaded on first use, by `scan`.
"""

import asyncio
import ssl
from contextlib import ExitStack
from typing import Any, ClassVar

import aiomysql
from aiomysql.connection import Connection
from pymysql.constants import CLIENT, CR, ER
from pymysql.err import OperationalError, ProgrammingError

from cortex.base.address import named
from cortex.base.dial import vetted
from cortex.base.errors import NotAllowed, ServiceDown
from cortex.integrations.aether_db.open_names import Access

__all__ = ["ProgrammingError", "Wire", "opened"]
NO_SUCH_TABLE = ER.NO_SUCH_TABLE
STREAMED = aiomysql.SSCursor
PLACE = "under Integrations"
SETTING_BYTES = 1_000_000  # for what is read between statements


class TooMuch(Exception):
    """The result holds more bytes than are read."""


class Wire(Connection):  # type: ignore[misc]  # aiomysql has no types
    """A connection that sends one statement at a time, no file and no open password, and counts what it reads."""

    SAFE_PLUGINS: ClassVar[frozenset[str]] = frozenset(
        {"", "mysql_native_password", "caching_sha2_password", "sha256_password"}
    )

    def __init__(self, access: Access, address: str, tls: ssl.SSLContext | None) -> None:
        """Nothing is opened yet. address: where to connect, one that the egress rule has seen."""
        super().__init__(
            host=address,
            port=access.port,
            user=access.user,
            # The library sends passwords in Latin-1 and servers take them in UTF-8: these bytes come out as UTF-8.
            password=access.password.encode().decode("latin-1"),
            db=access.names.default_schema if access.names.default_schema in access.names.schemas else None,
            charset="utf8mb4",
            connect_timeout=access.limits.connect_s,
            ssl=tls,
            conv={},
            local_infile=False,
            autocommit=True,
            program_name="cortex",
        )
        self.client_flag &= ~CLIENT.MULTI_STATEMENTS  # which the library always asks for
        self.named_host = access.host
        self.must_be_secret = tls is not None
        self.left_bytes = SETTING_BYTES
        self.server_thread_id: tuple[int, ...] = ()

    def thread_id(self) -> int:
        """The server's number of this connection; 0 before there is one."""
        return self.server_thread_id[0] if self.server_thread_id else 0

    @property
    def is_mariadb(self) -> bool:
        """Tell whether it is MariaDB and not MySQL."""
        return "mariadb" in str(self.server_version).lower()

    @property
    def version(self) -> str:
        """The server's name and number, such as "MariaDB 10.11.19"."""
        number = str(self.server_version).removeprefix("5.5.5-").split("-")[0]
        return f"{'MariaDB' if self.is_mariadb else 'MySQL'} {number}"

    @property
    def was_cancelled(self) -> bool:
        """Tell whether it was closed while a statement ran: the server may still work at it."""
        return self._close_reason is not None

    def abandon(self) -> None:
        """Read no further: the statement is stopped by whoever lent the connection."""
        self.close()
        self._close_reason = "enough was read"

    async def open(self) -> None:
        """Connect and log in."""
        await self._connect()

    async def do(self, sql: str, arguments: tuple[object, ...] | None = None) -> list[tuple[Any, ...]]:
        """The rows of a statement of ours, whole."""
        self.left_bytes = SETTING_BYTES
        async with self.cursor(aiomysql.Cursor) as cursor:
            await cursor.execute(sql, arguments)
            return list(await cursor.fetchall())

    async def _request_authentication(self) -> None:
        # The library would go on in the open where the server, or somebody between, says that it has no TLS.
        if self.must_be_secret and not self.server_capabilities & CLIENT.SSL:
            raise ServiceDown("The database server offers no TLS, and its card asks for it: nothing was sent.")
        self._check_plugin(self._server_auth_plugin)
        self._host = self.named_host  # connected already: from here on it is the name in the certificate
        await super()._request_authentication()

    async def _process_auth(self, plugin_name: bytes, auth_packet: Any) -> Any:
        self._check_plugin(plugin_name.decode("latin-1"))
        return await super()._process_auth(plugin_name, auth_packet)

    def _check_plugin(self, name: str) -> None:
        if name not in self.SAFE_PLUGINS:
            raise ServiceDown(
                f"The database server asks for the login {name[:60]!r}, which is not used here: give the account "
                "a password by mysql_native_password or caching_sha2_password."
            )

    async def _read_bytes(self, num_bytes: int) -> bytes:
        self.left_bytes -= num_bytes
        if self.left_bytes < 0:
            raise TooMuch
        data: bytes = await super()._read_bytes(num_bytes)
        return data


def _tls(access: Access) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=access.ca or None)
    except (ssl.SSLError, ValueError) as error:
        raise ServiceDown("The certificate on the database's card cannot be read: paste it whole, as PEM.") from error


async def opened(access: Access) -> Wire:
    """A connection that is logged in."""
    tls = None if access.tls == "off" else await asyncio.to_thread(_tls, access)
    async with asyncio.timeout(access.limits.connect_s):
        addresses = await _addresses(access)
        for address in addresses:
            try:
                return await _opened_at(address, access, tls)
            except OperationalError as error:
                if error.args[0] != CR.CR_CONN_HOST_ERROR or address == addresses[-1]:
                    raise
    raise AssertionError("an empty list of addresses is an OSError")


async def _opened_at(address: str, access: Access, tls: ssl.SSLContext | None) -> Wire:
    wire = Wire(access, address, tls)
    with ExitStack() as failing:
        failing.callback(wire.close)
        await wire.open()
        failing.pop_all()
    return wire


async def _addresses(access: Access) -> list[str]:
    """Where the card's host is, by the egress rule of every outgoing connection."""
    try:
        return await vetted(access.host, access.port, named((access.host, access.port)))
    except NotAllowed as error:
        raise ServiceDown(f"{error.message.rstrip('.')}. Check the host {PLACE}.") from error
    except TimeoutError:
        raise
    except (OSError, UnicodeError) as error:
        raise ServiceDown(f"The network does not know {access.host!r}. Check the host {PLACE}.") from error
