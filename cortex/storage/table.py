"""The declarative base of all tables and the column types that mean the same on SQLite and on PostgreSQL."""

import re
from datetime import UTC, date, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    BindParameter,
    ColumnElement,
    Date,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Text,
    literal,
    or_,
)
from sqlalchemy.orm import DeclarativeBase, InstrumentedAttribute, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from cortex.base.attachments import Attachment
from cortex.base.record import as_dict
from cortex.storage.words import pieces

# PostgreSQL refuses U+0000 in text, and neither database can encode half of a surrogate pair.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Serial = BigInteger().with_variant(Integer, "sqlite")


class StorableText(TypeDecorator[str]):
    """Text of any length; what no database can hold becomes U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The text, storable."""
        if value is None or (value.isascii() and "\x00" not in value):
            return value
        return _UNSTORABLE.sub("\ufffd", value)


class Moment(TypeDecorator[datetime]):
    """A point in time, aware and in UTC on both sides; SQLite's column has no zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The moment in UTC; ValueError for a naive one."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The moment, aware."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def moment(at: datetime | None) -> BindParameter[Any]:
    """The moment as a part of an expression, such as a `case`, in which SQLAlchemy would not keep it as columns do."""
    return literal(at, Moment())


def each_word(query: str, *columns: InstrumentedAttribute[str]) -> list[ColumnElement[bool]]:
    """A condition for each word of a search: one of the columns holds it somewhere, whatever its case."""
    return [or_(*(column.icontains(word, autoescape=True) for column in columns)) for word in pieces(query)]


class Names(TypeDecorator[tuple[str, ...]]):
    """A list of names, kept as JSON, a tuple outside."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: Dialect) -> list[str] | None:
        """The names as JSON has them."""
        return None if value is None else list(value)

    def process_result_value(self, value: list[str] | None, dialect: Dialect) -> tuple[str, ...] | None:
        """The names, unchangeable."""
        return None if value is None else tuple(value)


class Attachments(TypeDecorator[tuple[Attachment, ...]]):
    """The attachments of a message, kept as JSON."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: tuple[Attachment, ...] | None, dialect: Dialect) -> list[dict[str, Any]]:
        """Each as an object."""
        return [as_dict(each) for each in value or ()]

    def process_result_value(self, value: list[dict[str, Any]] | None, dialect: Dialect) -> tuple[Attachment, ...]:
        """Each as a value."""
        return tuple(Attachment(**each) for each in value or ())


class Table(DeclarativeBase):
    """Base of every table; annotations choose the column types."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: StorableText(),
        datetime: Moment(),
        date: Date(),
        float: Double(),
        bytes: LargeBinary(),
        dict[str, Any]: JSON(none_as_null=True),
        tuple[str, ...]: Names(),
        tuple[Attachment, ...]: Attachments(),
    }


def owner() -> Mapped[str]:
    """The column that says whose row it is; the row goes with the account."""
    return mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))


def in_conversation() -> Mapped[str]:
    """The column of the conversation that a row goes with."""
    return mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"))


def in_turn() -> Mapped[str]:
    """The column of the turn that a row goes with."""
    return mapped_column(ForeignKey("turns.id", ondelete="CASCADE"))
