"""The revision that the tables have, and the newest, read without Alembic, which is only loaded to migrate."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

FOLDER = Path(__file__).resolve().parents[2] / "migrations"


def newest() -> str:
    """The revision that the newest migration file makes, its leading number."""
    return max(path.name.partition("_")[0] for path in (FOLDER / "versions").glob("[0-9]*_*.py"))


def current(connection: Connection) -> str:
    """The revision of the tables, "" for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or ""
