"""The card of a database: what an admin fills in, and how it becomes the access that is used. No library is loaded."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from cortex.base.trust import Certificates
from cortex.base.web_address import ascii_host
from cortex.integrations.aether_db.open_names import SYSTEM_SCHEMAS, Access, OpenNames, StatementLimits


class AetherDbForm(BaseModel):
    """A MariaDB or MySQL to be read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(title="Host", description="Such as db.lan or 192.168.1.20.", max_length=253)
    port: int = Field(3306, ge=1, le=65_535, title="Port")
    user: str = Field(
        title="User",
        description="An account with GRANT SELECT, SHOW VIEW and nothing else; one that can do more is not used.",
        max_length=128,
    )
    password: SecretStr = Field(SecretStr(""), title="Password")
    schemas: tuple[str, ...] = Field((), title="Open schemas", description="Their tables and views can be read.")
    views: tuple[str, ...] = Field(
        (), title="Open views", description="Single views or tables in addition, as schema.name."
    )
    default_schema: str = Field(
        "",
        title="Default schema",
        description="Where names without a schema are looked up; empty: the first open one.",
    )
    tls: Literal["off", "verify"] = Field(
        "off", title="TLS", description="verify: encrypted, and the certificate is checked."
    )
    ca: Certificates = ""
    seconds: float = Field(10, ge=0.5, le=60, title="Seconds for one statement")
    rows: int = Field(2_000, ge=1, le=10_000, title="Rows of one result")
    scan_rows: int = Field(
        5_000_000,
        ge=1_000,
        title="Rows that a statement may scan",
        description="By the server's own estimate, before the statement runs.",
    )
    is_trusted: bool = Field(
        default=False,
        title="Allow an account that can do more than read",
        description="Statements are still checked and run in read-only transactions.",
    )

    @field_validator("host")
    @classmethod
    def _is_host(cls, value: str) -> str:
        ascii_host(value.strip())
        return value

    @field_validator("schemas")
    @classmethod
    def _are_own(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if system := [name for name in value if name.lower() in SYSTEM_SCHEMAS]:
            raise ValueError(f"{system[0]} belongs to the server and cannot be opened")
        return value

    @field_validator("views")
    @classmethod
    def _are_placed(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            schema, dot, view = name.partition(".")
            if not (schema and dot and view):
                raise ValueError(f"write {name} as schema.name")
            if schema.lower() in SYSTEM_SCHEMAS:
                raise ValueError(f"{schema} belongs to the server and cannot be opened")
        return value

    @model_validator(mode="after")
    def _opens_something(self) -> Self:
        if not self.schemas and not self.views:
            raise ValueError("name at least one schema or view to be read")
        return self

    @property
    def access(self) -> Access:
        """Return how the database is reached and what is open of it."""
        return Access(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password.get_secret_value(),
            names=OpenNames(
                default_schema=self.default_schema or (self.schemas[0] if self.schemas else ""),
                schemas=self.schemas,
                tables=tuple((name.partition(".")[0], name.partition(".")[2]) for name in self.views),
            ),
            tls=self.tls,
            ca=self.ca,
            is_trusted=self.is_trusted,
            limits=StatementLimits(statement_s=self.seconds, rows=self.rows, scan_rows=self.scan_rows),
        )
