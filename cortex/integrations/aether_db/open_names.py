"""What an admin opened of a database, and the settings by which it is reached. No library is loaded for them."""

from msgspec import Struct

from cortex.base.errors import ToolFailed
from cortex.base.record import Veiled

SYSTEM_SCHEMAS = ("information_schema", "mysql", "performance_schema", "sys")


class OpenNames(Struct, frozen=True, kw_only=True):
    """The tables that an admin opened. `tables`: single tables or views as (schema, name), beside the whole `schemas`.

    default_schema: where names without a schema are looked for; "" = nowhere.
    """

    default_schema: str = ""
    schemas: tuple[str, ...] = ()
    tables: tuple[tuple[str, str], ...] = ()

    def holds(self, schema: str, table: str) -> bool:
        """Tell whether this table may be read; names are compared sign by sign, as the strictest server does."""
        return schema in self.schemas or (schema, table) in self.tables

    def words(self) -> str:
        """All that is open, for a sentence."""
        return ", ".join([*self.schemas, *(f"{schema}.{name}" for schema, name in self.tables)]) or "nothing"

    def placed(self, schema: str, table: str) -> str:
        """The schema of a table that is open, the default one where none is given; ToolFailed when it is not open."""
        schema = schema or self.default_schema
        if not schema:
            raise ToolFailed(f"{table!r} has no schema and there is no default one: write schema.{table}.")
        if not self.holds(schema, table):
            raise ToolFailed(f"{schema}.{table} is not open to you: read from what is open ({self.words()}).")
        return schema


class StatementLimits(Struct, frozen=True, kw_only=True):
    """The limits of one statement. `scan_rows`: not run where the server expects to look at more rows."""

    statement_s: float = 10.0
    connect_s: float = 5.0
    rows: int = 2_000
    size_bytes: int = 4_000_000
    scan_rows: int = 5_000_000


class Access(Veiled, Struct, frozen=True, kw_only=True):
    """One database: where it is, as whom it is read, what is open.

    tls: "off", or "verify" with the system's authorities or the `ca` given as PEM text. is_trusted: use the account
    although it may do more than read.
    """

    VEILED = ("password",)

    host: str
    port: int = 3306
    user: str
    password: str
    names: OpenNames
    tls: str = "off"
    ca: str = ""
    is_trusted: bool = False
    limits: StatementLimits = StatementLimits()

    @property
    def place(self) -> str:
        """Where it is, for a sentence."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"
