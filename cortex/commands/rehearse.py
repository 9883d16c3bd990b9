"""What an update has a new version do before it is chosen: all that a start does to a database, on a copy of it."""

from collections.abc import Callable

from sqlalchemy import text

from cortex.app import Cortex
from cortex.base.errors import ConfigError
from cortex.base.settings import Settings
from cortex.storage.db import Database


async def move(settings: Settings, revision: str, *, undo: bool) -> str:
    """Bring the tables to a revision, up or down; what then stands. undo: take all of it back (PostgreSQL)."""
    db = Database(settings.database)
    try:
        return await (db.rehearse(revision) if undo else db.move_to(revision))
    finally:
        await db.close()


async def rehearse(settings: Settings, make_page: Callable[[Cortex], object]) -> str:
    """Migrate, look through all of it, and make everything that serves; the tables' revision. ConfigError.

    PostgreSQL undoes a migration, so there it is the real database, and nothing but the migration is tried.
    """
    if settings.is_postgresql:
        return await move(settings, "head", undo=True)
    async with Cortex.at_rest(settings) as cortex:
        db = cortex.runtime.db
        await db.look_through()
        async with db.connection() as connection:
            loose = (await connection.execute(text("PRAGMA foreign_key_check"))).first()
        if loose is not None:
            raise ConfigError(f"After the migration a row of {loose[0]!r} points to nothing.")
        make_page(cortex)
        return await db.revision()
